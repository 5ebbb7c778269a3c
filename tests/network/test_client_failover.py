"""Clients whose nodes die, freeze, repeat themselves or lag: none lost, none twice, in order."""

import asyncio
import random

import pytest

from client_lab import client_of, first, in_order, numbers, payloads, serve, until
from planaria.core.node import Notice
from planaria.network.client import channel, lacks, requests
from planaria.network.client import messages as m
from planaria.network.client.client import Client
from planaria.network.client.errors import Unreachable
from planaria.network.client.events import Event
from planaria.network.client.subscription import Subscription
from reference_gate import CODEC, ReferenceGate

TOPIC = "weather/europe"


def test_a_node_that_dies_after_storing_makes_nothing_published_twice() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].die_after_puts = 3
        async with client_of(*gates) as client:
            acks = [await client.publish(TOPIC, it) for it in numbers(6)]
            assert client.server == gates[1].address
            assert [ack.sequence for ack in acks] == list(range(6))
            assert gates[1].memory.payloads(TOPIC) == numbers(6)
            old = [it.record for it in gates[0].asked_for if isinstance(it, m.Put)]
            new = [it.record for it in gates[1].asked_for if isinstance(it, m.Put)]
            assert new[0] == old[2]  # the same bytes

    serve(test)


def test_a_batch_survives_nodes_that_die_one_after_another() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        for at, gate in enumerate(gates[:-1]):
            gate.die_after_puts = 2 + at
        async with client_of(*gates) as client:
            ack = await client.publish_many(TOPIC, numbers(5000))
            assert ack is not None
            assert (ack.sequence, ack.count) == (0, 5000)
            assert sorted(gates[-1].memory.payloads(TOPIC)) == sorted(numbers(5000))

    serve(test, gates=4)


def test_a_one_shot_publication_numbered_by_two_nodes_is_read_once() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].die_after_puts = 1
        async with client_of(*gates, oneshot=True) as client:
            await client.publish(TOPIC, b"once", headers={"unit": "C"})
            await client.publish(TOPIC, b"then", headers={"unit": "C"})
        assert gates[1].memory.payloads(TOPIC) == [b"once", b"once", b"then"]
        async with client_of(gates[1]) as reader:
            events = [event async for event in first(reader.subscribe(TOPIC, since="all"), 2)]
            assert [event.payload for event in events] == [b"once", b"then"]
            assert [event.headers for event in events] == [{"unit": "C"}] * 2  # and no token

    serve(test)


def test_a_repeated_token_at_one_node_gets_the_old_position() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates, oneshot=True) as client:
            gates[0].refusals = [("elsewhere", "I am leaving")]
            gates[1].refusals = [("elsewhere", "so am I")]
            ack = await client.publish(TOPIC, b"x")
            tokens = {it.token for it in gates[0].asked_for if isinstance(it, m.PutNew)}
            assert (ack.sequence, len(tokens)) == (0, 1)

    serve(test)


@pytest.mark.parametrize("frames", [1, 2, 7])
def test_a_subscription_goes_on_where_it_was_whenever_it_is_cut_off(frames: int) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(2000))
            events, found = client.subscribe(TOPIC, since="all"), list[bytes]()
            async for event in events:
                if not len(found) % 190:
                    for gate in gates:
                        gate.drop_after_pieces = frames
                found.append(event.payload)
                if len(found) == 2000:
                    break
            assert found == numbers(2000)

    serve(test, gates=3)


@pytest.mark.parametrize("since", ["all", "now", "last"])
def test_vectors_that_fill_many_frames_are_cut_off_too(
    since: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(m, "PART_BYTES", 150)

    async def test(gates: list[ReferenceGate]) -> None:
        topics = [f"weather/{name}" for name in "abcdefgh"]
        async with client_of(*gates) as one, client_of(*gates) as two:
            for topic in topics:
                for client in (one, two):
                    await client.publish(topic, b"old")
            events = one.subscribe("weather/#", since=since)
            await events.ready()
            old = {"all": 16, "now": 0, "last": 8}[since]
            assert await payloads(events, old) == [b"old"] * old
            for round in range(3):
                gates[round % 2].hang_up()
                for topic in topics:
                    await two.publish(topic, b"%d" % round)
                assert await payloads(events, 8) == [b"%d" % round] * 8
            parts = [it for gate in gates for it in gate.asked_for if isinstance(it, m.Vectors)]
            assert len(parts) > 8

    serve(test)


def test_a_node_that_answers_twice_confuses_nobody() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].twice = True
        async with client_of(gates[0]) as client, client.subscribe(TOPIC, since="now") as events:
            await events.ready()
            acks = [await client.publish(TOPIC, it) for it in numbers(20)]
            assert [ack.sequence for ack in acks] == list(range(20))
            assert await payloads(events, 20) == numbers(20)
            assert await client.topics() == [TOPIC]

    serve(test)


