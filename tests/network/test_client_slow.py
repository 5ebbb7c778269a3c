"""Applications that take their time, and nodes that have none for them."""

import asyncio
from pathlib import Path

import pytest

from client_lab import client_of, numbers, payloads, serve, until
from live_lab import config, running
from planaria.core.node import Notice
from planaria.network import host
from planaria.network.client import channel, lacks, subscription
from planaria.network.client import messages as m
from planaria.network.client.client import connect
from planaria.network.client.errors import Unreachable
from planaria.network.client.events import Event
from reference_gate import ReferenceGate

TOPIC = "weather/europe"


def test_a_hole_is_filled_once_however_long_the_application_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lacks, "ASK_SECONDS", 0.1)

    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].lacks = lambda topic, stream, number: 3 <= number < 5
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(10))
            events = client.subscribe(TOPIC, since="all")
            assert await payloads(events, 3) == numbers(3)
            await until(lambda: any(it.frame is None for it in events._parcels))
            ticks = 0
            tick = events._lacking.tick

            def counted(now: float) -> None:
                nonlocal ticks
                ticks += 1
                tick(now)

            monkeypatch.setattr(events._lacking, "tick", counted)
            await until(lambda: ticks > 3)
            assert len([it for it in events._parcels if it.frame is None]) == 1
            assert await payloads(events, 7) == numbers(7, 3)

    serve(test)


def test_what_the_application_has_yet_to_take_is_not_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lacks, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(lacks, "GIVE_UP_SECONDS", 0.3)

    async def test(gates: list[ReferenceGate]) -> None:
        for gate in gates:
            gate.lacks = lambda topic, stream, number: 3 <= number < 5
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(10))
            events = client.subscribe(TOPIC, since="all", notices=True)
            await events.ready()
            await asyncio.sleep(4 * 0.5)  # ticks, after which a hole is given up
            found = [await anext(events) for _ in range(9)]
            taken = [it for it in found if isinstance(it, Event)]
            assert [it.payload for it in taken] == [*numbers(3), *numbers(5, 5)]
            assert not any(it.late for it in taken)
            assert isinstance(found[3], Notice)

    serve(test)


def test_a_full_node_is_asked_again_once_and_given_up_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscription, "FULL_SECONDS_MAX", 0.1)

    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            events = client.subscribe("a", "b", "c", since="all")
            await events.ready()
            gates[0].refuse_all = ("full", "too many clients")
            gates[0].asked_for.clear()
            events._patience = 1.0
            events._tail()  # as after a hole
            with pytest.raises(Unreachable, match="too many clients"):
                await anext(events)
            asked = [it for it in gates[0].asked_for if isinstance(it, m.Tail)]
            assert len(asked) <= 3 * 5, "one for each pattern at each tick"
            assert len(asked) >= 6

    serve(test, gates=1)


def test_a_frozen_node_is_left_when_it_is_overdue_not_a_beat_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "SILENCE_SECONDS", 0.9)
    monkeypatch.setattr(channel, "BEAT_SECONDS", 300.0)  # longer than any test

    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client, client.subscribe(TOPIC, since="all") as events:
            await client.publish(TOPIC, b"0")
            assert await payloads(events, 1) == [b"0"]
            gates[0].frozen = True
            assert (await client.publish(TOPIC, b"1")).sequence == 1
            assert client.server == gates[1].address
            assert await payloads(events, 1) == [b"1"]

    serve(test)


def test_beats_do_not_follow_the_interval_of_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(channel, "SILENCE_SECONDS", 0.6)

    async def main() -> None:
        async with (
            running(config(tmp_path, interval=60.0)) as live,
            connect(live.listen, insecure=True) as client,
        ):
            connection = client._requests.channel.connection
            assert connection is not None
            began = asyncio.get_running_loop().time()
            await until(lambda: connection.reason or connection.heard > began + 1.5)
            assert client._requests.channel.connection is connection

    asyncio.run(main())
