"""A peer that means harm hurts its own link: a well-behaved pair beside it goes on as before."""

import asyncio
import os
import resource
import secrets
import socket
import ssl
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import pytest
from msgspec import msgpack

from gate_lab import CODEC, TOPIC, Lab, RawClient, publish, run, until
from planaria.network import door
from planaria.network.client.messages import AskTopics, ClientMessage, Tail, TopicsAre
from planaria.network.connection import CLIENT, VERSIONS, Hello
from planaria.network.contacts import parse_address
from planaria.network.door import KNOCKING_MAX, connections_max, make_room
from planaria.network.frames import Kind, frame
from planaria.network.host import Host
from secure_lab import Secure
from secure_lab import run as run_secure

PEER = Path(__file__).parents[1] / "hostile_peer.py"
ROUNDS = 40
CONNECTIONS = 600
CONNECTIONS_MAX = 200  # so that these are too many
MANY = 10_000
ATTACK_SECONDS = 300.0  # for it to be in full swing
RATIO_MAX = 15.0  # of the median round trip beside an attacker to that before
GROWTH_MAX = 96 << 20  # bytes
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


async def round_trips(publisher: RawClient, reader: RawClient, tail: int) -> float:
    """The median from publishing to reading, in seconds of this process at work.

    It never waits, so that is the time that passes, less what other processes have a core for.
    """
    times = []
    for _ in range(ROUNDS):
        payload = secrets.token_bytes(8)
        began = process_time()
        asked = asyncio.ensure_future(publisher.publish(payload, copies=1))
        while payload not in reader.payloads(tail)[-1:]:
            await asyncio.sleep(0)
        times.append(process_time() - began)
        await asked
        reader.heard = [it for it in reader.heard if it.request != tail][-8:]
    return median(times)


@asynccontextmanager
async def attacker(
    kind: str, address: str, message: ClientMessage, count: int = CONNECTIONS
) -> AsyncIterator[None]:
    """A process that does harm; gone at the end."""
    host, port = parse_address(address)
    hello = frame(Kind.HELLO, msgpack.encode(Hello(VERSIONS, bytes(16), "planaria", (), CLIENT)))
    request = frame(Kind.CONTROL, CODEC.encode(message))
    words = [sys.executable, "-S", str(PEER), kind, host, str(port), hello.hex(), request.hex()]
    process = await asyncio.create_subprocess_exec(*words, str(count), stdout=PIPE)
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), ATTACK_SECONDS) == b"ready\n"
        yield
        assert process.returncode is None, "it did harm to the end"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("kind", ["garbage", "flood", "reads_nothing", "lies"])
def test_a_hostile_peer_hurts_only_its_own_link(kind: str) -> None:
    message = AskTopics(1, "#") if kind == "flood" else Tail(1, "#", {})

    async def test(lab: Lab) -> None:
        host, gate = lab.hosts[0], lab.gates[0]
        publisher, reader = await lab.client(0), await lab.client(0)
        tail = await reader.tail()
        if kind == "reads_nothing":
            await publisher.publish(*(bytes(8192) for _ in range(100)), copies=1)
            await until(lambda: len(reader.payloads(tail)) >= 100)
        before, size = await round_trips(publisher, reader, tail), resident()
        async with attacker(kind, host.hello.addresses[0], message):
            beside = await round_trips(publisher, reader, tail)
            await asyncio.sleep(0.5)
            again = await round_trips(publisher, reader, tail)
            grown = resident() - size
        print(f"{kind}: {beside / before:.1f} and {again / before:.1f} times, {grown >> 20} MiB")
        assert min(beside, again) < RATIO_MAX * before
        assert grown < GROWTH_MAX
        assert not publisher.reason
        assert not reader.reason
        await until(lambda: len(gate.sessions) == 2)
        await publish(publisher, 3)
        assert TOPIC in lab.nodes[0].peer.topics

    run(test, n=1, members=1, seconds=120.0)


@asynccontextmanager
async def watched() -> AsyncIterator[list[int]]:
    """How many descriptors this process has, looked at again and again; more than none."""
    seen = [descriptors()]

    async def look() -> None:
        while True:
            await asyncio.sleep(0.01)
            seen.append(descriptors())

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def many(seeds: Callable[[int, int], int]) -> int:
    """How many connections one peer opens: 10,000 in the campaign, if this machine lets it."""
    count = seeds(CONNECTIONS, MANY)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < count + 100:
        pytest.skip(f"one process may open {most} files here (ulimit -Hn), not {count}")
    return count


def test_a_peer_with_thousands_of_connections_hurts_only_itself(many: int) -> None:
    """Without TLS: they are let in and say nothing, as many as the node takes."""

    async def test(lab: Lab) -> None:
        host = lab.hosts[0]
        host.connections_max = CONNECTIONS_MAX
        publisher, reader = await lab.client(0), await lab.client(0)
        tail = await reader.tail()
        before, size = await round_trips(publisher, reader, tail), resident()
        async with watched() as seen, attacker("connections", *_silent(host), many):
            beside = await round_trips(publisher, reader, tail)
            grown = resident() - size
            assert len(host._connections) <= CONNECTIONS_MAX + 8, "who is too many goes at once"
        judge(many, beside / before, grown, max(seen) - seen[0])
        assert not publisher.reason
        assert not reader.reason

    run(test, n=1, members=1, seconds=ATTACK_SECONDS)


