"""What passed in an overlay without positions, in a client whose node is lost: no other has it."""

import asyncio
from time import time
from typing import Any

import pytest

from client_lab import client_of, serve, until
from planaria.core.message import Message
from planaria.core.node import Notice
from planaria.network.client import messages as m
from planaria.network.client import parcels, subscription
from planaria.network.client.channel import CODEC
from planaria.network.client.events import Event
from planaria.network.client.places import Places
from planaria.network.client.subscription import Subscription
from planaria.network.client.unpacking import Unpacking
from planaria.network.client.verifying import Verifier
from planaria.network.connection import OWED_SECONDS, Connection
from planaria.records.record import INCARNATION_BYTES, Draft, seal
from reference_gate import ReferenceGate, ReferenceTail

TOPIC = "news"
SIZE = 1000  # of a payload
STREAM = (7, bytes(INCARNATION_BYTES))


def say(tail: ReferenceTail, message: m.ClientMessage) -> None:
    assert tail.connection.send(CODEC.encode(message), message, bulk=True)


def passing(tail: ReferenceTail, *numbers: int) -> None:
    """Hand a client these, one by one, as nodes do in an overlay without positions."""
    for number in numbers:
        draft = Draft(b"%d" % number + bytes(SIZE))
        record = seal(STREAM, number, [draft], time=int(time()))
        piece = m.Piece(record.data, number, number + 1)
        say(tail, m.Passing(tail.ask.request, TOPIC, [piece], False))


async def tail_at(gate: ReferenceGate) -> ReferenceTail:
    """The one tail of a gate, of a topic that is not in a ring."""
    await until(lambda: gate.tails)
    (tail,) = gate.tails.values()
    say(tail, m.Tailing(tail.ask.request, [TOPIC], "gossip"))
    return tail


async def received(events: Subscription[Any], count: int) -> None:
    await until(lambda: sum(it.frame is not None for it in events._parcels) == count)


async def read(events: Subscription[Any], count: int) -> list[int | tuple[str, Any]]:
    """The numbers of publications, and of what is lost."""
    found: list[int | tuple[str, Any]] = []
    while len(found) < count:
        one = await anext(events)
        if isinstance(one, Event):
            found.append(int(one.payload.rstrip(b"\0")))
        elif isinstance(one, Notice) and one.kind == "gap":
            found.append(("gap", one.detail["lost"]))
    return found


def test_what_passed_and_what_was_told_of_it_outlives_the_node_and_comes_once() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            events = client.subscribe(TOPIC, notices=True)
            await events.ready()
            first = await tail_at(gates[0])
            await until(lambda: events._passing)
            passing(first, 0, 1)
            say(first, m.Told(first.ask.request, "", "gap", {"lost": 5}))
            passing(first, 7)
            await received(events, 4)
            gates[0].die()
            second = await tail_at(gates[1])
            passing(second, 7, 8)
            assert await read(events, 5) == [0, 1, ("gap", 5), 7, 8]

    serve(test)


def test_what_is_kept_of_nodes_that_die_is_bounded_and_what_is_lost_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parcels, "KEPT_BYTES_MAX", 4 * SIZE)

    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            events = client.subscribe(TOPIC, notices=True)
            await events.ready()
            for at in range(2):
                passing(await tail_at(gates[at]), *range(2 * at, 2 * at + 2))
                await received(events, 2 * at + 2)
                gates[at].die()
            passing(await tail_at(gates[2]), 4)
            assert await read(events, 5) == [0, 1, 2, ("gap", 1), 4]

    serve(test, gates=3)


def test_what_is_read_later_is_acknowledged_to_whom_it_came_from_alone() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            events = client.subscribe(TOPIC)
            await events.ready()
            first = await tail_at(gates[0])
            passing(first, 0, 1)
            await received(events, 2)
            events._tail()  # anew, at the same node: what waits is not done with
            await asyncio.sleep(2 * OWED_SECONDS)
            assert first.connection.link.bulk.bytes > 2 * SIZE
            gates[0].die()
            second = await tail_at(gates[1])
            passing(second, 2)
            await received(events, 3)
            assert await read(events, 2) == [0, 1]
            await asyncio.sleep(2 * OWED_SECONDS)
            assert second.connection.link.bulk.bytes > SIZE
            assert await read(events, 1) == [2]
            reading = asyncio.ensure_future(anext(events))  # which is done with the one before
            await until(lambda: not second.connection.link.bulk.bytes)
            reading.cancel()
            assert events.channel.address == gates[1].address

    serve(test)


def test_a_node_is_not_left_for_what_another_one_sent() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            events = client.subscribe(TOPIC, notices=True)
            await events.ready()
            first = await tail_at(gates[0])
            rubbish = [m.Piece(b"rubbish", 0, 1)]
            say(first, m.Passing(first.ask.request, TOPIC, rubbish, False))
            passing(first, 1)
            await received(events, 2)
            gates[0].die()
            second = await tail_at(gates[1])
            passing(second, 2)
            assert await read(events, 2) == [1, 2]
            say(second, m.Passing(second.ask.request, TOPIC, rubbish, False))
            passing(second, 3, 4)  # of who lies nothing more is taken, and that is told
            await received(events, 3)
            assert await read(events, 1) == [("gap", 2)]
            await until(lambda: events.channel.address == gates[2].address)

    serve(test, gates=3)


def test_a_tail_that_moves_before_it_was_served_is_ready_when_it_is_served_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gate, usual, moved = gates[0], gates[0]._answer, list[int]()

        def answer(connection: Connection, message: Message) -> Message | None:
            if isinstance(message, m.Tail) and not moved:
                moved.append(message.request)
                return m.Failed(message.request, "moved", "it is elsewhere now")
            return usual(connection, message)

        monkeypatch.setattr(gate, "_answer", answer)
        async with client_of(gate) as client, client.subscribe(TOPIC) as events:
            await asyncio.wait_for(events.ready(), 10)  # before the node is left for its silence
            assert moved

    serve(test, gates=1)


@pytest.mark.parametrize("code", ["moved", "full", "elsewhere"])
def test_who_is_not_served_any_more_is_told_so_and_when_it_is_again(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(subscription, "FULL_SECONDS_MAX", 0.0)

    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client, client.subscribe(TOPIC, notices=True) as events:
            await events.ready()
            tail = await tail_at(gates[0])
            say(tail, m.Failed(tail.ask.request, code, "not here now"))
            found = []
            while "stable" not in found:
                notice = await anext(events)
                assert isinstance(notice, Notice)
                found.append(notice.kind)
            assert [it for it in found if it != "moved"] == ["unstable", "stable"]
            assert ("moved" in found) == (code == "moved")

    serve(test, gates=2)


@pytest.mark.parametrize("passed", [True, False])
def test_what_is_published_again_after_its_topic_moved_comes_once(*, passed: bool) -> None:
    """As a client does that had no answer in the former overlay."""
    unpacking, places, found = Unpacking(Verifier(None), None), Places(), list[int]()
    for kind, first in (passed, 3), (not passed, 3), (not passed, 4), (passed, 4), (passed, 5):
        record = seal(STREAM, first, [Draft(b"x")], time=1)
        parcel = parcels.Parcel(TOPIC, [m.Piece(record.data, first, first + 1)], passed=kind)
        events, error = unpacking.unpack(parcel, places)
        assert error is None
        found += [it.sequence for it in events if it.sequence is not None]
    assert found == [3, 4, 5]
