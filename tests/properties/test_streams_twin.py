"""Publisher order at a subscriber against a memory that looks at every number, step by step."""

from collections import defaultdict
from collections.abc import Iterable
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
from planaria.protocols.publications import streams as module
from planaria.protocols.publications.publication import Publication
from planaria.protocols.publications.streams import Streams

STREAMS_MAX, WAITING_MAX, PATIENCE = 3, 3, 4
INCARNATION = 77

numbers = st.integers(0, 12)
publications = st.builds(
    Publication,
    st.sampled_from([1, 1, 1, 2, 3, 4]),
    st.just(INCARNATION),
    numbers,
    st.just(0) | st.just(0) | numbers,
    st.integers(0, 9),
    st.sampled_from([b"said", b"said", b"otherwise"]),
)
Told = dict[int, list[Any]]  # publisher: numbers delivered and notices, in their order


def told(effects: Iterable[Effect]) -> Told:
    found: Told = defaultdict(list)
    for it in effects:
        if isinstance(it, Deliver):
            assert it.publisher is not None
            found[it.publisher].append((it.sequence, it.payload))
        elif isinstance(it, Notice):
            detail = dict(it.detail)
            assert detail.pop("incarnation") == INCARNATION
            detail.pop("msg_id", None)
            found[int(detail.pop("publisher"))].append((it.kind, *detail.values()))
    return found


class NaiveStream:
    """One stream: `next` goes on number by number."""

    def __init__(self, start: int, ordered: bool) -> None:
        self.next, self.ordered, self.newest = start, ordered, 0
        self.waiting: dict[int, tuple[int, bytes]] = {}  # number: since when, what

    def settle(self, lost: int) -> list[Any]:
        """Everything up to the first number that is missing and not given up (below `lost`)."""
        out: list[Any] = []
        missing: list[int] = []
        while self.next in self.waiting or self.next < lost:
            if self.next in self.waiting:
                out += [("gap", missing[0], missing[-1])] if missing else []
                missing = []
                payload = self.waiting.pop(self.next)[1]
                out += [(self.next, payload)] if self.ordered else []
            else:
                missing.append(self.next)
            self.next += 1
        return out + ([("gap", missing[0], missing[-1])] if missing else [])

    def give_up(self) -> list[Any]:
        return self.settle(min(self.waiting))


class StreamsAndMemory(RuleBasedStateMachine):
    """What is delivered, reported and waited for, with bounds so small that all are reached."""

    @initialize(ordered=st.booleans())
    def start(self, ordered: bool) -> None:
        self.ordered, self.now = ordered, 0
        self.marked: list[Publication] = []
        self.streams = Streams("t", ordered, PATIENCE, self.marked.append)
        self.twin: dict[int, NaiveStream] = {}
        self.said: dict[tuple[int, int], bytes] = {}
        self.settled: list[tuple[int, int]] = []

    def forget(self, publisher: int) -> list[Any]:
        stream, out = self.twin.pop(publisher), []
        while stream.waiting:
            out += stream.give_up()
        return out

    def offered(self, it: Publication) -> Told:
        """What the twin does with a publication."""
        out: Told = defaultdict(list)
        low = min(it.low, it.sequence)
        stream = self.twin.pop(it.publisher, None)
        if stream is None:
            stream = NaiveStream(low, self.ordered)
            if len(self.twin) == STREAMS_MAX:
                quietest = next(iter(self.twin))
                out[quietest] += self.forget(quietest)
        self.twin[it.publisher] = stream
        stream.newest = max(stream.newest, it.time)
        mine, name = out[it.publisher], (it.publisher, it.sequence)
        if name in self.said:
            if self.said[name] != it.payload:
                mine += [("equivocation", it.sequence), (it.sequence, it.payload)]
            return out
        self.said[name] = it.payload
        if it.sequence < stream.next:
            mine += [("late", it.sequence), (it.sequence, it.payload)]
            return out
        mine += [] if self.ordered else [(it.sequence, it.payload)]
        stream.waiting[it.sequence] = (self.now, it.payload)
        mine += stream.settle(low)
        if len(stream.waiting) > WAITING_MAX:
            mine += stream.give_up()
        return out

    def same(self, effects: list[Effect], expected: Told) -> None:
        found = told(effects)
        assert found == {publisher: out for publisher, out in expected.items() if out}
        for publisher, out in expected.items():
            for before, it in pairwise([("", 0), *out]):
                if isinstance(it[0], int) and before[0] not in ("late", "equivocation"):
                    self.settled.append((publisher, it[0]))

    @rule(publication=publications)
    def offer(self, publication: Publication) -> None:
        expected = self.offered(publication)
        self.same(self.streams.offer(publication), expected)

    @rule()
    def wait(self) -> None:
        self.same(self.streams.on_timeout(0), self.waited())

    def waited(self) -> Told:
        self.now += 1
        out: Told = defaultdict(list)
        for publisher, stream in self.twin.items():
            while any(self.now - since >= PATIENCE for since, _ in stream.waiting.values()):
                out[publisher] += stream.give_up()
        return out

    @rule(lo=st.integers(0, 9))
    def expire(self, lo: int) -> None:
        """Streams are examined in turn; after as many timeouts as there are, each has been."""
        effects: list[Effect] = []
        expected: Told = defaultdict(list)
        for _ in range(STREAMS_MAX):
            effects += self.streams.on_timeout(lo)
            for publisher, out in self.waited().items():
                expected[publisher] += out
        for publisher in [it for it, stream in self.twin.items() if stream.newest < lo]:
            expected[publisher] += self.forget(publisher)
        self.same(effects, expected)

    @invariant()
    def tells_how_far_each_stream_is(self) -> None:
        assert len(self.streams) == len(self.twin)
        vector = {f"{it}/{INCARNATION}": stream.next - 1 for it, stream in self.twin.items()}
        assert self.streams.vector() == {it: last for it, last in vector.items() if last >= 0}
        some = [1, 3]
        assert self.streams.vector(some) == {
            f"{it}/{INCARNATION}": self.twin[it].next - 1
            for it in some
            if it in self.twin and self.twin[it].next > 0
        }

    @invariant()
    def marks_what_leaves_the_waiting_room(self) -> None:
        """Only in order does anything wait there."""
        marked = [(it.publisher, it.sequence) for it in self.marked]
        assert sorted(marked) == (sorted(self.settled) if self.ordered else [])


def test_streams_answer_as_a_memory_of_every_number_after_any_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STREAMS_MAX", STREAMS_MAX)
    monkeypatch.setattr(module, "WAITING_MAX", WAITING_MAX)
    run_state_machine_as_test(StreamsAndMemory)
