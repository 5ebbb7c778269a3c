"""Numbers that are missing: waited for, then passed over, and no answer is taken on trust."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from gate_lab import TOPIC, Lab, numbered, run
from planaria.core.chance import stream as chance
from planaria.core.errors import PlanariaError
from planaria.network.client import lacks
from planaria.network.client.access import Access
from planaria.network.client.distrust import Distrust
from planaria.network.client.messages import Lack, Piece, Pieces, Position, Put, Read, Stored
from planaria.network.client.servers import Servers
from planaria.records.positions import Mark
from planaria.records.record import Draft, Stream, seal
from planaria.spark.source import fetch, holes
from planaria.spark.source.fetch import AHEAD, Condition, Fetcher, halves
from planaria.spark.source.holes import Holes
from planaria.spark.source.offsets import Range
from source_lab import apart, batch, follow, rows, stream, values

ONE = (7, bytes(12))


def test_subscriptions_and_spark_wait_as_long() -> None:
    assert vars(holes)["GIVE_UP_SECONDS"] is lacks.GIVE_UP_SECONDS


def test_what_is_left_of_a_hole_is_as_old_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holes, "GIVE_UP_SECONDS", 60.0)
    found = Holes()
    found.note(TOPIC, {ONE: Mark(20, ((2, 9),))}, 0.0)
    found.note(TOPIC, {ONE: Mark(30, ((2, 4), (6, 9), (21, 25)))}, 50.0)
    old = [(2, 4), (6, 9), (7, 8)]
    assert all(found.passable(TOPIC, ONE, *it, now=60.0) for it in old)
    assert not any(found.passable(TOPIC, ONE, *it, now=59.0) for it in old)
    assert not found.passable(TOPIC, ONE, 21, 25, now=109.0)
    assert found.given_up(61.0) == [Range(TOPIC, ONE, 2, 4), Range(TOPIC, ONE, 6, 9)]
    assert found.given_up(62.0) == []
    assert found.oldest(TOPIC, 61.0) == 61.0
    found.note(TOPIC, {ONE: Mark(30, ((21, 25),))}, 70.0)
    found.note(TOPIC, {ONE: Mark(30, ((2, 4),))}, 80.0)  # it was there in between
    assert not found.passable(TOPIC, ONE, 2, 4, now=100.0)


def test_a_reader_waits_for_nothing_that_it_has_passed() -> None:
    found = Holes()
    found.note(TOPIC, {ONE: Mark(20, ((2, 9), (12, 15)))}, 0.0)
    found.passed = {TOPIC: {ONE: Mark(10, ((2, 9),))}}
    assert found.passable(TOPIC, ONE, 2, 9, now=0.0)
    assert not found.passable(TOPIC, ONE, 12, 15, now=0.0)
    assert found.given_up(1e9) == [Range(TOPIC, ONE, 12, 15)]


def test_whoever_reads_to_the_end_passes_a_hole_that_nobody_fills(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(holes, "GIVE_UP_SECONDS", 0.0)

    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        records = [writer.seal(payload) for payload in numbered(6)]
        for at in (0, 1, 3, 4):
            await writer.ask(Put, Stored, TOPIC, records[at].data, copies=1)
        there = [b"0", b"1", b"3", b"4"]
        assert values(await apart(lambda: rows(batch(lab)))) == there
        assert f"numbers 2 to 2 of {writer.stream[0]}" in caplog.text
        reader = await apart(lambda: stream(lab, startingOffsets="earliest"))
        await apart(reader.prepareForTriggerAvailableNow)
        await writer.ask(Put, Stored, TOPIC, records[5].data, copies=1)
        found, end = await apart(lambda: follow(reader, reader.initialOffset()))
        assert values(found) == there
        assert [[5], [2, 3]] in next(iter(end["s"].values())).values()
        await apart(reader.stop)

    with caplog.at_level(logging.WARNING, "planaria.spark"):
        run(read, 1, 1)


def test_whoever_reads_to_the_end_waits_for_a_number_that_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        records = [writer.seal(payload) for payload in numbered(5)]
        for at in (0, 1, 3):
            await writer.ask(Put, Stored, TOPIC, records[at].data, copies=1)
        reading = asyncio.create_task(apart(lambda: rows(batch(lab))))
        honest, looks, twice = lab.gates[0].queries.ask_extent, 0, asyncio.Event()

        def counted(*given: Any) -> None:
            nonlocal looks
            looks += 1
            if looks == 2:
                twice.set()
            honest(*given)

        monkeypatch.setattr(lab.gates[0].queries, "ask_extent", counted)
        await twice.wait()  # it has looked once, and found a hole
        for at in (2, 4):
            await writer.ask(Put, Stored, TOPIC, records[at].data, copies=1)
        assert values(await reading) == numbered(4)

    run(read, 1, 1)


class Node:
    """Answers ranges of two streams as a node does; some numbers are expired."""

    def __init__(self, expired: Sequence[set[int]], lacks_max: int) -> None:
        self.expired, self.lacks_max = expired, lacks_max
        self.channel = SimpleNamespace(open=self._done, close=self._done, address="here:1")
        self.channel.servers, self.channel.leave = ["here:1"], lambda _: None
        self.channel.access = SimpleNamespace(patience=0.0)
        self.still = False  # does it send without saying how far?

    async def _done(self) -> None:
        pass

    def begin(self, kind: type, topic: str, *fields: Any) -> "asyncio.Future[Pieces]":
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(self.answer(Read(0, topic, *fields)))
        return answer

    def answer(self, message: Read) -> Pieces:
        pieces, lost = list[Piece](), list[Lack]()
        assert message.to is not None
        for begin, end in zip(message.after, message.to, strict=True):
            for number in range(begin.next, end.next):
                who = (begin.publisher, begin.incarnation)
                if number in self.expired[who[0] - 1]:
                    lost.append(Lack(*who, number, number + 1, True))
                elif message.where is None or number % 2 == 0:
                    record = seal(who, number, [Draft(b"%d" % number)], time=0)
                    pieces.append(Piece(record.data, number, number + 1))
        after = [] if self.still else [Position(*it[:3]) for it in map(_plain, message.to)]
        return Pieces(0, message.topic, pieces, after, tuple(lost[: self.lacks_max]))


class Packed(Node):
    """Holds one stream in records that end where `ends` says, and sends them whole."""

    def __init__(self, ends: Sequence[int], size: int = 0) -> None:
        super().__init__([set()], 3)
        self.records = [
            seal(ONE, lo, [Draft(bytes(size))] * (hi - lo), time=0)
            for lo, hi in pairwise((0, *ends))
        ]
        self.sent: list[list[int]] = []  # the first number of each record, by answers

    def answer(self, message: Read) -> Pieces:
        assert message.to is not None
        lo, hi = message.after[0].next, message.to[0].next
        found = [it for it in self.records if it.first < hi and it.end > lo]
        self.sent.append([it.first for it in found])
        pieces = [Piece(it.data, max(lo, it.first), min(hi, it.end)) for it in found]
        return Pieces(0, message.topic, pieces, list(message.to), ())


def _plain(it: Position) -> tuple[int, bytes, int]:
    return it.publisher, it.incarnation, it.next


def read_all(node: Node, ranges: list[Range], where: str | None) -> tuple[list[int], list[Range]]:
    found, expired = read_slices(node, ranges, where)
    return [lo for lo, _ in found], expired


def read_slices(
    node: Node, ranges: list[Range], where: str | None
) -> tuple[list[tuple[int, int]], list[Range]]:
    async def main() -> tuple[list[tuple[int, int]], list[Range]]:
        access = Access(SimpleNamespace(), None, None)  # type: ignore[arg-type]
        fetcher = Fetcher(Servers(["here:1"]), access, Condition(where))
        fetcher.requests, fetcher._distrust = node, Distrust(node.channel)  # type: ignore[assignment,arg-type]
        found, expired = list[tuple[int, int]](), list[Range]()
        async for part in fetcher.parts(ranges):
            found += [(one.lo, one.hi) for one in part.slices]
            expired += part.expired
        return found, expired

    return asyncio.run(main())


@pytest.mark.parametrize("where", [None, "x > 1"])
def test_more_expired_numbers_than_a_node_can_tell_of_are_all_told_and_no_others(
    where: str | None, seeds: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "LACKS_MAX", 3)
    for seed in range(seeds(20, 5_000)):
        rng = chance(seed, "expired")
        expired = [{it for it in range(40) if rng.random() < 0.3} for _ in range(2)]
        streams: list[Stream] = [(1, bytes(12)), (2, bytes(12))]
        ranges = [Range(TOPIC, it, rng.randrange(10), rng.randrange(20, 40)) for it in streams]
        found, gaps = read_all(Node(expired, 3), ranges, where)
        lost = {(it.stream[0], n) for it in gaps for n in range(it.lo, it.hi)}
        wanted = [(it.stream[0], n) for it in ranges for n in range(it.lo, it.hi)]
        assert lost == {it for it in wanted if it[1] in expired[it[0] - 1]}, seed
        rest = [it for it in wanted if it not in lost and (where is None or it[1] % 2 == 0)]
        assert sorted(found) == sorted(number for _, number in rest), seed


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 numbers in each, and few under way at once."""
    monkeypatch.setattr(fetch, "ROWS_MAX", 20)
    monkeypatch.setattr(fetch, "AHEAD_MAX", AHEAD)