def test_a_node_that_says_elsewhere_is_left() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].refuse_all = ("elsewhere", "this node is leaving")
        async with client_of(*gates) as client, client.subscribe(TOPIC, since="all") as events:
            await client.publish(TOPIC, b"x")
            assert await payloads(events, 1) == [b"x"]
            assert client.server == events.channel.address == gates[1].address

    serve(test)


def test_what_no_node_can_do_ends_in_an_error_when_patience_does() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        for gate in gates:
            gate.refuse_all = ("elsewhere", "no quorum")
        async with client_of(*gates, patience=0.5) as client:
            with pytest.raises(Unreachable, match="no quorum"):
                await client.topics()
            with pytest.raises(Unreachable, match="no quorum"):
                await client.subscribe(TOPIC).ready()

    serve(test)


def test_when_all_nodes_are_gone_everybody_who_waits_is_told() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates, patience=0.3) as client:
            await client.publish(TOPIC, b"x")
            events = client.subscribe(TOPIC, since="all")
            assert await payloads(events, 1) == [b"x"]
            for gate in gates:
                gate.die()
            with pytest.raises(Unreachable, match=r"Connection refused.*Connection refused"):
                await client.publish(TOPIC, b"y")
            with pytest.raises(Unreachable):
                await anext(events)
            with pytest.raises(Unreachable):
                await client.try_publish(TOPIC, b"z")

    serve(test)


def test_one_address_is_enough_for_others_are_learned() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].contacts = [gate.address for gate in gates]
        async with client_of(gates[0]) as client:
            await client.publish(TOPIC, b"0")
            await until(lambda: len(list(client.servers)) == 3)
            gates[0].die()
            assert (await client.publish(TOPIC, b"1")).sequence == 1
            assert client.server in (gates[1].address, gates[2].address)

    serve(test, gates=3)


def test_notices_tell_of_a_lost_node_and_of_its_successor() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish(TOPIC, b"0")
            async with client.subscribe(TOPIC, since="all", notices=True) as events:
                assert isinstance(await anext(events), Event)
                gates[0].die()
                received = [await anext(events), await anext(events)]
                kinds = [it.kind for it in received if isinstance(it, Notice)]
                assert kinds == ["unstable", "stable"]
                await client.publish(TOPIC, b"1")
                event = await anext(events)
                assert isinstance(event, Event)
                assert event.payload == b"1"

    serve(test)


def test_what_a_node_lacks_is_read_at_another_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lacks, "ASK_SECONDS", 0.1)

    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].lacks = lambda topic, stream, number: 300 <= number < 400
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(1000))
            events = client.subscribe(TOPIC, since="all")
            found = [await anext(events) for _ in range(1000)]
            assert [event.payload for event in found] == numbers(1000)
            assert events.channel.address == gates[0].address
            assert not any(event.late for event in found)
            end = await client.vector(TOPIC)
            batch = await client.read(TOPIC, {}, end)
            assert [event.payload for event in batch.events] == numbers(1000)

    serve(test)


def test_what_nobody_has_is_skipped_told_and_taken_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacks, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(lacks, "GIVE_UP_SECONDS", 0.3)

    async def test(gates: list[ReferenceGate]) -> None:
        for gate in gates:
            gate.lacks = lambda topic, stream, number: 3 <= number < 5
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(10))
            events = client.subscribe(TOPIC, since="all", notices=True)
            found = [await anext(events) for _ in range(9)]
            assert [it.payload for it in found if isinstance(it, Event)] == [
                *numbers(3),
                *numbers(5, 5),
            ]
            (gap,) = [it for it in found if isinstance(it, Notice)]
            assert found.index(gap) == 3
            assert (gap.kind, gap.detail["from"], gap.detail["to"]) == ("gap", 3, 5)
            (mark,) = events.vector()["topics"][TOPIC].values()
            assert mark == [[10], [3, 5]]
            resumed = client.subscribe(TOPIC, since=events.vector())
            for gate in gates:
                gate.lacks = lambda topic, stream, number: False
            for one in (events, resumed):
                late = [await anext(one) for _ in range(2)]
                assert [it.payload for it in late if isinstance(it, Event)] == numbers(2, 3)
                assert all(it.late for it in late if isinstance(it, Event))
                assert list(one.vector()["topics"][TOPIC].values()) == [10]

    serve(test)


