"""Who needs only the last publication of each key gets at least that, and little else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import defstruct, msgpack, structs

import planaria
from live_lab import run
from overlays_lab import PATIENCE, at, network, until
from planaria.core.node import Subscribe
from planaria.network.client.client import Client
from planaria.network.client.events import Event
from planaria.network.client.messages import Tail
from planaria.network.gate.tails import Tails
from planaria.network.live import LiveNode
from planaria.records import retained
from planaria.records.store import Store
from secure_lab import Secure
from secure_lab import run as run_secure

TOPIC = "cities"
END = b"the end"


def lab(home: Path, n: int, test: Callable[[list[LiveNode]], Awaitable[None]]) -> None:
    async def main() -> None:
        async with network(home, n) as nodes:
            await test(nodes)

    run(main)


async def publish(client: Client, rows: list[tuple[bytes | None, bytes]]) -> None:
    """One after the other, so that each has a later turn than those before."""
    for key, payload in rows:
        await client.publish(TOPIC, payload, key=key)


async def found(client: Client, **options: Any) -> tuple[list[tuple[bytes | None, bytes]], Any]:
    """What comes until `END`, and the vector after it."""
    rows: list[tuple[bytes | None, bytes]] = []
    async with (
        asyncio.timeout(PATIENCE),
        client.subscribe(TOPIC, compacted=True, **options) as events,
    ):
        async for event in events:
            if event.payload == END:
                return rows, events.vector()
            rows.append((event.key, event.payload))
    raise AssertionError("it ended")


def store_of(node: LiveNode) -> Store:
    assert node.gate is not None
    store: Store = node.gate.memberships.ring.peer.topics[TOPIC].history.holdings.store
    return store


ROWS: list[tuple[bytes | None, bytes]] = [
    (b"oslo", b'{"t": 1}'), (b"bergen", b'{"t": 2}'), (None, b"news"), (b"oslo", b'{"t": 3}'),
    (b"moss", b'{"t": 4}'), (b"oslo", b'{"t": 5}'), (None, b"more news"), (b"moss", b'{"t": 0}'),
]  # fmt: skip
LEFT = [ROWS[1], ROWS[2], ROWS[5], ROWS[6], ROWS[7]]


def test_only_the_last_of_each_key_comes_and_what_has_none_comes_all(tmp_path: Path) -> None:
    async def test(nodes: list[LiveNode]) -> None:
        async with at(nodes[0]) as client, at(nodes[1]) as reader:
            await publish(client, [*ROWS, (None, END)])
            rows, vector = await found(reader, since="all")
            assert rows == LEFT
            assert [*vector["topics"][TOPIC].values()] == [9], "what was left out is read"
            await publish(client, [(b"oslo", b"a"), (b"oslo", b"b"), (b"moss", b"c"), (None, END)])
            assert (await found(reader, since=vector))[0] == [(b"oslo", b"b"), (b"moss", b"c")]

    lab(tmp_path, 2, test)


def test_a_condition_is_asked_of_what_is_left(tmp_path: Path) -> None:
    async def test(nodes: list[LiveNode]) -> None:
        async with at(nodes[0]) as client:
            await publish(client, [*ROWS, (b"end", END)])
            async with client.subscribe(
                TOPIC, since="all", where="t > 0", compacted=True
            ) as events:
                got = [(await anext(events)).payload for _ in range(2)]
                assert got == [b'{"t": 2}', b'{"t": 5}'], "moss was above 0 once"
                await client.publish(TOPIC, b'{"t": 9}', key=b"moss")
                assert (await anext(events)).payload == b'{"t": 9}'

    lab(tmp_path, 1, test)


def test_the_last_one_may_be_of_another_publisher(tmp_path: Path) -> None:
    async def test(nodes: list[LiveNode]) -> None:
        async with at(nodes[0]) as one, at(nodes[0]) as two:
            for number in range(3):
                await one.publish(TOPIC, b"one %d" % number, key=b"k")
                await asyncio.sleep(1.1)  # turns are in seconds, then by publisher
                await two.publish(TOPIC, b"two %d" % number, key=b"k")
            await one.publish(TOPIC, END)
            async with two.subscribe(TOPIC, since="all", compacted=True) as events:
                assert {(await anext(events)).payload for _ in range(2)} == {b"two 2", END}
                await one.publish(TOPIC, b"live")
                assert (await anext(events)).payload == b"live"

    lab(tmp_path, 1, test)


def test_signed_records_come_whole_and_are_verified(tmp_path: Path) -> None:
    async def test(secure: Secure) -> None:
        node = await secure.node()
        node.host.command(Subscribe(TOPIC))
        async with secure.client("alice", node) as alice, secure.client("carol", node) as carol:
            await publish(alice, [*ROWS, (b"end", END)])
            rows, _ = await found(carol, since="all")
            assert rows == LEFT
            keys = [b"a", b"c", b"b", b"c2", b"a", b"b"]
            acks = [alice.try_publish(TOPIC, b"%d" % n, key=key) for n, key in enumerate(keys)]
            await asyncio.gather(*acks)
            await alice.publish(TOPIC, END, key=b"end")
            rows, _ = await found(carol, since="all")
            assert rows == [*LEFT, (b"c", b"1"), (b"c2", b"3"), (b"a", b"4"), (b"b", b"5")]
            assert len(store_of(node).index.shown) < len(ROWS) + len(keys) + 2, "one has several"

    run_secure(tmp_path, test)


def test_a_long_history_is_taken_up_in_steps_between_other_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retained, "STEP_RECORDS", 2)
    steps: list[str] = []
    ask, pump = Store.retaining, Tails._pump

    def counted(store: Store) -> retained.Retained | None:
        known = ask(store)
        steps.append("known" if known else "step")
        return known

    def turned(tails: Tails) -> None:
        steps.append("turn")
        pump(tails)

    async def test(nodes: list[LiveNode]) -> None:
        async with at(nodes[0]) as client:
            for number in range(100):
                await client.publish(TOPIC, b"%d" % number, key=b"%d" % (number % 7))
            await client.publish(TOPIC, END)
            monkeypatch.setattr(Store, "retaining", counted)
            monkeypatch.setattr(Tails, "_pump", turned)
            rows, _ = await found(client, since="all")
            assert [int(payload) for _, payload in rows] == [*range(93, 100)]
            before = steps[: steps.index("known")]
            assert before.count("step") >= 50
            assert all({*pair} == {"step", "turn"} for pair in pairwise(before[1:]))

    lab(tmp_path, 1, test)


def test_nodes_know_what_was_replaced_only_while_somebody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[Store] = []
    monkeypatch.setattr(Store, "retain_no_longer", lambda store: forgotten.append(store))

    async def test(nodes: list[LiveNode]) -> None:
        async with at(nodes[0]) as client:
            await publish(client, [(b"k", b"1"), (b"k", b"2"), (None, END)])
            one = client.subscribe(TOPIC, since="all", compacted=True)
            two = client.subscribe(TOPIC, since="all", compacted=True)
            plain = client.subscribe(TOPIC, since="all")
            for events in (one, two):
                assert (await anext(events)).payload == b"2"
            assert [(await anext(plain)).payload for _ in range(2)] == [b"1", b"2"]
            await one.close()
            await client.publish(TOPIC, b"3", key=b"k")
            assert [(await anext(two)).payload for _ in range(2)] == [END, b"3"]
            assert forgotten == []
            await two.close()
            await until(lambda: forgotten)
            assert forgotten == [store_of(nodes[0])]
            assert [(await anext(plain)).payload for _ in range(2)] == [END, b"3"]
            await plain.close()
            await client.publish(TOPIC, b"4")
            assert len(forgotten) == 1

    lab(tmp_path, 1, test)


async def drained(events: planaria.Subscription[Event], until: bytes) -> AsyncIterator[Event]:
    async for event in events:
        yield event
        if event.payload == until:
            return


def test_a_client_that_is_handed_over_still_gets_the_last_of_each_key(tmp_path: Path) -> None:
    async def test(nodes: list[LiveNode]) -> None:
        async with (
            at(nodes[1]) as client,
            planaria.connect([nodes[2].listen, nodes[0].listen], insecure=True) as reader,
        ):
            await publish(client, [(b"%d" % (n % 5), b"%d" % n) for n in range(20)])
            async with reader.subscribe(TOPIC, since="all", compacted=True) as events:
                first = [(await anext(events)).payload for _ in range(5)]
                assert [int(it) for it in first] == [*range(15, 20)]
                await nodes[2].stop(leave=False)
                await publish(client, [(b"%d" % (n % 5), b"%d" % n) for n in range(20, 40)])
                await client.publish(TOPIC, END)
                values: dict[bytes | None, bytes] = {}
                async for event in drained(events, END):
                    values[event.key] = event.payload
                del values[None]
                assert values == {b"%d" % n: b"%d" % (n + 35) for n in range(5)}

    lab(tmp_path, 3, test)


def test_a_node_or_client_that_does_not_know_the_wish_is_understood() -> None:
    """An older node sends all: whoever asks must bear what could have been left out."""
    *fields, _ = [(it.name, it.type) for it in structs.fields(Tail)]
    older = defstruct("Tail", fields, array_like=True, tag="client.tail")
    asked = Tail(1, "a", {}, 2, "x > 1", True, "ring", True, compacted=True)
    known = msgpack.decode(msgpack.encode(asked), type=older)
    assert structs.asdict(asked) == {**structs.asdict(known), "compacted": True}
    assert msgpack.decode(msgpack.encode(known), type=Tail) == structs.replace(
        asked, compacted=False
    )
