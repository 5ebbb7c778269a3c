"""Clients read by position, from any node: tails and ranges, in publisher order, nothing twice."""

import asyncio
import json
import secrets
from functools import partial
from time import time

import pytest

from gate_lab import INTERVAL, TOPIC, Lab, RawClient, numbered, publish, run, until
from planaria.core.node import Deliver, Notice
from planaria.network.client.messages import (
    Failed,
    Lack,
    Position,
    Put,
    Stop,
    Stored,
    Tail,
    Told,
    to_wire,
)
from planaria.network.gate import session, tails
from planaria.network.gate.pieces import passed_over
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.membership import Membership
from planaria.records.batches import Batch, Slice
from planaria.records.positions import Mark
from records_lab import A, B
from records_lab import record as made


def test_a_tail_brings_history_and_then_what_comes_in_publisher_order() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(1)
        await publish(writer, 5)
        tail = await reader.tail()
        await until(lambda: len(reader.payloads(tail)) == 5)
        await publish(writer, 5, 10)
        await until(lambda: len(reader.payloads(tail)) == 10)
        assert reader.payloads(tail) == numbered(10)
        reader.say(Stop)  # of a request that is none
        reader.heard.clear()

    run(read, 2, 2)


def test_a_tail_goes_on_at_another_node_from_its_vector_without_loss_or_repetition() -> None:
    async def read(lab: Lab) -> None:
        writers = [await lab.client(0), await lab.client(2)]
        reader = await lab.client(1)
        tail = await reader.tail()
        for writer in writers:
            await publish(writer, 20)
        await until(lambda: len(reader.payloads(tail)) >= 10)
        reader.close()
        await lab.kill(1)
        got, vector = reader.publications(tail), reader.vector(tail)
        for writer in writers:
            await publish(writer, 20, 30)
        again = await lab.client(2)
        rest = await again.tail(vectors={TOPIC: vector})
        await until(lambda: len(got) + len(again.publications(rest)) >= 60)
        await asyncio.sleep(3 * INTERVAL)
        whole = [*got, *again.publications(rest)]
        for writer in writers:
            mine = [one.payload for one in whole if one.publisher == writer.stream[0]]
            assert mine == numbered(30)

    run(read, 3, 3)


def test_a_node_without_the_topic_joins_it_for_a_tail() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(2)
        await publish(writer, 3)
        tail = await reader.tail()
        assert lab.member(2)
        await publish(writer, 3, 6)
        await until(lambda: reader.payloads(tail) == numbered(6))

    run(read, 3, 2)


def test_a_hole_stops_its_stream_alone_and_is_told_once_it_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tails, "HOLE_SECONDS", 0.0)

    async def read(lab: Lab) -> None:
        one, two, reader = [await lab.client(0) for _ in range(3)]
        records = [one.seal(payload) for payload in numbered(3)]
        tail = await reader.tail()
        for record in (records[0], records[2]):
            await one.ask(Put, Stored, TOPIC, record.data)
        await publish(two, 2)
        await until(lambda: any(it.lacks for it in reader.pieces(tail)))
        await until(lambda: len(reader.payloads(tail)) >= 3)
        lacks = [lack for it in reader.pieces(tail) for lack in it.lacks]
        assert lacks == [Lack(*one.stream, 1, 2, False)]
        assert sorted(reader.payloads(tail)) == [b"0", b"0", b"1"]
        await one.ask(Put, Stored, TOPIC, records[1].data)
        await until(lambda: len(reader.payloads(tail)) == 5)
        assert reader.payloads(tail)[3:] == [b"1", b"2"]

    run(read, 1, 1)


def ended(reader: RawClient, tail: int, end: Position) -> bool:
    return reader.vector(tail) == [end]


@pytest.mark.parametrize("notices", [False, True])
@pytest.mark.parametrize("where", [None, "never = 1"])
def test_what_retention_drops_before_it_is_read_is_told_to_who_wants_notices(
    *, notices: bool, where: str | None
) -> None:
    async def read(lab: Lab) -> None:
        writer, reader, now = await lab.client(0), await lab.client(0), int(time())
        for at in range(5):
            await writer.ask(Put, Stored, TOPIC, writer.seal(b"%d" % at, at=now + at).data)
        began = {TOPIC: [Position(*writer.stream, 1, ())]}
        for vectors, expected in (began, [Lack(*writer.stream, 1, 3, True)]), ({}, []):
            tail = await reader.tail(vectors=vectors, notices=notices, where=where)
            await until(partial(ended, reader, tail, Position(*writer.stream, 5, ())))
            assert reader.payloads(tail) == ([] if where else [b"3", b"4"])
            lacks = [lack for it in reader.pieces(tail) for lack in it.lacks]
            assert lacks == (expected if notices else [])

    run(read, 1, 1, retention={TOPIC: Retention(count=2)})


