"""The HTTP door of a node, over real sockets: what it answers, and what it bounds."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from time import sleep

import pytest
from msgspec import json

from http_lab import get, talk
from live_lab import config
from planaria.core.errors import UsageError
from planaria.network import http
from planaria.network.config import FILE
from planaria.network.http import Answer, HttpServer, monitoring
from planaria.network.live import LiveNode
from planaria.network.monitor import Monitor
from planaria.network.status import Status
from watched import Watched, WatchedNetwork, ring_node, until


def serve(pages: dict[str, http.Page], test: Callable[[str], Awaitable[None]]) -> HttpServer:
    async def main() -> HttpServer:
        server = HttpServer(pages)
        try:
            await test(await server.start("127.0.0.1:0"))
        finally:
            await server.stop()
        return server

    return asyncio.run(main())


def hello(_: http.Query) -> Answer:
    return Answer(HTTPStatus.OK, "text/plain", b"hello")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"GET /a HTTP/1.1\r\n\r\n", 200),
        (b"GET /a?x=1 HTTP/1.0\r\nHost: x\r\n\r\n", 200),
        (b"GET /b HTTP/1.1\r\n\r\n", 404),
        (b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET /a\r\n\r\n", 400),
        (b"GET a HTTP/1.1\r\n\r\n", 400),
        (b"GET /a HTTP/2\r\n\r\n", 400),
        (b"\xff\xfe\r\n\r\n", 400),
        (b"GET /broken HTTP/1.1\r\n\r\n", 500),
        (b"GET /a HTTP/1.1\r\nX: " + b"y" * 100_000, 431),
    ],
)
def test_every_request_is_answered_with_the_status_it_deserves(request_: bytes, code: int) -> None:
    def broken(_: http.Query) -> Answer:
        raise ValueError("a bug")

    async def ask(address: str) -> None:
        found, headers, body = await talk(address, request_)
        assert found == code
        assert int(headers["Content-Length"]) == len(body)
        assert ("Allow" in headers) == (code == 405)
        assert (body == b"hello") == (code == 200)

    serve({"/a": hello, "/broken": broken}, ask)


def test_who_sends_too_much_still_gets_its_answer() -> None:
    def client(address: str) -> bytes:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as one:
            one.sendall(b"GET /a HTTP/1.1\r\nX: ")
            for _ in range(4):  # a server that hangs up at once would break this off
                one.sendall(b"y" * 20_000)
                sleep(0.1)
            return one.recv(1000)

    async def ask(address: str) -> None:
        assert b" 431 " in await asyncio.to_thread(client, address)

    serve({"/a": hello}, ask)


def test_head_has_the_headers_alone() -> None:
    async def ask(address: str) -> None:
        code, headers, body = await talk(address, b"HEAD /a HTTP/1.1\r\n\r\n")
        assert (code, headers["Content-Length"], body) == (200, "5", b"")

    serve({"/a": hello}, ask)


def test_who_sends_nothing_is_told_so_and_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.2)

    async def ask(address: str) -> None:
        assert (await talk(address, b"GET /a"))[0] == 408

    serve({"/a": hello}, ask)


def test_connections_beyond_the_bound_are_refused_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 2)

    async def ask(address: str) -> None:
        host, _, port = address.rpartition(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
        code = 0
        for _ in range(100):  # until both are known to the server
            code, _, _ = await get(address, "/a")
            if code == 503:
                break
        assert code == 503
        reader, writer = idle[0]
        writer.write(b"GET /a HTTP/1.1\r\n\r\n")
        assert (await reader.read()).endswith(b"hello")
        for _, writer in idle:
            writer.close()

    assert serve({"/a": hello}, ask).refused >= 1


def test_stopping_ends_idle_connections() -> None:
    async def main() -> None:
        server = HttpServer({"/a": hello})
        address = await server.start("127.0.0.1:0")
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        assert (await get(address, "/a"))[0] == 200  # by now the server knows the idle one too
        await asyncio.wait_for(server.stop(), 30)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()

    asyncio.run(main())


def test_a_port_in_use_is_a_clear_line() -> None:
    async def ask(address: str) -> None:
        with pytest.raises(UsageError, match=r"cannot answer HTTP on .* name another --http"):
            await HttpServer({}).start(address)

    serve({}, ask)


def test_a_node_does_not_remember_where_it_could_not_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as other:
            taken = f"127.0.0.1:{other.sockets[0].getsockname()[1]}"
            with pytest.raises(UsageError, match="name another --http"):
                async with LiveNode(config(tmp_path, http=taken)):
                    pass
        assert not (tmp_path / FILE).exists()

    asyncio.run(main())


def test_stablez_follows_the_network_and_states_the_age_of_its_evidence() -> None:
    async def main() -> None:
        network = WatchedNetwork(2)
        one = network.peers[0]
        server = HttpServer(monitoring(one.monitor))
        try:
            address = await server.start("127.0.0.1:0")
            await network.start()
            await until(lambda: network.legitimate() and one.monitor.legitimate)
            code, _, body = await get(address, "/stablez")
            said = json.decode(body)
            assert (code, said["doubts"], said["topics"]) == (200, [], 1)
            assert 0 <= said["evidence_age"] < 60
            code, headers, body = await get(address, "/status")
            assert headers["Content-Type"] == "application/json"
            status = json.decode(body, type=Status)
            assert (status.handle, status.topics["news"].member) == (one.id, True)
            assert (await get(address, "/metrics"))[1]["Content-Type"].startswith("text/plain; v")
            assert (await get(address, "/healthz"))[0] == 200
            await network.supervisors[0].stop()
            await network.peers[1].stop()
            await until(lambda: not one.monitor.legitimate)
            assert (await get(address, "/stablez"))[0] == 503
        finally:
            await server.stop()
            await network.stop()

    asyncio.run(main())


def test_healthz_fails_when_timeouts_stop() -> None:
    clock = [0.0]
    node = Watched(ring_node(0, (0,), supervise=False), bytes(16), "n0")
    monitor = Monitor(node, lambda: clock[0])
    page = monitoring(monitor)["/healthz"]

    def answer() -> Answer:
        found = page({})
        assert isinstance(found, Answer)
        return found

    assert answer().status == 200
    clock[0] = 1000.0
    assert answer().status == 503
    assert json.decode(answer().body)["seconds_since_timeout"] == 1000.0
