"""HTTP as a client speaks it, byte by byte."""

import asyncio


async def talk(address: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes and read the answer to its end: status, headers, body."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    version, code, _ = first.split(" ", 2)
    assert version == "HTTP/1.1"
    headers = {name: value for name, _, value in (line.partition(": ") for line in lines)}
    return int(code), headers, body


async def get(address: str, path: str) -> tuple[int, dict[str, str], bytes]:
    return await talk(address, f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
