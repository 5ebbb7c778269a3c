"""Which records a reader gets next, by its vector: everything but their bytes."""

from collections.abc import Iterator, Sequence

from planaria.records.batches import Lacks
from planaria.records.index import Index
from planaria.records.lanes import Entry, Lane, Segment
from planaria.records.positions import START, Intervals, Mark, Vector
from planaria.records.record import Stream

Part = tuple[Entry, int, int, bool]  # an entry, which of its numbers, and were they skipped?


def range_of(
    index: Index,
    streams: Sequence[Stream],
    after: Vector,
    to: Vector | None,
    floor: int,
    limit: int,
    size: int,
) -> tuple[list[Part], dict[Stream, Mark], bool]:
    """The parts of a batch, `limit` publications and `size` bytes at most, the vector after it,
    and whether there is more.

    See `Store.read`. A record larger than `size` comes alone. Raises ValueError if the index says
    that something is here, or gone, and it is not: no reader passes it for that.
    """
    wanted: list[Part] = []
    vector, room = dict(after), limit
    for stream in streams:
        lane = index.lanes.get(stream)
        if lane is None:
            continue
        mark = after.get(stream) or Mark(lane.since(floor))
        end = lane.settled(mark.next)
        if to is not None:
            end = min(end, to.get(stream, START).next)
        at = mark.next
        for entry, lo, hi, late in _parts(lane, mark, end):
            if not late:
                check_passed(lane, at, lo)
                at = hi
            if room <= 0 or (wanted and entry.size > size):
                return wanted, vector, True
            cut = min(hi, lo + room)
            wanted.append((entry, lo, cut, late))
            room, size = room - (cut - lo), size - entry.size
            vector[stream] = _passed(vector.get(stream, mark), lo, cut)
            if cut < hi:
                return wanted, vector, True
        check_passed(lane, at, end)
        if end > mark.next or mark.skipped:
            vector[stream] = _settled(lane, vector.get(stream, mark), end)
    return wanted, vector, False


def check_parts(lane: Lane, start: int, parts: Sequence[Segment], end: int) -> None:
    """Raise ValueError if a reader that gets these parts would pass what may still come."""
    for _, lo, hi in parts:
        check_passed(lane, start, lo)
        start = hi
    check_passed(lane, start, end)


def check_passed(lane: Lane, lo: int, hi: int) -> None:
    """Raise ValueError if these numbers, which a reader does not get, may still come."""
    if lo < hi and not lane.passes(lo, hi):
        raise ValueError("a stream has neither kept nor dropped what it says it covers")


def _parts(lane: Lane, mark: Mark, end: int) -> Iterator[Part]:
    """What came of the numbers that a reader skipped, then what follows up to `end`."""
    for lo, hi in mark.skipped:
        for part in lane.segments(lo, hi):
            yield *part, True
    for part in lane.segments(mark.next, end):
        yield *part, False


def _passed(mark: Mark, lo: int, hi: int) -> Mark:
    """The mark of a reader that was given these numbers; below `next` they were skipped."""
    if lo >= mark.next:
        return Mark(hi, mark.skipped)
    skipped = Intervals(mark.skipped)
    skipped.remove(lo, hi)
    return Mark(mark.next, tuple(skipped))


def _settled(lane: Lane, mark: Mark, end: int) -> Mark:
    """The mark of a reader that was given all up to `end`: what is expired is not waited for."""
    skipped = Intervals(mark.skipped)
    skipped.remove(0, lane.floor)
    return Mark(max(mark.next, end), tuple(skipped))


def lacks_of(index: Index, after: Vector, to: Vector) -> Lacks:
    """Which part of a range cannot be read."""
    lacks = Lacks({}, {})
    for stream in sorted(to):
        lane = index.lanes.get(stream) or Lane(stream)
        parts = lane.missing(after.get(stream, START).next, to[stream].next)
        for kind, intervals in zip(lacks, parts, strict=True):
            if intervals:
                kind[stream] = intervals
    return lacks
