"""How far the next batch goes, and how its ranges are divided among tasks. Pure arithmetic."""

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from planaria.records.positions import START, Intervals, Mark
from planaria.records.record import Stream
from planaria.spark.source.offsets import Range, Vectors, between, merged, taken

Lows = Mapping[str, Mapping[Stream, int]]  # by topic and stream: below nothing is left

TASK_ROWS = 1 << 15  # a task of fewer rows costs more to start than it saves


class Work(NamedTuple):
    """What one task reads: ranges of one or several topics, in order."""

    ranges: tuple[Range, ...]

    @property
    def size(self) -> int:
        """How many numbers they have."""
        return sum(it.size for it in self.ranges)


def advance(start: Vectors, have: Vectors, lows: Lows, limit: int | None) -> Vectors:
    """How far a batch of at most `limit` rows goes from `start`, towards all that there is.

    Every stream gets its share of the rows, by what is waiting in it. What is expired counts for
    nothing.
    """
    end = merged(start, have)
    if limit is None:
        return end
    ranges = between(start, end)
    counts = [_rows(it, lows) for it in ranges]
    total = sum(counts)
    if total <= limit:
        return end
    shares = _shares(counts, total, limit)
    reached = {topic: dict(vector) for topic, vector in start.items()}
    each = zip(ranges, counts, shares, strict=True)
    for (topic, stream), parts in groupby(each, key=lambda it: (it[0].topic, it[0].stream)):
        mark = reached.get(topic, {}).get(stream, START)
        got = _taken(mark, [(it, count, share) for it, count, share in parts if share], lows)
        if got != mark:
            reached.setdefault(topic, {})[stream] = got
    return reached


def _rows(it: Range, lows: Lows) -> int:
    low = lows.get(it.topic, {}).get(it.stream, 0)
    return max(0, it.hi - max(it.lo, low))


def _shares(counts: Sequence[int], total: int, limit: int) -> list[int]:
    """Divide `limit` in proportion, without remainder: the largest fractions are rounded up."""
    shares = [count * limit // total for count in counts]
    left = limit - sum(shares)
    order = sorted(range(len(counts)), key=lambda at: -(counts[at] * limit % total))
    for at in order[:left]:
        shares[at] += 1
    return shares


def _taken(mark: Mark, parts: Sequence[tuple[Range, int, int]], lows: Lows) -> Mark:
    """The mark of a reader that takes the first `share` rows of each of these ranges."""
    reach = [
        (it.lo, it.hi if share >= count else _upto(it, share, lows)) for it, count, share in parts
    ]
    if not mark.skipped and len(reach) == 1 and reach[0][0] == mark.next:
        return Mark(reach[0][1])
    have = Intervals([*taken(mark), *reach])
    return Mark(have.end, tuple(have.missing(0, have.end)))


def _upto(it: Range, share: int, lows: Lows) -> int:
    return max(it.lo, lows.get(it.topic, {}).get(it.stream, 0)) + share


def tasks_for(ranges: Sequence[Range], lows: Lows, wanted: int | None) -> int:
    """How many tasks read these ranges, unless that is `wanted`: one for each core at most."""
    if wanted is not None:
        return wanted
    rows = sum(_rows(it, lows) for it in ranges)
    return max(1, min(os.cpu_count() or 1, -(-rows // TASK_ROWS)))


def divide(ranges: Sequence[Range], tasks: int, lows: Lows) -> list[Work]:
    """The ranges in at most so many parts with about as many rows each, in their order."""
    total = sum(_rows(it, lows) for it in ranges)
    tasks = max(1, min(tasks, total))
    works: list[list[Range]] = [[]]
    room = share = -(-total // tasks) if total else 0
    for it in ranges:
        low = lows.get(it.topic, {}).get(it.stream, 0)
        lo = it.lo
        while lo < it.hi:
            if room <= 0 and len(works) < tasks:
                works.append([])
                room = share
            hi = it.hi if len(works) == tasks else min(it.hi, max(lo, low) + room)
            works[-1].append(it._replace(lo=lo, hi=hi))
            room -= _rows(works[-1][-1], lows)
            lo = hi
    return [Work(tuple(part)) for part in works if part]