def test_numbers_that_a_reader_skipped_come_as_late() -> None:
    async def read(lab: Lab) -> None:
        one, reader = await lab.client(0), await lab.client(0)
        records = [one.seal(payload) for payload in numbered(3)]
        for record in (records[0], records[2]):
            await one.ask(Put, Stored, TOPIC, record.data)
        skipped = Position(*one.stream, 2, ((1, 2),))
        tail = await reader.tail(vectors={TOPIC: [skipped]})
        await until(lambda: reader.payloads(tail) == [b"2"])
        await one.ask(Put, Stored, TOPIC, records[1].data)
        await until(lambda: reader.payloads(tail) == [b"2", b"1"])
        late = [piece.late for it in reader.pieces(tail) for piece in it.pieces]
        assert late == [False, True]
        assert reader.vector(tail) == [Position(*one.stream, 3)]

    run(read, 1, 1)


def test_a_slow_reader_costs_a_cursor_and_its_unread_bytes_are_bounded() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        slow, quick = await lab.client(0, slow=True), await lab.client(0)
        tails = [await slow.tail(), await quick.tail()]
        payloads = [bytes([number]) * 100_000 for number in range(60)]
        for payload in payloads:
            await writer.publish(payload, copies=1)
        await until(lambda: len(quick.payloads(tails[1])) == 60)
        gate = lab.gates[0]
        (link,) = [it.connection.link for it in gate.sessions.values() if it.connection.link.busy]
        assert link.bulk.bytes <= link.bulk.bytes_max
        assert sum(len(it.record) for m in slow.pieces(tails[0]) for it in m.pieces) < 3 << 20
        while len(slow.payloads(tails[0])) < 60:  # then it reads on, from the store
            slow.slow = False
            while slow.unfinished:
                slow.connection.finish(slow.unfinished.pop(0))
            await asyncio.sleep(0.01)
        assert slow.payloads(tails[0]) == payloads

    run(read, 1, 1)


def test_a_fast_publisher_does_not_starve_another_of_the_same_tail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tails, "PIECES_PUBLICATIONS", 2)

    async def read(lab: Lab) -> None:
        clients = sorted([await lab.client(0), await lab.client(0)], key=lambda it: it.stream)
        reader = await lab.client(0)
        await clients[0].publish(*numbered(400), copies=1)
        await clients[1].publish(b"other", copies=1)
        tail = await reader.tail()
        await until(lambda: len(reader.payloads(tail)) == 401)
        assert reader.payloads(tail).index(b"other") < 10

    run(read, 1, 1)


def test_a_condition_chooses_at_the_node_by_json_and_by_headers() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(1)
        rows = [(n, "UA" if n % 3 else "AA") for n in range(0, 120, 10)]
        said = [json.dumps({"delay": n, "carrier": c}).encode() for n, c in rows]
        await writer.publish(*said, b"no json", b'{"delay": "many"}', copies=1)
        headed = writer.seal(b"x", headers=(("carrier", b"UA"), ("unit", b"C")))
        await writer.ask(Put, Stored, TOPIC, headed.data)
        request = await reader.tail(where="delay > 60 AND carrier = 'UA'")
        heads = await reader.tail(where="unit = 'C'")
        numbers = [at for at, (n, carrier) in enumerate(rows) if n > 60 and carrier == "UA"]
        chosen = [said[at] for at in numbers]
        await until(lambda: len(reader.payloads(request)) == len(chosen))
        await until(lambda: reader.payloads(heads) == [b"x"])
        assert reader.payloads(request) == chosen
        assert [one.sequence for one in reader.publications(request)] == numbers
        await until(lambda: reader.vector(request) == [Position(*writer.stream, 15)])
        sizes = [len(piece.record) for it in reader.pieces(request) for piece in it.pieces]
        assert sum(sizes) < 900, "what was not chosen does not travel"
        refused = await reader.ask(Tail, Failed, TOPIC, {}, where="delay >")
        assert refused.code == "usage"

    run(read, 2, 2)


def test_tails_are_bounded_and_end_with_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planaria.network.gate.requests.TAILS_MAX", 1)

    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        tail = await reader.tail()
        refused = await reader.ask(Tail, Failed, TOPIC, {})
        assert "stop one first" in refused.reason
        stop = Stop(tail)
        reader.connection.send(session.CODEC.encode(stop), stop, bulk=False)
        await until(lambda: not len(lab.gates[0].tails))
        await publish(writer, 3)
        assert reader.payloads(tail) == []
        other = await reader.tail()
        await until(lambda: reader.payloads(other) == numbered(3))
        (here,) = [it for it in lab.gates[0].sessions.values() if it.tails]
        assert here.open == 0

    run(read, 1, 1)


def has_notices(client: RawClient, count: int) -> bool:
    return sum(isinstance(it, Told) for it in client.heard) == count