def test_strangers_without_a_certificate_cannot_fill_a_node(many: int, tmp_path: Path) -> None:
    """With TLS: they never shake hands, so nobody has let them in."""

    async def test(lab: Secure) -> None:
        node = await lab.node()
        async with (
            lab.client("alice", node) as alice,
            lab.client("carol", node) as carol,
            carol.subscribe("news") as events,
        ):
            await events.ready()

            async def trips() -> float:
                times = []
                for _ in range(ROUNDS):
                    began = process_time()
                    await alice.publish("news", b"", copies=1)
                    await anext(events)
                    times.append(process_time() - began)
                return median(times)

            before, size = await trips(), resident()
            async with watched() as seen, attacker("connections", *_silent(node.host), many):
                beside = await trips()
                grown = resident() - size
                async with lab.client("carol", node) as another:
                    assert await another.status(), "who has a certificate is let in meanwhile"
            judge(many, beside / before, grown, max(seen) - seen[0])

    run_secure(tmp_path, test, seconds=ATTACK_SECONDS)


def _silent(host: Host) -> tuple[str, ClientMessage]:
    return host.hello.addresses[0], AskTopics(1, "#")


def judge(many: int, ratio: float, grown: int, opened: int) -> None:
    print(f"{many} connections: {ratio:.1f} times, {grown >> 20} MiB, {opened} descriptors")
    assert ratio < RATIO_MAX
    assert grown < GROWTH_MAX
    assert opened < max(CONNECTIONS_MAX, KNOCKING_MAX) + 100


@pytest.mark.parametrize(
    ("soft", "hard", "most"),
    [(1024, 1024, 640), (64, 64, 1), (1024, 1 << 20, 4096), (-1, -1, 4096)],
)
def test_a_node_takes_no_more_connections_than_it_has_descriptors_for(
    soft: int, hard: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: now.append(limits))
    make_room(4096)
    assert connections_max(4096) == most
    assert {it[1] for it in now} == {hard}, "that of others stays as it is"


def test_a_node_that_has_no_descriptors_left_goes_on_as_soon_as_it_has(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door, "PAUSE_SECONDS", 0.01)

    async def test(lab: Lab) -> None:
        failures = [OSError(24, "Too many open files")] * 3
        accept = socket.socket.accept

        def failing(listening: socket.socket) -> Any:
            if failures:
                raise failures.pop()
            return accept(listening)

        monkeypatch.setattr(socket.socket, "accept", failing)
        await lab.client(0)
        assert not failures

    run(test, n=1)
    assert "cannot accept connections" in caplog.text


def test_a_door_that_closes_leaves_nobody_standing_in_it() -> None:
    """Neither who has just been accepted nor who is in the middle of a handshake."""

    async def test() -> None:
        before = descriptors()
        for wait in (0.0, 0.1):
            one = door.Door(asyncio.Protocol, ssl_context())
            where = await one.open("127.0.0.1", 0)
            strangers = [socket.create_connection(where, 5) for _ in range(3)]
            await asyncio.sleep(0)
            one._accept(one._listening[0])
            if wait:
                await asyncio.sleep(wait)
            await one.close()
            await one.close()
            for stranger in strangers:
                stranger.settimeout(5)
                with suppress(ConnectionError):
                    assert stranger.recv(1) == b""
                stranger.close()
            await asyncio.sleep(0.01)
        assert descriptors() == before

    asyncio.run(test())


def test_who_gives_up_just_now_does_not_keep_the_place_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stranger that hangs up as often as it dials had as many handshakes as it liked."""
    monkeypatch.setattr(door, "KNOCKING_MAX", 2)
    standing: list[asyncio.Future[None]] = []

    class Waiting(door.Door):
        async def _let_in(self, one: socket.socket) -> None:
            standing.append(asyncio.get_running_loop().create_future())
            await standing[-1]

    async def test() -> None:
        one = Waiting(asyncio.Protocol, None)
        for _ in range(2):
            one._knock(socket.socket())
        await asyncio.sleep(0)
        for gave_up in standing:
            gave_up.set_result(None)
        await asyncio.sleep(0)  # they are done, and the door has not been told yet
        for _ in range(3):
            one._knock(socket.socket())
        for _ in range(3):
            await asyncio.sleep(0)
        assert sum(not it.done() for it in standing) == 2
        await one.close()
        assert all(it.done() for it in standing)

    before = descriptors()
    asyncio.run(test())
    assert descriptors() == before


def ssl_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def test_garbage_is_told_once_and_raises_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def test(lab: Lab) -> None:
        client = await lab.client(0)
        for body in (b"\x91\xa3x\ny", b"\x91" * 5000, b"\xa2\xff\xff", b"", b"\x92\xa1x") * 5:
            client.connection.send(body, AskTopics(1), bulk=False)
        await client.ask(AskTopics, TopicsAre)
        assert lab.gates[0].malformed == 25

    run(test, n=1)
    (line,) = [it for it in caplog.messages if "a client sent no message" in it]
    assert "\n" not in line, "no peer writes lines into the log"


@pytest.mark.parametrize("body", [b"", b"\x84\xa8versions\xa2\xff\xff", b"\x91" * 5000, b"\xc1"])
def test_a_hello_that_is_none_is_refused_in_words(body: bytes) -> None:
    async def test(lab: Lab) -> None:
        reader, writer = await asyncio.open_connection(
            *parse_address(lab.hosts[0].hello.addresses[0])
        )
        writer.write(frame(Kind.HELLO, body))
        assert b"no hello" in await asyncio.wait_for(reader.read(), 30)
        writer.close()

    run(test, n=1)