@pytest.mark.usefixtures("small_answers")
def test_records_of_one_size_come_once_after_the_first_answers(
    seeds: Callable[[int, int], int],
) -> None:
    for seed in range(seeds(20, 5_000)):
        rng = chance(seed, "records")
        size = rng.randrange(3, 15)
        node = Packed(range(size, 60 * size, size))
        begin, end = rng.randrange(20), node.records[-1].end
        assert read_numbers(node, Range(TOPIC, ONE, begin, end)) == [*range(begin, end)], seed
        later = node.sent[AHEAD:]  # what was asked for before anything had come is cut anyhow
        assert len(later) > AHEAD
        assert set(Counter(chain(*later)).values()) == {1}, seed


@pytest.mark.usefixtures("small_answers")
def test_records_of_all_sizes_are_read_whole(
    seeds: Callable[[int, int], int],
) -> None:
    for seed in range(seeds(20, 5_000)):
        rng = chance(seed, "records")
        ends = sorted(rng.sample(range(1, 300), 40))
        read = read_numbers(Packed(ends), Range(TOPIC, ONE, 0, ends[-1]))
        assert read == [*range(ends[-1])], seed


@pytest.mark.parametrize(("count", "size"), [(4_000, 200), (900, 1_000), (512, 128)])
def test_records_larger_than_an_answer_are_not_sent_again_and_again(count: int, size: int) -> None:
    """A few rows of a large record are no large rows: to ask for fewer would bring it once more."""
    node = Packed(range(count, 9 * count, count), size)
    assert read_numbers(node, Range(TOPIC, ONE, 0, 8 * count)) == [*range(8 * count)]
    assert sum(map(len, node.sent)) <= 3 * len(node.records)


def read_numbers(node: Node, it: Range) -> list[int]:
    return [number for lo, hi in read_slices(node, [it], None)[0] for number in range(lo, hi)]


def test_halves_have_all_numbers_once() -> None:
    ranges = [Range(TOPIC, ONE, 3, 8), Range(TOPIC, (8, bytes(12)), 0, 1)]
    first, rest = halves(ranges)
    assert (first, rest) == ([ranges[0]._replace(hi=6)], [ranges[0]._replace(lo=6), ranges[1]])


def test_a_node_that_sends_rows_and_says_that_it_is_where_it_was_fails_the_read() -> None:
    node = Node([set(), set()], 3)
    node.still = True
    with pytest.raises(PlanariaError, match="of what was asked for"):
        read_all(node, [Range(TOPIC, (1, bytes(12)), 0, 4)], None)