def test_notices_come_to_those_who_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(lab: Lab) -> None:
        curious, other = await lab.client(0), await lab.client(0)
        asked, plain = await curious.tail(notices=True), await other.tail()
        lab.hosts[0].application(Notice(TOPIC, "equivocation", {"first": 3}))
        await curious.answer_of(asked, Told)
        for calm, count in ((False, 2), (True, 3)):
            monkeypatch.setattr(Membership, "calm", calm)
            await until(partial(has_notices, curious, count))
        notices = [it for it in curious.heard if isinstance(it, Told)]
        assert notices[0] == Told(asked, TOPIC, "equivocation", {"first": 3})
        assert [it.kind for it in notices[1:3]] == ["unstable", "stable"]
        assert not any(isinstance(it, Told) for it in other.answers(plain))

    run(read, 1, 1)


def test_what_arrived_without_a_delivery_is_read_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tails, "WHOLE_SECONDS", 0.2)

    async def read(lab: Lab) -> None:
        reader = await lab.client(0)
        tail = await reader.tail()
        lab.store(0).append([RawClient(secrets.token_bytes(16)).seal(b"silent")])
        await until(lambda: reader.payloads(tail) == [b"silent"])
        assert not [it for it in lab.given[0] if isinstance(it, Deliver)]

    run(read, 1, 1)


def test_a_vector_of_many_streams_is_read_on_by_the_streams_that_grew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read(lab: Lab) -> None:
        writers = [RawClient(secrets.token_bytes(16)) for _ in range(300)]
        lab.store(0).append([it.seal(b"x") for it in writers])
        reader = await lab.client(0)
        tail = await reader.tail(vectors={TOPIC: to_wire(lab.store(0).vector())})
        await until(lambda: not lab.gates[0].tails._awake)
        looked: list[int] = []
        holdings = lab.nodes[0].peer.topics[TOPIC].history.holdings
        whole = type(holdings).read

        def counted(self: object, *given: object, **options: object) -> object:
            looked.append(len([*options["only"]]))  # type: ignore[misc]
            return whole(self, *given, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(type(holdings), "read", counted)
        client = await lab.client(0)
        await client.publish(b"new")
        await until(lambda: reader.payloads(tail) == [b"new"])
        assert looked[0] == 1

    run(read, 1, 1)


def test_a_busy_topic_does_not_starve_another_of_the_same_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tails, "PIECES_PUBLICATIONS", 2)

    async def read(lab: Lab) -> None:
        one, two, reader = [await lab.client(0) for _ in range(3)]
        await one.publish(*numbered(400), topic="a/busy", copies=1)
        await two.publish(b"other", topic="a/calm", copies=1)
        tail = await reader.tail("a/#")
        await until(lambda: len(reader.payloads(tail)) == 401)
        assert reader.payloads(tail).index(b"other") < 10
        assert reader.payloads(tail, "a/busy") == numbered(400)

    run(read, 1)


def test_tails_that_are_as_far_are_read_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(lab: Lab) -> None:
        writer, *readers = [await lab.client(0) for _ in range(5)]
        followed = [(reader, await reader.tail()) for reader in readers]
        await publish(writer, 1)
        await until(lambda: all(it.payloads(tail) == numbered(1) for it, tail in followed))
        asked = 0
        holdings = type(lab.nodes[0].peer.topics[TOPIC].history.holdings)
        whole = holdings.read

        def counted(self: object, *given: object, **options: object) -> object:
            nonlocal asked
            asked += 1
            return whole(self, *given, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(holdings, "read", counted)
        for number in range(1, 11):
            await publish(writer, number, number + 1)
        await until(lambda: all(it.payloads(tail) == numbered(11) for it, tail in followed))
        assert asked < 2 * 10, "four tails, ten publications"
        assert not lab.gates[0].tails._answers, "nothing is kept beyond a turn"

    run(read, 1, 1)


def test_all_that_a_reader_passes_is_told_but_not_what_was_before_its_beginning() -> None:
    parts = [Slice(made(A, 4, 2), 4, 6), Slice(made(A, 1), 1, 2, late=True)]
    parts += [Slice(made(A, 8), 8, 9), Slice(made(B, 5), 5, 6)]
    batch = Batch(parts, {A: Mark(10), B: Mark(7)}, more=False)
    for before, expected in (
        ({A: Mark(3)}, [(3, 4), (6, 8), (9, 10), (6, 7)]),
        ({}, [(6, 8), (9, 10), (6, 7)]),
        ({A: Mark(4), B: Mark(5)}, [(6, 8), (9, 10), (6, 7)]),
    ):
        lacks = passed_over(before, batch)
        assert [(it.lo, it.hi) for it in lacks] == expected
        assert all(it.expired for it in lacks)
    idle = Batch([], {A: Mark(10), B: Mark(7)}, more=False)
    assert passed_over({A: Mark(10)}, idle) == ()
    assert passed_over({A: Mark(9)}, idle) == (Lack(*A, 9, 10, expired=True),)
