"""A peer that means harm hurts its own link: a well-behaved pair beside it goes on as before."""

import asyncio
import os
import resource
import secrets
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from time import process_time

import pytest
from msgspec import msgpack

from gate_lab import CODEC, TOPIC, Lab, RawClient, publish, run, until
from planaria.network.client.messages import AskTopics, ClientMessage, Tail, TopicsAre
from planaria.network.connection import CLIENT, VERSIONS, Hello
from planaria.network.contacts import parse_address
from planaria.network.frames import Kind, frame
from planaria.network.host import CONNECTIONS_MAX

PEER = Path(__file__).parents[1] / "hostile_peer.py"
ROUNDS = 40
DESCRIPTORS = 10_240  # for the peer's 10,000 connections
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
async def attacker(kind: str, address: str, message: ClientMessage) -> AsyncIterator[None]:
    """A process that does harm; gone at the end."""
    host, port = parse_address(address)
    hello = frame(Kind.HELLO, msgpack.encode(Hello(VERSIONS, bytes(16), "planaria", (), CLIENT)))
    request = frame(Kind.CONTROL, CODEC.encode(message))
    words = (sys.executable, "-S", str(PEER), kind, host, str(port), hello.hex(), request.hex())
    process = await asyncio.create_subprocess_exec(*words, stdout=PIPE)
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
        yield
        assert process.returncode is None, "it did harm to the end"
    finally:
        process.kill()
        await process.wait()


@pytest.fixture
def descriptors() -> Iterator[None]:
    """As many files and sockets as this process and its children may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < DESCRIPTORS:
        pytest.skip(f"{hard} open files are allowed, and 10,000 connections take {DESCRIPTORS}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize("kind", ["garbage", "flood", "connections", "reads_nothing", "lies"])
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
            assert len(host._connections) <= CONNECTIONS_MAX + 8, "who is too many goes at once"
        print(f"{kind}: {beside / before:.1f} and {again / before:.1f} times, {grown >> 20} MiB")
        assert min(beside, again) < RATIO_MAX * before
        assert grown < GROWTH_MAX
        assert not publisher.reason
        assert not reader.reason
        await until(lambda: len(gate.sessions) == 2)
        await publish(publisher, 3)
        assert TOPIC in lab.nodes[0].peer.topics

    run(test, n=1, members=1, seconds=120.0)


def test_garbage_is_told_once_and_raises_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def test(lab: Lab) -> None:
        client = await lab.client(0)
        for body in (b"\x91" * 5000, b"\xa2\xff\xff", b"", b"\x92\xa1x") * 5:
            client.connection.send(body, AskTopics(1), bulk=False)
        await client.ask(AskTopics, TopicsAre)
        assert lab.gates[0].malformed == 20

    run(test, n=1)
    assert caplog.text.count("a client sent no message") == 1


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
