"""Which numbers of which streams: interval sets, reading vectors, the memory of what was delivered.

A position is (publisher, incarnation, sequence). Intervals are half open. A vector says how far
somebody has read: below `next` everything is settled but the numbers it skipped.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise
from struct import iter_unpack, pack
from typing import Annotated, NamedTuple

from msgspec import Meta, ValidationError, convert

from planaria.core.errors import UsageError
from planaria.core.ids import MODULUS, is_node_id
from planaria.core.state import State, Stateful
from planaria.records.record import INCARNATION_BYTES, SEQUENCE_MAX, Stream

STREAMS_MAX = 1 << 16  # remembered of one topic; then the one not heard of for longest is let go
INTERVALS_MAX = 1 << 12  # of one stream; beyond it the lowest hole is taken for delivered
SKIPPED_MAX = 1 << 10  # intervals that a reader may leave behind in one stream
# What a check multiplies by: odd and below 2^30, which Python multiplies by in half the time.
_A, _B, _C, _D = 0x1E3779B9, 0x2CB92BA7, 0x31B54A33, 0x3A942043

Interval = tuple[int, int]
Abandoned = tuple[Stream, int, int]  # an interval of a stream
_Number = Annotated[int, Meta(ge=0, le=SEQUENCE_MAX)]


class Intervals:
    """A set of numbers, as disjoint intervals that do not touch, in ascending order."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for lo, hi in intervals:
            self.add(lo, hi)

    def __iter__(self) -> Iterator[Interval]:
        return zip(self._starts, self._ends, strict=True)

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervals) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Intervals({list(self)})"

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number)
        return at > 0 and number < self._ends[at - 1]

    def add(self, lo: int, hi: int) -> list[Interval]:
        """Add the numbers from `lo` to before `hi`; returns those that were not in it."""
        if lo >= hi:
            return []
        if self._ends and self._ends[-1] == lo:  # what follows the last, as nearly always
            self._ends[-1] = hi
            return [(lo, hi)]
        new = self.missing(lo, hi)
        first = bisect_left(self._ends, lo)
        last = bisect_right(self._starts, hi)
        if first < last:
            lo, hi = min(lo, self._starts[first]), max(hi, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [lo], [hi]
        return new

    def remove(self, lo: int, hi: int) -> None:
        """Take the numbers from `lo` to before `hi` out."""
        if lo >= hi:
            return
        first, last = bisect_right(self._ends, lo), bisect_left(self._starts, hi)
        if first >= last:
            return
        rest = [(self._starts[first], lo), (hi, self._ends[last - 1])]
        rest = [(a, b) for a, b in rest if a < b]
        self._starts[first:last] = [a for a, _ in rest]
        self._ends[first:last] = [b for _, b in rest]

    def missing(self, lo: int, hi: int) -> list[Interval]:
        """The numbers from `lo` to before `hi` that are not in it."""
        missing = []
        for at in range(bisect_right(self._ends, lo), len(self._starts)):
            start, end = self._starts[at], self._ends[at]
            if start >= hi:
                break
            if lo < start:
                missing.append((lo, start))
            lo = end
        if lo < hi:
            missing.append((lo, hi))
        return missing

    def common(self, lo: int, hi: int) -> list[Interval]:
        """The numbers from `lo` to before `hi` that are in it."""
        common = []
        for at in range(bisect_right(self._ends, lo), len(self._starts)):
            if self._starts[at] >= hi:
                break
            common.append((max(lo, self._starts[at]), min(hi, self._ends[at])))
        return common

    @property
    def end(self) -> int:
        """The number after the last; 0 if there is none."""
        return self._ends[-1] if self._ends else 0

    def contiguous(self, start: int) -> int:
        """The first number from `start` on that is not in it."""
        at = bisect_right(self._starts, start)
        return max(start, self._ends[at - 1]) if at else start

    def sums(self) -> tuple[int, int, int]:
        """Three numbers that hardly stay the same when a fault changes an interval."""
        return len(self._starts), sum(self._starts), sum(self._ends)

    def pack(self) -> bytes:
        """All intervals as bytes, for a store."""
        return pack(f"<{2 * len(self)}Q", *chain.from_iterable(self))

    @classmethod
    def unpack(cls, data: bytes) -> "Intervals":
        """The intervals that `pack` made; raises ValueError if nothing can have made them."""
        if len(data) % 16:
            raise ValueError(f"intervals in {len(data)} bytes")
        pairs = list(iter_unpack("<QQ", data))
        flat = [number for pair in pairs for number in pair]
        if any(a >= b for a, b in pairwise(flat)):
            raise ValueError("intervals that do not ascend")
        return cls(pairs)


class Mark(NamedTuple):
    """How far one stream is read: all below `next` but `skipped`, which may come as late."""

    next: int
    skipped: tuple[Interval, ...] = ()


START = Mark(0)
Vector = Mapping[Stream, Mark]


def skip(vector: Vector, stream: Stream, before: int) -> dict[Stream, Mark]:
    """The vector of a reader that waits no longer for what it lacks of a stream below `before`.

    The numbers stay in it as skipped, and are read as late when they come.
    """
    mark = vector.get(stream, START)
    if before <= mark.next:
        return dict(vector)
    skipped = Intervals(mark.skipped)
    skipped.add(mark.next, before)
    if len(skipped) > SKIPPED_MAX:
        raise UsageError(f"{len(skipped)} holes skipped in one stream: at most {SKIPPED_MAX}")
    return {**vector, stream: Mark(before, tuple(skipped))}


def vector_to_json(vector: Vector) -> dict[str, int | list[list[int]]]:
    """Plain values, such as offsets are kept in: `publisher/incarnation` to `next`.

    Skipped intervals follow as a list after [next].
    """
    return {
        f"{publisher}/{incarnation.hex()}": (
            [[mark.next], *map(list, mark.skipped)] if mark.skipped else mark.next
        )
        for (publisher, incarnation), mark in sorted(vector.items())
    }


def vector_from_json(value: object) -> dict[Stream, Mark]:
    """The vector in plain values; raises UsageError, in one line, if there is none in them."""
    try:
        plain = convert(value, dict[str, _Number | list[list[_Number]]])
    except ValidationError as error:
        raise UsageError(f"no vector of positions: {error}") from None
    return {_stream(name): _mark(name, mark) for name, mark in plain.items()}


def _stream(name: str) -> Stream:
    publisher, _, incarnation = name.partition("/")
    try:
        stream = int(publisher), bytes.fromhex(incarnation)
    except ValueError:
        raise UsageError(f"no stream: {name:.80}; it is publisher/incarnation") from None
    if not is_node_id(stream[0]) or len(stream[1]) != INCARNATION_BYTES:
        raise UsageError(f"no stream: {name:.80}; it is publisher/incarnation")
    return stream


def _mark(name: str, value: int | list[list[int]]) -> Mark:
    if isinstance(value, int):
        return Mark(value)
    if [len(part) for part in value] != [1, *[2] * (len(value) - 1)] or len(value) > SKIPPED_MAX:
        raise UsageError(f"stream {name:.80}: not [[next], [from, to], ...]")
    flat = [number for part in value[1:] for number in part]
    if any(a >= b for a, b in pairwise([*flat, value[0][0] + 1])):
        raise UsageError(f"stream {name:.80}: skipped intervals must ascend up to {value[0][0]}")
    return Mark(value[0][0], tuple((lo, hi) for lo, hi in value[1:]))


class DeliveredState(State):
    """The intervals of each stream, the newest time heard of it, and a check of both."""

    streams: dict[tuple[int, bytes], tuple[list[tuple[int, int]], int, int]]
    given_up: int


class Delivered(Stateful):
    """The positions that were delivered, which outlive the records: none is delivered twice.

    A false mark would swallow a publication that is yet to come. So each stream's marks have a
    check; marks that a fault changed do not fit it and are forgotten.
    """

    __slots__ = ("_streams", "abandoned", "given_up")
    state_type = DeliveredState

    def __init__(self) -> None:
        # The least recently heard of first: numbers, newest time, check.
        self._streams: dict[Stream, tuple[Intervals, int, int]] = {}
        self.given_up = 0  # numbers that will not be delivered: a stream had too many holes
        self.abandoned: list[Abandoned] = []  # those of them that nobody was told of yet

    def state(self) -> DeliveredState:
        """All marks."""
        found = {
            stream: ([*numbers], newest, check)
            for stream, (numbers, newest, check) in self._streams.items()
        }
        return DeliveredState(found, self.given_up)

    def load(self, state: State) -> None:
        """Take these marks, right or wrong."""
        assert isinstance(state, DeliveredState)
        self.given_up = state.given_up
        self._streams = {
            stream: (Intervals(numbers), newest, check)
            for stream, (numbers, newest, check) in state.streams.items()
        }

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, stream: Stream, lo: int, hi: int, time: int) -> list[Interval]:
        """Mark numbers as delivered; returns those that were not before."""
        found = self._streams.pop(stream, None)
        numbers, newest, check = (Intervals(), time, -1) if found is None else found
        if check != _check(numbers, newest):
            numbers, newest = Intervals(), time
        elif (ends := numbers._ends) and ends[-1] == lo < hi and time <= newest:
            ends[-1] = hi  # what follows the last, as nearly always: the check grows with it
            self._streams[stream] = (numbers, newest, (check + (hi - lo) * _D) % MODULUS)
            return [(lo, hi)]
        new = numbers.add(lo, hi)
        if len(numbers._starts) > INTERVALS_MAX:
            (_, end), (start, _) = list(numbers)[:2]
            numbers.add(end, start)
            self.given_up += start - end
            self.abandoned.append((stream, end, start))
        if time > newest:
            newest = time
        self._streams[stream] = (numbers, newest, _check(numbers, newest))
        return new

    def drop(self, stream: Stream) -> None:
        """Forget a stream."""
        self._streams.pop(stream, None)

    def numbers(self, stream: Stream) -> Intervals:
        """The delivered numbers of a stream; not to be changed."""
        found = self._streams.get(stream)
        return Intervals() if found is None else found[0]

    def newest(self, stream: Stream) -> int:
        """The newest time heard of a stream."""
        found = self._streams.get(stream)
        return 0 if found is None else found[1]

    def forget(self, before: int, held: Callable[[Stream], bool]) -> list[Stream]:
        """Forget streams of which nothing was heard since the second `before`, or too many.

        Never one of which a record is held: it could be delivered again under another key.
        """
        silent = [stream for stream, (_, newest, _) in self._streams.items() if newest < before]
        gone = {stream: None for stream in silent if not held(stream)}
        surplus = len(self._streams) - len(gone) - STREAMS_MAX
        if surplus > 0:
            rest = (it for it in self._streams if it not in gone and not held(it))
            gone.update(dict.fromkeys(islice(rest, surplus)))
        for stream in gone:
            del self._streams[stream]
        return [*gone]


def _check(numbers: Intervals, newest: int) -> int:
    """A number that marks and time changed by a fault hardly have; no secret, and the same
    everywhere. It is asked for twice with every record: so it is not `mixed`."""
    starts, ends = numbers._starts, numbers._ends
    if len(starts) == len(ends) == 1:  # as nearly always
        return (newest * _A + _B + starts[0] * _C + ends[0] * _D) % MODULUS
    return (newest * _A + len(starts) * _B + sum(starts) * _C + sum(ends) * _D) % MODULUS
