"""The ordered reader against a reader that looks at every number, step by step."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from planaria.core.node import Deliver, Effect, Notice
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.reader import PATIENCE, PATIENCE_MAX, Reader
from planaria.records import store
from planaria.records.memory import MemoryStore
from planaria.records.record import Record, Stream
from records_lab import NOW, A, B, record

# Numbers ascend with time, as a publisher's do; now and then the same position has another body.
records = st.builds(
    lambda of, first, count, low, text: record(
        of, first, count, time=NOW + first // 3, low=min(low, first), text=text
    ),
    st.sampled_from([A, A, B]),
    st.integers(0, 12),
    st.integers(1, 3),
    st.just(0) | st.just(0) | st.integers(0, 8),
    st.sampled_from(["", "", "", "!"]),
)
Told = list[Any]


def in_short(effects: Sequence[Effect]) -> Told:
    """What an application hears, in its order: (stream, number, payload), (kind, stream, ...)."""
    short: Told = []
    for effect in effects:
        if isinstance(effect, Deliver):
            for one in effect.publications:
                short.append((one.publisher, one.sequence, one.payload))
        else:
            assert isinstance(effect, Notice)
            detail = effect.detail
            short.append((effect.kind, detail["publisher"], detail["first"], detail["last"]))
    return short


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending numbers as intervals, both ends in them."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


class NaiveReader:
    """One stream as its reader sees it: every number for itself."""

    def __init__(self, who: int) -> None:
        self.who = who
        self.held: list[Record] = []
        self.next, self.low = 0, 0
        self.hole: tuple[int, int] | None = None
        self.skipped: set[int] = set()

    def body(self, number: int) -> bytes | None:
        found = [one for one in self.held if one.first <= number < one.end]
        if not found:
            return None
        best = max(found, key=lambda one: (one.time, one.key))
        return best.payloads(number, number + 1)[0]

    def came(self, number: int) -> bool:
        return any(one.first <= number < one.end for one in self.held)

    def take(self, one: Record) -> tuple[list[int], list[int]]:
        """Numbers that are new, and numbers that were said otherwise before."""
        numbers = range(one.first, one.end)
        new = [number for number in numbers if not self.came(number)]
        disputed = [
            number
            for number in numbers
            if any(
                one.payloads(number, number + 1) != other.payloads(number, number + 1)
                for other in self.held
                if other.first <= number < other.end
            )
        ]
        self.held.append(one)
        self.low = max(self.low, one.low)
        return new, disputed

    def late(self, one: Record, lo: int, hi: int) -> Told:
        """A run of new numbers of a record, as far as the reader has passed them."""
        numbers = range(lo, min(hi + 1, self.next))
        if not numbers:
            return []
        self.skipped -= {*numbers}
        payloads = one.payloads(numbers.start, numbers.stop)
        each = zip(numbers, payloads, strict=True)
        notice = ("late", self.who, numbers[0], numbers[-1])
        return [notice, *((self.who, number, payload) for number, payload in each)]

    def follow(self) -> Told:
        """Hand out up to the first number that may still come."""
        end = max(self.next, self.low)
        while self.came(end):
            end += 1
        numbers = range(self.next, end)
        here = [number for number in numbers if self.came(number)]
        missing = [number for number in numbers if not self.came(number)]
        if self.next == 0 and missing[:1] == [0]:  # a reader begins where history does
            missing = [number for number in missing if here and number > here[0]]
        self.next = end
        ahead = [number for number in range(end, 20) if self.came(number)]
        if not ahead:
            self.hole = None
        elif self.hole is None or self.hole[0] != end:
            self.hole = (end, 0)
        gaps = [("gap", self.who, lo, hi) for lo, hi in runs(missing)]
        return [*gaps, *((self.who, number, self.body(number)) for number in here)]

    def wait(self, patience: int) -> Told:
        if self.hole is None:
            return []
        number, age = self.hole
        self.hole = (number, age + 1)
        if age + 1 < patience:
            return []
        self.hole = None
        start = next(number for number in range(self.next, 20) if self.came(number))
        gap = ("gap", self.who, self.next, start - 1)
        self.skipped |= {*range(self.next, start)}
        self.next = start
        return [gap, *self.follow()]


class ReaderAndTwin(RuleBasedStateMachine):
    """What is handed out, reported, waited for and skipped."""

    @initialize()
    def start(self) -> None:
        self.holdings = Holdings(MemoryStore())
        self.reader = Reader("t", self.holdings, ordered=True)
        self.twin: dict[Stream, NaiveReader] = {A: NaiveReader(A[0]), B: NaiveReader(B[0])}
        self.quiet, self.handed = 0, set[tuple[int, int]]()

    @rule(batch=st.lists(records, min_size=1, max_size=3), history=st.booleans())
    def arrive(self, batch: list[Record], history: bool) -> None:
        expected: Told = []
        parts: list[tuple[Stream, int, int, Record]] = []
        for one in batch:
            twin = self.twin[one.stream]
            if one in twin.held:
                continue
            new, disputed = twin.take(one)
            expected += [("equivocation", twin.who, lo, hi) for lo, hi in runs(disputed)]
            parts += [(one.stream, lo, hi, one) for lo, hi in runs(new)]
        if history and parts:
            self.quiet = 0
        for stream, lo, hi, one in sorted(parts, key=lambda part: part[:2]):
            expected += self.twin[stream].late(one, lo, hi)
        for stream in dict.fromkeys(one.stream for one in batch):
            expected += self.twin[stream].follow()
        effects = self.reader.arrived(self.holdings.append(batch), history=history)
        self.same(effects, expected)

    @rule(times=st.sampled_from([1, 1, PATIENCE - 1, PATIENCE]))
    def wait(self, times: int) -> None:
        for _ in range(times):
            self.quiet = min(self.quiet + 1, PATIENCE_MAX)
            patience = PATIENCE if self.quiet >= PATIENCE else PATIENCE_MAX
            order = list(self.reader.holes)
            expected = [it for stream in order for it in self.twin[stream].wait(patience)]
            self.same(self.reader.on_timeout(), expected)

    def same(self, effects: Sequence[Effect], expected: Told) -> None:
        assert in_short(effects) == expected
        for it in expected:
            if isinstance(it[0], int):
                assert it[:2] not in self.handed, "handed out twice"
                self.handed.add(it[:2])

    @invariant()
    def marks_say_how_far_it_is(self) -> None:
        for stream, twin in self.twin.items():
            mark = self.reader.marks.get(stream)
            assert (mark.next if mark else 0) == twin.next
            skipped = [n for lo, hi in (mark.skipped if mark else ()) for n in range(lo, hi)]
            assert skipped == sorted(twin.skipped)
            assert all(a < b for a, b in pairwise(skipped))
            assert self.reader.holes.get(stream) == twin.hole

    @invariant()
    def nothing_that_came_is_kept_back_but_behind_a_hole(self) -> None:
        for twin in self.twin.values():
            held = {number for one in twin.held for number in range(one.first, one.end)}
            waiting = {number for number in held if (twin.who, number) not in self.handed}
            assert all(number > twin.next for number in waiting)
            assert not waiting or twin.hole is not None


def test_a_reader_answers_as_one_that_looks_at_every_number_after_any_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "DISPUTES_MAX", 1000)  # as many bodies as there are
    run_state_machine_as_test(ReaderAndTwin)
