"""Clients of real nodes, in one process: their node stops in the middle, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from client_lab import in_order, numbers, until
from planaria.network.client import messages
from planaria.network.client.client import Client, connect
from planaria.network.client.events import Event
from planaria.network.client.subscription import Subscription
from planaria.network.config import Config
from planaria.network.gate import queries
from planaria.network.gate.session import Session
from planaria.network.live import LiveNode

TOPIC = "weather/europe"
INTERVAL = 0.1


def network(
    directory: Path, test: Callable[[list[LiveNode]], Awaitable[None]], nodes: int = 4
) -> None:
    """Run a test with so many nodes; the first two supervise."""

    async def main() -> None:
        running: list[LiveNode] = []
        try:
            for at in range(nodes):
                config = Config(
                    dir=directory / str(at),
                    listen="127.0.0.1:0",
                    join=tuple(node.listen for node in running),
                    supervise=at < 2,
                    insecure=1,
                    interval=INTERVAL,
                )
                running.append(LiveNode(config))
                await running[-1].start()
            async with asyncio.timeout(120):
                await test(running)
        finally:
            for node in running:
                if node.database is not None:
                    await node.stop(leave=False)

    asyncio.run(main())


def client_of(*nodes: LiveNode) -> Client:
    return connect([node.listen for node in nodes], insecure=True)


async def read(events: Subscription[Event], count: int) -> list[Event]:
    found: list[Event] = []
    async for event in events:
        found.append(event)
        if len(found) >= count:
            break
    return found


async def slowly(count: int, middle: asyncio.Event) -> AsyncIterator[bytes]:
    """Numbers that take their time, and say when a third of them is out."""
    for number, payload in enumerate(numbers(count)):
        yield payload
        if number == count // 3:
            middle.set()
        if not number % 10:
            await asyncio.sleep(0.001)


def test_clients_publish_read_and_ask_through_real_nodes(tmp_path: Path) -> None:
    async def test(nodes: list[LiveNode]) -> None:
        async with client_of(nodes[2]) as client, client_of(nodes[3]) as other:
            ack = await client.publish(TOPIC, b"mild", key=b"oslo", headers={"unit": "C"})
            assert ack.copies >= 1
            events = other.subscribe("weather/#", since="all")
            (event,) = await read(events, 1)
            assert (event.topic, event.payload, event.key) == (TOPIC, b"mild", b"oslo")
            assert (event.headers, event.id) == ({"unit": "C"}, ack.id)
            await client.publish_many(TOPIC, numbers(500))
            assert [it.payload for it in await read(events, 500)] == numbers(500)
            assert await other.topics() == [TOPIC]
            end = await other.vector(TOPIC)
            assert list(end.values()) == [501]
            whole = await other.read(TOPIC, {}, end)
            assert len(whole.events) == 501
            last = other.subscribe(TOPIC, since="last")
            assert (await read(last, 1))[0].payload == numbers(500)[-1]
            where = other.subscribe(TOPIC, since="all", where="unit = 'C'")
            assert (await read(where, 1))[0].payload == b"mild"
            now = other.subscribe(TOPIC)
            await now.ready()
            await client.publish(TOPIC, b"now")
            assert (await read(now, 1))[0].payload == b"now"

    network(tmp_path, test)


@pytest.mark.parametrize("leave", [False, True])
def test_a_node_that_stops_under_its_clients_costs_them_nothing(
    tmp_path: Path, leave: bool
) -> None:
    async def test(nodes: list[LiveNode]) -> None:
        count = 3000
        async with client_of(nodes[2], *nodes) as one, client_of(*reversed(nodes)) as two:
            for it in (one, two):
                await it.subscribe(TOPIC).ready()  # so that the node that stops is no lone member
            for it in (one, two):
                assert (await it.publish(TOPIC, b"x", copies=2, strict=True)).copies == 2
            readers = [it.subscribe("weather/#", since="all") for it in (one, two)]
            reading = [asyncio.create_task(read(it, 2 * count + 2)) for it in readers]
            middle = asyncio.Event()
            publishing = [
                asyncio.create_task(it.publish_many(TOPIC, slowly(count, middle)))
                for it in (one, two)
            ]
            await middle.wait()
            assert one.server == nodes[2].listen
            assert not publishing[0].done()
            assert not reading[0].done()
            await nodes[2].stop(leave=leave)
            for ack in await asyncio.gather(*publishing):
                assert ack is not None
                assert (ack.sequence, ack.count) == (1, count)
            await until(lambda: one.server != nodes[2].listen)
            for found in await asyncio.gather(*reading):
                assert in_order(found)
                assert sorted(it.payload for it in found) == sorted([b"x", *numbers(count)] * 2)

    network(tmp_path, test)


def test_one_address_of_a_real_network_is_enough(tmp_path: Path) -> None:
    async def test(nodes: list[LiveNode]) -> None:
        async with client_of(nodes[3]) as client:
            await client.publish(TOPIC, b"0")
            await client.status()
            assert {*client.servers} == {node.listen for node in nodes}
            await nodes[3].stop(leave=False)
            assert (await client.publish(TOPIC, b"1")).sequence == 1

    network(tmp_path, test)


def test_many_topics_have_more_to_say_than_fits_into_a_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PART_BYTES", 300)
    monkeypatch.setattr(queries, "PIECES_BYTES", 150_000)
    given, whole = list[Any](), Session.whole

    def noted(session: Session, tail: messages.Tail) -> Any:
        given.append(whole(session, tail))
        return given[-1]

    monkeypatch.setattr(Session, "whole", noted)
    topics = [f"weather/{name}" for name in "abcdefghijkl"]

    async def test(nodes: list[LiveNode]) -> None:
        async with client_of(nodes[0], *nodes) as client:
            for topic in topics:
                await client.publish(topic, topic.encode() + bytes(100_000))
            last = client.subscribe("weather/#", since="last")
            found = [event.topic for event in await read(last, len(topics))]
            assert sorted(found) == topics
            sessions = [it for node in nodes if node.gate for it in node.gate.sessions.values()]
            assert {session.open for session in sessions} == {0}
            last.channel.leave("on purpose")
            for topic in topics:
                await client.publish(topic, b"new")
            assert sorted(it.topic for it in await read(last, len(topics))) == topics
            assert sorted(given[-1].vectors) == topics

    network(tmp_path, test, nodes=2)
