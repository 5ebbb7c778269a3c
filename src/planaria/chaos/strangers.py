"""Connections that mean no good: garbage bytes, and more questions than anybody answers."""

import asyncio
from random import Random

from planaria.network.client.access import Access
from planaria.network.client.asking import Asker, Refused, Unanswered
from planaria.network.client.messages import AskStatus, StatusIs
from planaria.network.contacts import parse_address
from planaria.network.frames import Kind, frame

GARBAGE_BYTES = 4096  # of one connection
END_SECONDS = 8.0  # for a node to hang up: it waits five for a hello


async def garbage(address: str, access: Access, connections: int, rng: Random) -> int:
    """Send arbitrary bytes, before and after TLS and with true frames around them; how many of
    the connections the node ended."""
    asked = [
        _garbage(address, access, number, Random(rng.random())) for number in range(connections)
    ]
    return sum(await asyncio.gather(*asked))


async def _garbage(address: str, access: Access, number: int, rng: Random) -> bool:
    host, port = parse_address(address)
    secure = access.credentials is not None and number % 2 == 0
    context = access.credentials.context(server=False) if access.credentials and secure else None
    data = rng.randbytes(GARBAGE_BYTES)
    if number % 3 == 0:
        data = frame(Kind.HELLO, data)
    try:
        async with asyncio.timeout(END_SECONDS):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, TimeoutError):
        return False  # it never was one
    try:
        async with asyncio.timeout(END_SECONDS):
            writer.write(data)
            while await reader.read(1 << 16):
                pass
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        writer.transport.abort()
    return True


async def flood(address: str, access: Access, requests: int) -> int:
    """Ask so often without waiting for an answer; how many questions were answered or refused."""
    asker = Asker(address, access)
    try:
        await asker.open()
    except Unanswered:
        return 0
    found = await asyncio.gather(
        *(asker.ask(AskStatus, StatusIs) for _ in range(requests)), return_exceptions=True
    )
    await asker.close()
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, Unanswered):
            raise one
    return sum(isinstance(one, StatusIs | Refused) for one in found)
