"""Sums over record keys: a cheap hint whether two stores show the same.

Additive, so that a record costs one addition. A sum that differs proves a difference; one that
agrees proves nothing to whoever may face forged records: the descent and the audit do not use it.
"""

from bisect import bisect_left, insort
from operator import itemgetter
from typing import NamedTuple

from planaria.records.record import RECORD_KEY_BITS, TIME_MAX, Place

# What is stamped so far ahead of the cut is not on its way any more: a clock is wrong, and a
# digest that waited for its time would not cover it for years.
ON_THE_WAY_SECONDS = 8
KEY_MASK = (1 << RECORD_KEY_BITS) - 1


class Sum(NamedTuple):
    """The keys of some records added up, and how many there are."""

    keys: int = 0
    records: int = 0


NOTHING = Sum()
_KEYS, _RECORDS = itemgetter(0), itemgetter(1)


def compared(time: int, cut: int) -> bool:
    """Does a digest with this cut cover a record of this second? Both ends judge by it alone.

    The last cut of all covers everything.
    """
    return time < cut or time >= cut + ON_THE_WAY_SECONDS or cut >= TIME_MAX


class Sums:
    """The sum of each second's records, and of all."""

    __slots__ = ("_seconds", "_times", "_total")

    def __init__(self) -> None:
        self._seconds: dict[int, tuple[int, int]] = {}  # keys and records, as in a `Sum`
        self._times: list[int] = []
        self._total = (0, 0)

    def add(self, place: Place, sign: int) -> None:
        """Count a record in (+1) or out (-1)."""
        time, key = place >> RECORD_KEY_BITS, place & KEY_MASK
        if sign < 0:
            key = -key
        before = self._seconds.get(time)
        if before is None:
            keys = records = 0
            if not self._times or time > self._times[-1]:
                self._times.append(time)
            else:
                insort(self._times, time)
        else:
            keys, records = before
        if records + sign > 0:
            self._seconds[time] = (keys + key & KEY_MASK, records + sign)
        else:
            self._seconds.pop(time, None)
            del self._times[bisect_left(self._times, time)]
        keys, records = self._total
        self._total = (keys + key & KEY_MASK, records + sign)

    def of(self, second: int) -> tuple[int, int]:
        """The sum of one second's keys, and how many they are."""
        return self._seconds.get(second, (0, 0))

    def add_up(self, records: int) -> bool:
        """Is the sum of all that of the seconds, and are there so many records?"""
        keys, counts = (
            sum(map(_KEYS, self._seconds.values())),
            map(_RECORDS, self._seconds.values()),
        )
        total = (keys & KEY_MASK, sum(counts))
        return self._total == total and total[1] == records and self._times == sorted(self._seconds)

    def digest(self, lo: int, cut: int) -> Sum:
        """The sum of what a digest from the second `lo` on covers at `cut`.

        Subtracts what is on its way, and what is older than `lo`: both few.
        """
        times = self._times
        if not times and self._total == NOTHING:
            return NOTHING
        if cut >= TIME_MAX:
            cut = TIME_MAX + 1
        older = times[: bisect_left(times, lo)]
        newer = bisect_left(times, max(lo, cut)), bisect_left(times, cut + ON_THE_WAY_SECONDS)
        keys, count = self._total
        for time in older + times[newer[0] : newer[1]]:
            part = self._seconds[time]
            keys, count = keys - part[0], count - part[1]
        return Sum(keys & KEY_MASK, count)
