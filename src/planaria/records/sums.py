"""Sums over record keys: a cheap hint whether two stores show the same.

Additive, so that a record costs one addition. A sum that differs proves a difference; one that
agrees proves nothing to whoever may face forged records: the descent and the audit do not use it.
"""

from bisect import bisect_left, insort
from typing import NamedTuple

from planaria.records.record import RECORD_KEY_BITS, Place

# What is stamped so far ahead of the cut is not on its way any more: a clock is wrong, and a
# digest that waited for its time would not cover it for years.
ON_THE_WAY_SECONDS = 60
KEY_MASK = (1 << RECORD_KEY_BITS) - 1


class Sum(NamedTuple):
    """The keys of some records added up, and how many there are."""

    keys: int = 0
    records: int = 0


NO_SUM = Sum()


def compared(time: int, cut: int) -> bool:
    """Does a digest with this cut cover a record of this second? Both ends judge by it alone."""
    return time < cut or time >= cut + ON_THE_WAY_SECONDS


class Sums:
    """The sum of each second's records, and of all."""

    __slots__ = ("_seconds", "_times", "_total")

    def __init__(self) -> None:
        self._seconds: dict[int, Sum] = {}
        self._times: list[int] = []
        self._total = NO_SUM

    def add(self, place: Place, sign: int) -> None:
        """Count a record in (+1) or out (-1)."""
        time, key = place >> RECORD_KEY_BITS, place & KEY_MASK
        before = self._seconds.get(time)
        if before is None:
            before = NO_SUM
            insort(self._times, time)
        after = Sum(before.keys + sign * key & KEY_MASK, before.records + sign)
        if after.records > 0:
            self._seconds[time] = after
        else:
            self._seconds.pop(time, None)
            del self._times[bisect_left(self._times, time)]
        total = self._total
        self._total = Sum(total.keys + sign * key & KEY_MASK, total.records + sign)

    def digest(self, lo: int, cut: int) -> Sum:
        """The sum of what a digest from the second `lo` on covers at `cut`.

        Subtracts what is on its way, and what is older than `lo`: both few.
        """
        times = self._times
        older = times[: bisect_left(times, lo)]
        newer = bisect_left(times, max(lo, cut)), bisect_left(times, cut + ON_THE_WAY_SECONDS)
        keys, count = self._total
        for time in older + times[newer[0] : newer[1]]:
            part = self._seconds[time]
            keys, count = keys - part.keys, count - part.records
        return Sum(keys & KEY_MASK, count)

    def buckets(self, lo: int, cut: int, seconds: int) -> dict[int, Sum]:
        """The same, divided into buckets of so many seconds, by their first second."""
        found: dict[int, Sum] = {}
        for time in self._times[bisect_left(self._times, lo) :]:
            if compared(time, cut):
                part, start = self._seconds[time], time // seconds * seconds
                sum = found.get(start, NO_SUM)
                found[start] = Sum(sum.keys + part.keys & KEY_MASK, sum.records + part.records)
        return found


def by_prefix(places: list[Place], bits: int) -> dict[int, Sum]:
    """The sums of these records divided by the first `bits` of their keys."""
    found: dict[int, Sum] = {}
    for place in places:
        key = place & KEY_MASK
        prefix = key >> RECORD_KEY_BITS - bits
        sum = found.get(prefix, NO_SUM)
        found[prefix] = Sum(sum.keys + key & KEY_MASK, sum.records + 1)
    return found
