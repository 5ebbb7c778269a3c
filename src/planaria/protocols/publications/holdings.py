"""What a subscriber holds of one topic, as anti-entropy and broadcast use it: any store of records.

A fault may make a store's index say what cannot be. Then it is made anew from the records, here, in
one place; what is merely false is found by the audit. Tries and sketches are built where they are
asked for, over the places that a digest covers, and kept while that set stays the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from struct import error as StructError  # noqa: N812
from typing import Any, TypeVar

from planaria.core.ids import ODD
from planaria.core.state import State, Stateful
from planaria.protocols.publications.antientropy_messages import PLACE_BYTES, Inventory
from planaria.protocols.publications.push import PUSH_BYTES_MAX
from planaria.protocols.publications.sketch import (
    COUNTERS,
    Array,
    Cells,
    id_array,
    tug_of_war,
)
from planaria.protocols.publications.trie import Trie
from planaria.records.batches import Arrival, Batch, Slice
from planaria.records.lanes import Entry
from planaria.records.memory import MemoryStore, MemoryStoreState
from planaria.records.positions import Mark, Vector
from planaria.records.record import PLACE_BITS, RECORD_KEY_BITS, TIME_MAX, Place, Record, Stream
from planaria.records.store import Store
from planaria.records.window import LIMIT_MAX, Window

ID_BITS = 64  # the id of a record in sketches: the first half of its key
CELLS_MIN = 64  # a sketch is made of so many cells at least, in case more are asked for
BODIES_MAX = 64  # records read at a time where many are pushed, and no more than a frame of them
AUDIT_SLICE = 4  # records checked per timeout at least, cheap enough for every simulated node
AUDIT_SLICE_MAX = 2048  # at most; so many when something is in doubt
AUDIT_TIMEOUTS = 256  # for a pass over a store of up to half a million
WORD = (1 << 64) - 1

# What an index raises that contradicts itself. Nothing else is caught.
CONTRADICTION = (
    LookupError, TypeError, ValueError, OverflowError, AttributeError, StructError,
)  # fmt: skip

T = TypeVar("T")


class HoldingsState(State):
    """What is held, if it is held in memory, and how much is to be audited soon."""

    store: MemoryStoreState | None
    audit_due: int


class Holdings(Stateful):
    """The records of one topic at one subscriber."""

    __slots__ = ("_sketch", "_trie", "audit_due", "mended", "store")
    state_type = HoldingsState

    def __init__(self, store: Store) -> None:
        self.store = store
        self.audit_due = 0  # records to be checked soon
        self.mended = 0  # times that the index contradicted itself
        self._trie: tuple[tuple[int, int, int], Trie] | None = None
        self._sketch: tuple[tuple[int, int, int], Array, Cells] | None = None

    @property
    def durable(self) -> bool:
        """Does the store keep itself, as records come and go?"""
        return not isinstance(self.store, MemoryStore)

    def state(self) -> HoldingsState:
        """What memory holds; a store on disk keeps itself."""
        store = self.store.state() if isinstance(self.store, MemoryStore) else None
        return HoldingsState(store, self.audit_due)

    def load(self, state: State) -> None:
        """Hold what a state says; derive all else from it."""
        assert isinstance(state, HoldingsState)
        self.audit_due = state.audit_due
        if isinstance(self.store, MemoryStore) and state.store is not None:
            self.store.load(state.store)
        self._forget_derived()

    def __len__(self) -> int:
        """How many publications are shown."""
        return max(0, min(self.store.index.publications, LIMIT_MAX))

    @property
    def window(self) -> Window:
        """What is shown."""
        return self.store.index.window

    def append(self, records: Sequence[Record]) -> list[Arrival]:
        """Hold records; says of each which numbers are new. Raises CapacityExceeded."""
        try:
            return self.store.append(records)
        except CONTRADICTION:
            self._mend()
            return self.store.append(records)

    def show(self, window: Window) -> None:
        """Show what `window` keeps of all that is held, and hide the rest."""
        if window != self.store.index.window:
            self._sure(lambda: self.store.show(window))

    def purge(self, windows: Sequence[Window]) -> None:
        """Delete from now on what neither the window nor one of `windows` would show."""
        self._sure(lambda: self.store.purge(windows))

    def forget(self, before: int) -> None:
        """Forget streams that were last heard of before that second."""
        self._sure(lambda: self.store.forget(before))

    def refuse(self, places: Sequence[Place]) -> None:
        """Hold these no longer: nobody entitled published them."""
        if places:
            self._sure(lambda: self.store.refuse(places))
            self._forget_derived()

    def follow(self, stream: Stream, mark: Mark) -> tuple[list[Slice], Mark]:
        """Read on in one stream."""
        return self._sure(lambda: self.store.follow(stream, mark))

    def read(self, after: Vector, to: Vector | None = None, **options: Any) -> Batch:
        """Read on in all streams, as `Store.read` does."""
        return self._sure(lambda: self.store.read(after, to, **options))

    def ask(self, question: Callable[[Store], T]) -> T:
        """What the store says; if its index contradicts itself, what it says when mended."""
        return self._sure(lambda: question(self.store))

    def handed(self, part: Slice) -> None:
        """Part of a record was handed out: mark it, in case a fault took the mark it had."""
        record, lo, hi = part.record, part.lo, part.hi
        self.store.delivered.add(record.stream, lo, hi, record.time)

    def ahead(self, stream: Stream, number: int) -> int | None:
        """The first number from `number` on that is shown; None if there is none."""
        lane = self.store.index.lanes.get(stream)
        found = None if lane is None else next(lane.overlapping(number, 1 << 64), None)
        return None if found is None else max(number, found.first)

    def low(self, stream: Stream) -> int | None:
        """The lowest number of a stream that is shown."""
        return self._sure(lambda: self.store.low(stream))

    def tight(self, count: int) -> bool:
        """Might so many publications more push others out of the window?"""
        room = min(self.window.limit, self.window.quota)
        return room < LIMIT_MAX and len(self) + count > room

    def hides(self, window: Window) -> bool:
        """Might `window` hide something that is shown, for its age or by other limits?"""
        order = self.store.index.order
        if order and order[0] < window.lowest:
            return True
        return window[1:] != self.window[1:] and len(self) > min(window.limit, window.quota)

    # For anti-entropy

    @property
    def version(self) -> int:
        """Changes with every change of what is shown."""
        return self.digest(0, TIME_MAX) ^ len(self.store.index.shown)

    def digest(self, lo: int, cut: int) -> int:
        """64 bits that are equal in two stores if what they show of this part is. A hint."""
        keys, records = self._sure(lambda: self.store.digest(lo, cut))
        return (keys ^ keys >> 64 ^ records * ODD) & WORD

    def count(self, lo: int, cut: int) -> int:
        """How many records this part has."""
        return max(0, min(self._sure(lambda: self.store.digest(lo, cut)).records, LIMIT_MAX))

    def inventory(self, lo: int, cut: int) -> Inventory:
        """How much this part is, and from which place on more is taken."""
        floor = b"" if self.floor is None else self.floor.to_bytes(PLACE_BYTES, "big")
        return Inventory(lo, cut, self.digest(lo, cut), self.count(lo, cut), floor)

    def places(self, lo: int, cut: int) -> list[Place]:
        """The places of this part, ascending."""
        return self._sure(lambda: self.store.places(lo, cut))

    def trie(self, lo: int, cut: int) -> Trie:
        """The trie over the places of this part."""
        name = (lo, cut, self.digest(lo, cut))
        if self._trie is None or self._trie[0] != name:
            places = [place for place in self.places(lo, cut) if 0 <= place < 1 << PLACE_BITS]
            self._trie = (name, Trie(PLACE_BITS, dict.fromkeys(places)))
        return self._trie[1]

    def sketch(self, lo: int, cut: int, size: int) -> tuple[Array, Cells]:
        """The tug of war and `size` cells over the ids of this part."""
        name = (lo, cut, self.digest(lo, cut))
        known, sums, cells = self._sketch or (None, id_array(()), Cells(0))
        if known != name or len(sums) != COUNTERS or len(cells) < size or not cells.regular:
            ids = id_array(id_of(place) for place in self.places(lo, cut))
            sums, cells = tug_of_war(ids), Cells(max(size, CELLS_MIN))
            cells.fold(ids, 1)
            self._sketch = (name, sums, cells)
        prefix = Cells(size)
        prefix.add(cells)
        return sums.copy(), prefix

    def at(self, places: Iterable[Place]) -> list[Record]:
        """The records shown at these places."""
        wanted = list(places)
        return self._sure(lambda: self.store.get(wanted))

    def bodies(self, places: Iterable[Place]) -> Iterator[bytes]:
        """Their bytes, read as they are asked for: those of one second in publishers' order.

        So whoever gets the first of many can hand them out; the order of keys would leave holes.
        """
        for _, beside in groupby(places, time_of):
            for chunk in self._in_order(list(beside)):
                for record in self.at(chunk):
                    yield record.data

    def _in_order(self, places: list[Place]) -> list[list[Place]]:
        """By stream and number, without those that are not shown; what is read at a time."""

        def ordered() -> list[list[Place]]:
            shown = self.store.index.shown
            entries = [shown[place] for place in places if place in shown]
            entries.sort(key=lambda entry: (entry.stream, entry.first))
            return chunks(entries)

        return self._sure(ordered)

    def by_ids(
        self, ids: Iterable[int], lo: int, cut: int, bits: int = ID_BITS
    ) -> tuple[list[Place], list[int]]:
        """The places of this part whose keys begin with `ids`, and the ids of none."""
        wanted, shift, mask = dict.fromkeys(ids), RECORD_KEY_BITS - bits, (1 << bits) - 1
        found = [place for place in self.places(lo, cut) if place >> shift & mask in wanted]
        known = {place >> shift & mask for place in found}
        return found, [id for id in wanted if id not in known]

    @property
    def floor(self) -> Place | None:
        """Below this place nothing is accepted; None while there is room."""
        order = self.store.index.order
        full = order and self.store.index.capped >= self.window.limit
        return order[0] if full and 0 <= order[0] < 1 << PLACE_BITS else None

    # Against faults

    def doubt(self) -> None:
        """Something contradicts: derive anew, audit soon."""
        self._forget_derived()
        self.audit_due = len(self.store.index.shown)

    def on_timeout(self, least: int = AUDIT_SLICE) -> None:
        """Check the next records: few, or all soon if something is in doubt."""
        held = len(self.store.index.shown) + len(self.store.index.hidden)
        self.audit_due = max(0, min(self.audit_due, held))
        due = max(self.audit_due, held // AUDIT_TIMEOUTS)
        limit = max(least, min(due, AUDIT_SLICE_MAX))
        self.audit_due = max(0, self.audit_due - limit)
        if self._sure(lambda: self.store.audit(limit)):
            self.audit_due = held
            self._forget_derived()

    def _forget_derived(self) -> None:
        self._trie, self._sketch = None, None

    def _sure(self, action: Callable[[], T]) -> T:
        """Do it; if the index contradicts itself, mend it and do it then."""
        try:
            return action()
        except CONTRADICTION:
            self._mend()
            return action()

    def _mend(self) -> None:
        self.mended += 1
        self.store.mend()
        self._forget_derived()


def chunks(entries: Iterable[Entry]) -> list[list[Place]]:
    """Their places, in parts that are no longer than a frame, so that little is read in vain."""
    found: list[list[Place]] = []
    room = 0
    for entry in entries:
        if entry.size > room or len(found[-1]) == BODIES_MAX:
            found.append([])
            room = PUSH_BYTES_MAX
        found[-1].append(entry.place)
        room -= entry.size
    return found


def time_of(place: Place) -> int:
    """The second of a record."""
    return place >> RECORD_KEY_BITS


def id_of(place: Place) -> int:
    """The id of a record in sketches."""
    return place >> (RECORD_KEY_BITS - ID_BITS) & WORD
