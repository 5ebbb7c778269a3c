"""What a store hands out: what a record brought, what a reader gets, what is not here."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from planaria.records.positions import Abandoned, Interval, Intervals, Mark
from planaria.records.record import Publication, Record, Stream


class Arrival(Struct, frozen=True, gc=False):
    """What a record brought: numbers to deliver, and numbers said otherwise before.

    `abandoned` are numbers that will not be delivered if they come: their stream has more holes
    than are remembered.
    """

    record: Record
    new: list[Interval]
    disputed: list[Interval]
    abandoned: Sequence[Abandoned] = ()


class Slice(Struct, frozen=True, gc=False):
    """Part of a record: its numbers from `lo` to before `hi`; `late` if they were skipped."""

    record: Record
    lo: int
    hi: int
    late: bool = False

    def publications(self) -> list[Publication]:
        """The publications themselves."""
        return self.record.publications(self.lo, self.hi)

    def runs(self, chosen: Iterable[bool]) -> list["Slice"]:
        """What is left of it: the longest parts of which all numbers are chosen."""
        found: list[Slice] = []
        start = None
        for number, wanted in enumerate(chosen, self.lo):
            if not wanted:
                start = None
            elif start is None:
                start = number
                found.append(Slice(self.record, start, start + 1, self.late))
            else:
                found[-1] = Slice(self.record, start, number + 1, self.late)
        return found


class Batch(NamedTuple):
    """What a reader gets, in publisher order, and from where to go on; is there `more` there?"""

    slices: list[Slice]
    vector: dict[Stream, Mark]
    more: bool = False

    def publications(self) -> list[Publication]:
        """The publications themselves, in order."""
        return [one for part in self.slices for one in part.publications()]


class Lacks(NamedTuple):
    """Which part of a range is not here: what may still come, and what is expired."""

    coming: dict[Stream, list[Interval]]
    expired: dict[Stream, list[Interval]]


def disputed(record: Record, others: Sequence[Record]) -> list[Interval]:
    """The numbers of a record that one of the others gives another body."""
    found = Intervals()
    for other in others:
        lo, hi = max(record.first, other.first), min(record.end, other.end)
        if lo < hi:  # else its entry is wrong: the audit mends it
            pairs = zip(record.publications(lo, hi), other.publications(lo, hi), strict=True)
            for mine, held in pairs:
                if mine[3:6] != held[3:6]:  # payload, key and headers
                    found.add(mine.sequence, mine.sequence + 1)
    return list(found)
