"""What is known of each stream's records: where they stand, what they cover, what is gone.

Derived from the records alone, and small: no payloads. An entry with its share of the tables
around it takes about 500 bytes, whatever the record's size (`benchmarks/records.py`).
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush
from struct import Struct as Layout

from msgspec import Struct

from planaria.core.ids import NodeId, mixed
from planaria.records.positions import Interval, Intervals
from planaria.records.record import RECORD_KEY_BITS, Place, Record, Stream

_GONE = Layout("<QQQ")

Segment = tuple["Entry", int, int]  # an entry, and which of its numbers


class Entry(Struct, gc=False, eq=False):
    """A record without its bytes. `row` is where the store keeps them.

    `check` is a checksum of bytes that were its record's, and of its place; a store takes it to
    know them again at less cost than by their key.
    """

    place: Place
    stream: Stream
    first: int
    end: int
    size: int
    row: int = 0
    check: int | None = None

    @classmethod
    def of(cls, record: Record) -> "Entry":
        """The entry of a record."""
        first = record.first
        stream = (record.publisher, record.incarnation)
        return cls(record.place, stream, first, first + record.count, len(record.data))

    def describes(self, record: Record) -> bool:
        """Does it say what the record says?"""
        return (
            self.place == record.place
            and self.first == record.first
            and self.end == record.first + record.count
            and self.size == len(record.data)
            and self.stream == (record.publisher, record.incarnation)
        )

    def describe(self, record: Record) -> None:
        """Say what the record says."""
        self.place, self.stream, self.first = record.place, record.stream, record.first
        self.end, self.size = record.end, len(record.data)

    @property
    def publisher(self) -> NodeId:
        """Whose quota it counts in."""
        return self.stream[0]

    @property
    def count(self) -> int:
        """How many publications it holds."""
        return self.end - self.first

    @property
    def time(self) -> int:
        """The second it was sealed in."""
        return self.place >> RECORD_KEY_BITS


class Drops:
    """The numbers of a stream that a window dropped, and what cannot come any more.

    A publisher's times never decrease. So once a record of a later second is dropped, nothing
    numbered below one of an earlier second will be kept: below `firm` no number may still come.
    Within the last second the order is that of keys, and numbers dropped there are just `last`.

    Of what is deleted nothing else is left to compare this with: a check tells whether a fault
    changed it.
    """

    __slots__ = ("check", "firm", "last", "time")

    def __init__(self, firm: int = 0) -> None:
        self.firm = firm
        self.time = 0
        self.last = Intervals()
        self.check = self._sum()

    @property
    def intact(self) -> bool:
        """Is this what was noted?"""
        return self.check == self._sum()

    def drop(self, entry: Entry, *, aged: bool) -> None:
        """Note a record that fell out of the window, by its age or by a count."""
        if aged or entry.time < self.time:
            self.firm = max(self.firm, entry.end)
        else:
            if entry.time > self.time:
                self.firm = max([self.firm, *(end for _, end in self.last)])
                self.time, self.last = entry.time, Intervals()
            self.last.add(entry.first, entry.end)
        self.check = self._sum()

    def rise(self, firm: int) -> None:
        """Note that nothing below this number will come."""
        if firm > self.firm:
            self.firm = firm
            self.check = self._sum()

    def pack(self) -> bytes:
        """All of it as bytes, for a store."""
        return _GONE.pack(self.firm, self.time, len(self.last)) + self.last.pack()

    @classmethod
    def unpack(cls, data: bytes) -> tuple["Drops", bytes]:
        """What `pack` made, and the bytes after it; raises ValueError otherwise."""
        drops = cls()
        if len(data) < _GONE.size:
            raise ValueError(f"drops in {len(data)} bytes")
        drops.firm, drops.time, size = _GONE.unpack_from(data)
        end = _GONE.size + 16 * size
        drops.last = Intervals.unpack(data[_GONE.size : end])
        drops.check = drops._sum()
        return drops, data[end:]

    def _sum(self) -> int:
        return mixed(self.firm, self.time, *self.last.sums())


class Lane:
    """One stream: its shown records by number, and up to where nothing is missing."""

    __slots__ = ("covered", "entries", "gone", "hid", "longest", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream  # the one that its entries share
        self.entries: list[Entry] = []
        self.longest = 0  # no entry has more publications
        self.covered = Intervals()
        self.gone = Drops()  # deleted, never kept, or no longer vouched for by the publisher
        self.hid = Drops()  # hidden: comes back with the window

    @property
    def floor(self) -> int:
        """Below this number nothing may still come."""
        return max(self.gone.firm, self.hid.firm)

    @property
    def empty(self) -> bool:
        """Is nothing known of this stream?"""
        return not (self.entries or self.floor or self.gone.last or self.hid.last)

    def clear(self) -> None:
        """Forget what is shown."""
        self.entries, self.covered, self.longest = [], Intervals(), 0

    def derive(self) -> None:
        """Put entries that were added in any order by number, and say what they cover."""
        self.entries.sort(key=number_of)
        self.longest = max((entry.end - entry.first for entry in self.entries), default=0)
        for entry in self.entries:
            self.covered.add(entry.first, entry.end)

    def show(self, entry: Entry) -> None:
        """Take an entry up."""
        entries, first, end = self.entries, entry.first, entry.end
        if entries and first <= entries[-1].first:
            insort(entries, entry, key=number_of)
        else:
            entries.append(entry)
        if end - first > self.longest:
            self.longest = end - first
        self.covered.add(first, end)

    def unshow(self, entry: Entry) -> None:
        """Take an entry out; what another one covers stays covered."""
        at = bisect_left(self.entries, number_of(entry), key=number_of)
        if self.entries[at : at + 1] != [entry]:
            return
        del self.entries[at]
        self.covered.remove(entry.first, entry.end)
        for other in list(self.overlapping(entry.first, entry.end)):
            self.covered.add(other.first, other.end)

    def covers(self, entry: Entry) -> bool:
        """Are the numbers that an entry says it has among those shown?

        Asked before it is dropped: what a fault added to them readers would pass.
        """
        numbers = (entry.first, entry.end)
        return self.covered.common(*numbers) == [numbers]

    def hides(self, entry: Entry) -> bool:
        """The same of an entry that is hidden."""
        numbers = (max(entry.first, self.hid.firm), entry.end)
        return numbers[0] >= entry.end or self.hid.last.common(*numbers) == [numbers]

    def vouch(self, low: int) -> None:
        """The publisher vouches for nothing below `low`: so the topic is bounded."""
        if low > self.gone.firm:
            self.recall(bounded=True)
            self.gone.rise(low)

    def erase(self, entry: Entry, *, aged: bool) -> None:
        """Remember of a record that is not held what cannot come any more."""
        self.recall(bounded=True)
        self.gone.drop(entry, aged=aged)

    def recall(self, *, bounded: bool) -> bool:
        """Forget what a fault made of the memory of what is gone; was it intact?

        In a topic that is `bounded` something had been dropped, and readers who waited for it would
        wait for ever: there all below the first record shown is taken for gone.
        """
        if self.gone.intact:
            return True
        self.gone = Drops(self.entries[0].first if bounded and self.entries else 0)
        return False

    def overlapping(self, lo: int, hi: int) -> Iterator[Entry]:
        """The entries with a number from `lo` to before `hi`, by number."""
        start = bisect_left(self.entries, (lo - self.longest, 0), key=number_of)
        for at in range(start, len(self.entries)):
            entry = self.entries[at]
            if entry.first >= hi:
                return
            if entry.end > lo:
                yield entry

    @property
    def end(self) -> int:
        """The number after all that is here or was."""
        return max(self.settled(0), self.covered.end)

    def since(self, floor: int) -> int:
        """The number after all that is known to be older than the second `floor`.

        Times of a stream never decrease. What is missing before the first record from then on may
        be of either side: it is not passed.
        """
        if floor <= 0:
            return 0
        at = bisect_left(self.entries, floor, key=_time)
        start = self.entries[at - 1].end if at else 0
        older = True
        while older:
            beyond = [it.end for it in self.overlapping(start, start + 1) if it.time < floor]
            older, start = bool(beyond), max([start, *beyond])
        return start

    def settled(self, start: int) -> int:
        """The first number from `start` and the floor on that may still come."""
        at = max(start, self.floor)
        while True:
            end = self.covered.contiguous(at)
            end = self.gone.last.contiguous(end)
            end = self.hid.last.contiguous(end)
            if end == at:
                return at
            at = end

    def passes(self, lo: int, hi: int) -> bool:
        """May a reader pass these numbers and get nothing: is all of it gone, and no fault's work?

        What a reader has passed it never asks for again, at no store.
        """
        if lo >= hi:
            return True
        at = max(lo, self.floor)
        while at < hi:
            end = self.hid.last.contiguous(self.gone.last.contiguous(at))
            if end <= at:
                return False
            at = end
        return self.gone.intact and self.hid.intact

    def missing(self, lo: int, hi: int) -> tuple[list[Interval], list[Interval]]:
        """What of the numbers from `lo` to before `hi` may still come, and what is expired."""
        coming, expired = Intervals(), Intervals()
        for a, b in self.covered.missing(lo, hi):
            expired.add(a, min(b, self.floor))
            coming.add(max(a, self.floor), b)
            for drops in (self.gone.last, self.hid.last):
                for dropped in drops.common(a, b):
                    coming.remove(*dropped)
                    expired.add(*dropped)
        return list(coming), list(expired)

    def segments(self, lo: int, hi: int) -> Iterator[Segment]:
        """Which entry has the body of each number from `lo` to before `hi`, by number.

        Of several entries with one number the highest place wins, whatever came first.
        """
        entries = self.overlapping(lo, hi)
        upcoming, active = next(entries, None), list[tuple[int, int, Entry]]()
        best, start, at = None, lo, lo
        while at < hi:
            while upcoming is not None and upcoming.first <= at:
                heappush(active, (-upcoming.place, upcoming.end, upcoming))
                upcoming = next(entries, None)
            while active and active[0][1] <= at:
                heappop(active)
            winner = active[0][2] if active else None
            if winner is not best:
                if best is not None:
                    yield best, start, at
                best, start = winner, at
            later = hi if upcoming is None else upcoming.first
            at = min(later, hi if winner is None else winner.end, hi)
        if best is not None:
            yield best, start, at


def _time(entry: Entry) -> int:
    return entry.place >> RECORD_KEY_BITS


def number_of(entry: Entry) -> tuple[int, Place]:
    """By what the entries of a lane are ordered."""
    return entry.first, entry.place