def test_a_node_that_sends_what_is_no_record_is_left() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(3))
            events = client.subscribe(TOPIC, since="all")
            await events.ready()
            (tail,) = gates[0].tails.values()
            tail.at = {}
            rubbish = m.Pieces(tail.ask.request, TOPIC, [m.Piece(b"rubbish", 0, 1)], [])
            tail.connection.send(CODEC.encode(rubbish), rubbish, bulk=True)
            assert await payloads(events, 3) == numbers(3)
            await client.publish(TOPIC, b"3")
            assert await payloads(events, 1) == [b"3"]
            assert events.channel.address == gates[1].address

    serve(test)


def test_clients_that_come_and_go_leave_nothing_behind() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        for _ in range(20):
            async with client_of(*gates) as client, client.subscribe("#", since="all") as events:
                await client.publish(TOPIC, b"x")
                await anext(events)
                gates[0].hang_up()
                await client.publish(TOPIC, b"y")
                assert client.subscribe("a").patterns.of("a") == "a"  # never begun
        assert [it for it in asyncio.all_tasks() if "network/client" in repr(it)] == []
        await until(lambda: not any(gate.tails for gate in gates))
        await until(lambda: not any(gate.connections for gate in gates))

    serve(test)


async def _trouble(gates: list[ReferenceGate], rng: random.Random) -> None:
    """Cut connections, kill nodes and start others, for ever."""
    while True:
        await asyncio.sleep(rng.uniform(0.0, 0.2))
        gate = rng.choice(gates)
        kind = rng.randrange(5)
        if kind == 0:
            gate.hang_up()
        elif kind == 1:
            gate.drop_after_pieces = rng.randrange(1, 4)
        elif kind == 2:
            gate.twice = not gate.twice
        elif kind == 3:
            gate.refusals = [("full", "full"), ("elsewhere", "elsewhere")][: rng.randrange(3)]
        else:
            gate.tokens.clear()
            gate.hang_up()


async def _read(events: Subscription[Event], count: int) -> list[Event]:
    found: list[Event] = []
    async for batch in events.batches():
        found += batch
        if len(found) >= count:
            return found
    return found


async def _publish(client: Client, topic: str, rng: random.Random, count: int) -> None:
    left = numbers(count)
    while left:
        size = min(len(left), rng.randrange(1, 50))
        chunk, left = left[:size], left[size:]
        if rng.random() < 0.5:
            await client.publish_many(topic, chunk)
        else:
            await asyncio.gather(*(client.publish(topic, payload) for payload in chunk))


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_to_nodes_everything_comes_once_and_in_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three publishers, two readers, three nodes that are cut off, full or forgetful at random."""
    monkeypatch.setattr(channel, "BACKOFF_SECONDS_MAX", 0.02)
    monkeypatch.setattr(requests, "FULL_SECONDS", 0.01)

    async def test(gates: list[ReferenceGate]) -> None:
        rng = random.Random(seed)
        count = 400
        names = [gate.address for gate in gates]
        rng.shuffle(gates)
        trouble = asyncio.create_task(_trouble(gates, rng))
        try:
            async with (
                client_of(*gates) as one,
                client_of(*reversed(gates)) as two,
                client_of(gates[1], gates[0]) as three,
            ):
                begun = [it.subscribe("#", since="all") for it in (one, two)]
                reading = [asyncio.create_task(_read(it, 3 * count)) for it in begun]
                topics = ("a", "b", "a")
                clients = zip((one, two, three), topics, strict=True)
                await asyncio.gather(*(_publish(*it, rng, count) for it in clients))
                for found in await asyncio.gather(*reading):
                    assert len(found) == 3 * count
                    assert in_order(found)
                    assert sorted(it.payload for it in found) == sorted(numbers(count) * 3)
                assert all(address in names for address in one.servers)
        finally:
            trouble.cancel()
            await asyncio.gather(trouble, return_exceptions=True)

    serve(test, gates=3)
