"""The records of one topic, in the order of retention, read by position. Knows nothing of peers.

`append` makes records visible at once; `commit` says when they are on disk. What is delivered is
decided by positions never seen before, what is kept by the window, what is read by the vector:
three questions, and none answers another.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from planaria.core.errors import CapacityExceeded
from planaria.records.audit import Audit
from planaria.records.batches import Arrival, Batch, Lacks, Slice, disputed
from planaria.records.index import Index
from planaria.records.lanes import Entry, Lane
from planaria.records.positions import Delivered, Interval, Mark, Vector
from planaria.records.reading import check_parts, lacks_of, range_of
from planaria.records.record import (
    RECORD_KEY_BITS,
    Place,
    Publication,
    Record,
    Stream,
)
from planaria.records.retained import Retained
from planaria.records.sums import Sum
from planaria.records.window import Window

RECORDS_MAX = 1 << 22  # of one topic: about 2 GB of entries in memory
READ_PUBLICATIONS = 8192  # in a batch, unless its reader wants another number
READ_BYTES_MAX = 16 << 20  # of records in a batch; a larger one comes alone
LOAD_RECORDS_MAX = 256  # bodies in memory at a time where all that is shown is passed over
DISPUTES_MAX = 16  # held records that a new one is compared with

Committed = Callable[[Exception | None], object]


class Store(ABC):
    """Holds the records of one topic; subclasses keep their bytes."""

    def __init__(self) -> None:
        self.volatile = False  # does it end with the process, so that none of it is on disk?
        self.index = Index()
        self.delivered = Delivered()
        self._retained: Retained | None = None
        self._audit = Audit()
        self._cut_short: list[Arrival] = []  # of an `append` that failed: the next one tells them

    # What subclasses do with bytes

    @abstractmethod
    def _admit(self, records: Sequence[Record]) -> None:
        """Raise CapacityExceeded, with nothing changed, if these cannot be taken now."""

    @abstractmethod
    def _write(self, entry: Entry, record: Record) -> None:
        """Keep a record's bytes."""

    @abstractmethod
    def _erase(self, entry: Entry) -> None:
        """Keep them no longer."""

    @abstractmethod
    def _note(self, stream: Stream) -> None:
        """Keep what is remembered of a stream beyond its records."""

    @abstractmethod
    def _load(self, entries: Sequence[Entry]) -> list[Record | None]:
        """The records of these entries; None where the bytes are not what was written."""

    @abstractmethod
    def commit(self, done: Committed) -> None:
        """Call `done` once all that was appended so far is on disk, or with what prevents it."""

    @abstractmethod
    def staging(self) -> "Store":
        """The store of what is staged for this topic and not published yet."""

    # Writing

    def append(self, records: Iterable[Record]) -> list[Arrival]:
        """Hold records, visible at once; says of each which numbers were never seen before.

        Raises CapacityExceeded, with nothing changed, when the store can take no more now. If the
        index contradicts itself, what arrived before that is told by the next call.
        """
        records = list(records)
        self.admit(records)
        arrivals = self._cut_short
        for record in records:
            arrivals.append(self._append(record))
        if self.index.unshown or self.index.erased:
            self._erase_dropped()
        self._cut_short = []
        return arrivals

    def admit(self, records: Sequence[Record]) -> None:
        """Raise CapacityExceeded if these cannot be taken now."""
        if len(self.index.shown) + len(self.index.hidden) + len(records) > RECORDS_MAX:
            raise CapacityExceeded(f"{RECORDS_MAX} records in one topic: shorten its retention")
        self._admit(records)

    def _append(self, record: Record) -> Arrival:
        index, place = self.index, record.place
        if place in index.shown or place in index.hidden:
            return Arrival(record, [], [])
        first, end = record.first, record.first + record.count
        stream = (record.publisher, record.incarnation)
        lane = index.lanes.get(stream) or index.lane(stream)
        disputed = self._disputed(record, lane) if lane.covered.end > first else []
        if record.low > lane.gone.firm:
            lane.vouch(record.low)
        entry = Entry(place, lane.stream, first, end, len(record.data))
        try:
            held = index.add(entry, lane)
        except Exception:  # it has no bytes yet: whoever mends the index must not find it there
            index.shown.pop(place, None)
            raise
        # Nothing of an expired one is delivered, but its stream is heard of: to be forgotten again.
        upto = first if record.time < index.window.lo else end
        new = self.delivered.add(lane.stream, first, upto, record.time)
        if held:
            self._write(entry, record)
            if self._retained is not None:
                self._retain(record, self._retained)
        else:
            self._note(lane.stream)
        if not self.delivered.abandoned:
            return Arrival(record, new, disputed)
        abandoned, self.delivered.abandoned = self.delivered.abandoned, []
        return Arrival(record, new, disputed, abandoned)

    def _disputed(self, record: Record, lane: Lane) -> list[Interval]:
        """The numbers of a new record that a held one gives another body."""
        if not lane.covered.common(record.first, record.end):
            return []
        others = list(islice(lane.overlapping(record.first, record.end), DISPUTES_MAX))
        return disputed(record, [it for it in self._load(others) if it is not None])

    def show(self, window: Window) -> None:
        """Show what `window` keeps of all that is held, and hide the rest at once."""
        if window != self.index.window:
            self._retained = None
            self.index.show(window)
            self._erase_dropped()

    def purge(self, windows: Sequence[Window]) -> None:
        """Delete from now on what neither the window nor one of `windows` would show."""
        self.index.purge(windows)
        self._erase_dropped()

    def forget(self, before: int) -> None:
        """Forget what was delivered of streams that were last heard of before that second."""
        for stream in self.delivered.forget(before, self.index.holds):
            self.index.forget(stream)
            self._note(stream)

    def drop(self, stream: Stream) -> None:
        """Hold nothing of a stream any more, and forget that there was one."""
        self.index.drop(stream)
        self.delivered.drop(stream)
        self._erase_dropped()

    def refuse(self, places: Sequence[Place]) -> None:
        """Hold these no longer: nobody entitled published them."""
        self.index.refuse(places)
        self._retained = None
        self._erase_dropped()

    def _erase_dropped(self) -> None:
        unshown, self.index.unshown = self.index.unshown, []
        if self._retained is not None and unshown:
            order, quota = self.index.order, self.index.window.per_publisher
            lowest = order[0] >> RECORD_KEY_BITS if order and quota is None else None
            self._retained.without(unshown, lowest)
        erased, self.index.erased = self.index.erased, []
        for entry in erased:
            self._erase(entry)
        for stream in dict.fromkeys(entry.stream for entry in erased):
            self._note(stream)

    # Reading

    def __contains__(self, place: Place) -> bool:
        """Is this record held, shown or hidden?"""
        return place in self.index

    def __len__(self) -> int:
        """How many publications the shown records hold."""
        return self.index.publications

    def get(self, places: Iterable[Place]) -> list[Record]:
        """The records shown at these places, in their order; without those that are not here."""
        shown = self.index.shown
        return self._sound([shown[place] for place in places if place in shown])

    def read(
        self,
        after: Vector,
        to: Vector | None = None,
        limit: int = READ_PUBLICATIONS,
        *,
        floor: int = 0,
        only: Iterable[Stream] | None = None,
        size: int = READ_BYTES_MAX,
    ) -> Batch:
        """Read on from `after`, stream by stream in the order of their names, by number.

        Stops in each stream where a number may still come, and at `to`. Equal arguments give the
        same at every store that holds the range. A reader that fixes `to` (say `vector()`) until
        it is reached is fair to all streams, however fast one of them grows. A stream that `after`
        does not name begins with what was published from the second `floor` on. `only` these
        streams are looked at, in this order, where the reader knows which have grown; `size` bounds
        the bytes.
        """
        lost: list[Entry] = []
        while True:
            streams = self.index.names if only is None else list(dict.fromkeys(only))
            chosen = range_of(self.index, streams, after, to, floor, max(1, limit), size)
            wanted, vector, more = chosen
            found = self._described([entry for entry, *_ in wanted])
            if found is None:
                continue
            parts = list(zip(found, wanted, strict=True))
            if None not in found:
                slices = [Slice(record, *part[1:]) for record, part in parts if record is not None]
                return Batch(slices, vector, more)
            before, lost = lost, [part[0] for record, part in parts if record is None]
            if any(entry in before for entry in lost):
                raise ValueError("an entry is not where it says that it is")

    def follow(self, stream: Stream, mark: Mark) -> tuple[list[Slice], Mark]:
        """Read on in one stream, `LOAD_RECORDS_MAX` records at most; the mark after them.

        What a reader skipped is not looked for: it comes as an arrival.
        """
        found: list[Record | None] | None = None
        lane: Lane | None = None
        while found is None or lane is None:
            lane = self.index.lanes.get(stream)
            if lane is None:
                return [], mark
            end = lane.settled(mark.next)
            parts = list(islice(lane.segments(mark.next, end), LOAD_RECORDS_MAX))
            found = self._described([entry for entry, *_ in parts])
        last = parts[-1][2] if len(parts) == LOAD_RECORDS_MAX else end
        check_parts(lane, mark.next, parts, last)
        slices: list[Slice] = []
        for record, (_, lo, hi) in zip(found, parts, strict=True):
            if record is None:
                return slices, Mark(lo, mark.skipped)
            slices.append(Slice(record, lo, hi))
        return slices, Mark(max(mark.next, last), mark.skipped)

    def vector(self) -> dict[Stream, Mark]:
        """How far each stream can be read without passing a number that may still come."""
        ends = {stream: self.index.lanes[stream].settled(0) for stream in self.index.names}
        return {stream: Mark(end) for stream, end in ends.items() if end > 0}

    def front(self) -> dict[Stream, Mark]:
        """The vector of a reader that wants nothing of what is here, holes included."""
        ends = {stream: self.index.lanes[stream].end for stream in self.index.names}
        return {stream: Mark(end) for stream, end in ends.items() if end > 0}

    def lacks(self, after: Vector, to: Vector) -> Lacks:
        """Which part of the range from `after` to `to` cannot be read here."""
        return lacks_of(self.index, after, to)

    def low(self, stream: Stream) -> int | None:
        """The lowest number of a stream that is shown: what its publisher can vouch for."""
        lane = self.index.lanes.get(stream)
        return next((lo for lo, _ in lane.covered), None) if lane else None

    def retained(self, key: bytes | None = None) -> Publication | None:
        """The last publication with this key; of the whole topic if the key is None.

        The last by time, then by publisher, incarnation and number: the same at every store. Raises
        CapacityExceeded if the topic has too many keys to know the last of each.
        """
        if key is None:
            last = self.index.last()
            while last is not None and self._described([last]) is None:
                last = self.index.last()
            return None if last is None else self.at(last.stream, last.end - 1)
        if self._retained is not None and not self._retained.knows(key):
            self._retained = None
        while (retained := self.retaining()) is None:
            pass
        position = retained.position(key)
        return None if position is None else self.at(*position)

    def retaining(self) -> Retained | None:
        """The last publication of every key; None if another step is needed to know: ask again."""
        if self._retained is None:
            self._retained = Retained(self.index.names)
        retained = self._retained
        if not retained.complete:
            parts = retained.next(self.index)
            found = self._described([entry for entry, *_ in parts]) or []
            for record, (_, lo, hi) in zip(found, parts, strict=False):
                if record is not None:
                    retained.take(record, lo, hi)
        # Whoever found damage has thrown it away.
        return retained if retained.complete and retained is self._retained else None

    def retain_no_longer(self) -> None:
        """Nobody asks for the last publications of keys any more."""
        self._retained = None

    def _retain(self, record: Record, retained: Retained) -> None:
        """Keep the last publications up to date: of bodies that compete one counts."""
        lane, numbers = self.index.lane(record.stream), (record.first, record.end)
        retained.doubt(it.place for it in lane.overlapping(*numbers) if it.place != record.place)
        for entry, lo, hi in lane.segments(*numbers):
            if entry.place == record.place:
                retained.take(record, lo, hi)

    def at(self, stream: Stream, number: int) -> Publication | None:
        """The publication at a position, if it is shown."""
        lane = self.index.lanes.get(stream) or Lane(stream)
        for entry, lo, hi in lane.segments(number, number + 1):
            found = self._described([entry])
            if found is None:
                return self.at(stream, number)
            return found[0].publications(lo, hi)[0] if found[0] is not None else None
        return None

    # Reconciling

    def digest(self, lo: int, cut: int) -> Sum:
        """A hint of what is shown from the second `lo` on, without what is on its way at `cut`."""
        return self.index.sums.digest(lo, cut)

    def places(self, lo: int, cut: int) -> list[Place]:
        """The places that such a digest covers, ascending: what a trie to descend is built of."""
        return self.index.between(lo, cut)

    def mend(self) -> None:
        """Make the index anew: it contradicts itself, by a fault in memory.

        Of the records themselves the entries know; the audit compares these with the bytes.
        """
        held = {**self.index.hidden, **self.index.shown}
        for place, entry in held.items():
            entry.place = place
        self._mend([(entry, 0) for entry in held.values()])

    def _mend(self, entries: Sequence[tuple[Entry, int]]) -> None:
        before, index = self.index, Index()
        before.doubt()
        index.judge_by(before.window, before.windows)
        for stream, lane in before.lanes.items():
            index.lane(stream).gone = lane.gone
        index.load(entries)
        self.index, self._retained = index, None

    def audit(self, limit: int) -> int:
        """Check what is derived from the next `limit` records, and them; returns the repairs."""
        if self._audit.begins:
            self._retained = None
        found, right = self._audit.look(self.index, limit)
        if not right:
            self.mend()
        entries = [entry for entry in found if self.index.has(entry)]
        records = self._load(entries)
        pairs = [(e, r) for e, r in zip(entries, records, strict=True) if r is not None]
        wrong = [(entry, record) for entry, record in pairs if not entry.describes(record)]
        self._describe(wrong)
        for _, record in pairs:
            self.index.lane(record.stream).vouch(record.low)
        return (not right) + len(entries) - len(pairs) + len(wrong)

    def _described(self, entries: Sequence[Entry]) -> list[Record | None] | None:
        """Their records; None if an entry said otherwise: it is mended now, ask anew.

        A damaged entry would have numbers read that its record does not have.
        """
        found = self._load(entries)
        pairs = zip(entries, found, strict=True)
        wrong = [(it, one) for it, one in pairs if one is not None and not it.describes(one)]
        self._describe(wrong)
        return None if wrong else found

    def _describe(self, wrong: Sequence[tuple[Entry, Record]]) -> None:
        """Make entries say what their records say, and divide all anew."""
        for entry, record in wrong:
            entry.describe(record)
        if wrong:
            self.index.sort()
            self._retained = None

    def _sound(self, entries: Sequence[Entry]) -> list[Record]:
        return [record for record in self._load(entries) if record is not None]

    def _damaged(self, entry: Entry) -> None:
        """Hold a record no longer whose bytes are not what was written: peers bring it back."""
        self.index.discard(entry)
        self._retained = None
