"""What is staged for one topic at one member, until a manifest settles it or it expires.

Staged records are held on disk, outside of the topic's history: nobody is shown them, and peers
are not told of them. At a position that is held nothing else is taken, so that a member has one
manifest of a batch. What a manifest settles is dropped here once all of it is in the history.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from planaria.core.errors import CapacityExceeded
from planaria.core.state import State, Stateful
from planaria.protocols.publications.holdings import Holdings, HoldingsState
from planaria.protocols.skipring.batch_messages import Piece
from planaria.protocols.skipring.deposits import EXPIRED, FULL, TAKEN
from planaria.records.lanes import Entry
from planaria.records.manifest import (
    BATCH_MARK,
    Manifest,
    Origin,
    Part,
    Portion,
    origin_of,
    read_manifest,
    same_query,
    settled,
)
from planaria.records.record import MalformedRecord, Record, Stream
from planaria.records.store import Store
from planaria.records.window import Window

STAGE_SECONDS = 3600  # for which something stays staged; longer than any restart of a driver
STAGED_BYTES_MAX = 8 << 30  # of one topic on one disk
SETTLE_BYTES = 3 << 18  # settled at a time: half of what a link takes unacknowledged, or less
AUDIT_SLICE = 1  # records checked per timeout: what is settled is checked before
QUERIES_MAX = 64  # manifests that a timeout looks at


class StagingState(State):
    """What is staged, if it is held in memory."""

    holdings: HoldingsState
    turn: int = 0


class Staging(Stateful):
    """What is staged for one topic at one member."""

    __slots__ = ("holdings", "turn")
    state_type = StagingState

    def __init__(self, store: Store) -> None:
        self.holdings = Holdings(store)
        self.turn = 0  # which of many manifests are looked at next

    def state(self) -> StagingState:
        """What memory holds; a store on disk keeps itself."""
        return StagingState(self.holdings.state(), self.turn)

    def load(self, state: State) -> None:
        """Hold what a state says."""
        assert isinstance(state, StagingState)
        self.holdings.load(state.holdings)
        self.turn = state.turn

    def hold(self, record: Record, present: int) -> str:
        """Hold a record outside of the history; returns why not, if so."""
        ahead = 0 < present < record.time - STAGE_SECONDS  # it would not expire for long
        if ahead or record.time < present - STAGE_SECONDS:
            return EXPIRED
        held = self._overlapping(record.stream, record.first, record.end)
        if any(entry.place != record.place for entry in held):
            return TAKEN
        if self.holdings.store.index.bytes > STAGED_BYTES_MAX:
            return FULL
        try:
            self.holdings.append([record])
        except CapacityExceeded:
            return FULL
        return ""

    def rival(self, manifest: Manifest) -> Record | None:
        """Another manifest that is held for the same batch."""
        mine = manifest.record
        held = self._overlapping(mine.stream, mine.first, mine.end)
        found = self.holdings.at(entry.place for entry in held if entry.place != mine.place)
        return found[0] if found else None

    def staged(self, manifest: Manifest, portion: Portion) -> list[int]:
        """The numbers of the parts that are held here whole."""
        return [
            at for at, part in enumerate(portion.parts) if self._whole(manifest.publisher, part)
        ]

    def pieces(self, manifest: Manifest, portion: Portion) -> list[Piece]:
        """What is held here of parts that are not whole."""
        found: list[Piece] = []
        for at, part in enumerate(portion.parts):
            lane = self.holdings.store.index.lanes.get((manifest.publisher, part.incarnation))
            held = [] if lane is None else lane.covered.common(0, part.count)
            if held != [(0, part.count)]:
                found += [(at, lo, hi) for lo, hi in held]
        return found

    def settle(
        self, manifest: Manifest, portion: Portion, history: Holdings, spread: Sequence[int]
    ) -> list[tuple[int, Record]]:
        """Some records to publish of what is held here, each with its part's number.

        None that the history has, and not more at a time than a disk takes at once. First the parts
        that this member is to `spread`: what others do comes by broadcast meanwhile, and need not
        be made here. A part that others hold the rest of is settled by all of them.
        """
        found: list[tuple[int, Record]] = []
        size, mine = 0, {*spread}
        stream = (manifest.publisher, portion.incarnation)
        for at, part in sorted(enumerate(portion.parts), key=lambda it: it[0] not in mine):
            for lo, hi in missing(history, stream, part):
                for record in self._between(manifest.publisher, part, lo, hi):
                    if size > SETTLE_BYTES:
                        return found
                    try:
                        found.append((at, settled(record, manifest, portion, part)))
                    except MalformedRecord:
                        continue
                    size += len(record.data)
        return found

    def drop(self, manifest: Manifest, portion: Portion) -> None:
        """Hold the parts of a manifest no longer: all of them are in the history."""
        lanes = self.holdings.store.index.lanes
        for part in portion.parts:
            stream = (manifest.publisher, part.incarnation)
            if stream in lanes:
                self.holdings.ask(lambda store, stream=stream: store.drop(stream))  # type: ignore[misc]

    def manifests(self) -> Iterator[Manifest]:
        """The last manifest of each query, while more than manifests is staged.

        Of very many queries some, and the next ones the next time.
        """
        lanes = self.holdings.store.index.lanes
        queries = [stream for stream in lanes if stream[1][:1] == BATCH_MARK]
        if len(queries) == len(lanes):
            return
        first = self.turn % len(queries) if len(queries) > QUERIES_MAX else 0
        self.turn = first + QUERIES_MAX if len(queries) > QUERIES_MAX else 0
        for stream in [*queries[first:], *queries[:first]][:QUERIES_MAX]:
            yield from self.last(stream)

    def last(self, stream: Stream) -> Iterator[Manifest]:
        """The last manifest of a query, if a stream is one's and a manifest of it is held."""
        lane = self.holdings.store.index.lanes.get(stream)
        if lane is None or stream[1][:1] != BATCH_MARK:
            return
        for record in self.holdings.at(it.place for it in lane.entries[-1:]):
            manifest = read_manifest(record)
            if manifest is not None:
                yield manifest

    def on_timeout(self, present: int) -> None:
        """Time passed: drop what has expired, check some of the rest."""
        index = self.holdings.store.index
        if not (index.lanes or index.shown or index.hidden):
            return
        window = Window(max(0, present - STAGE_SECONDS))
        self.holdings.show(window)
        self.holdings.purge([window])
        self.holdings.forget(window.lo)
        self.holdings.on_timeout(AUDIT_SLICE)

    def _overlapping(self, stream: Stream, lo: int, hi: int) -> list[Entry]:
        def look(store: Store) -> list[Entry]:
            lane = store.index.lanes.get(stream)
            return [] if lane is None else list(lane.overlapping(lo, hi))

        return self.holdings.ask(look)

    def _whole(self, publisher: int, part: Part) -> bool:
        lane = self.holdings.store.index.lanes.get((publisher, part.incarnation))
        return lane is not None and not lane.covered.missing(0, part.count)

    def _between(self, publisher: int, part: Part, lo: int, hi: int) -> Iterator[Record]:
        """What is staged of a part for the numbers from `lo` to before `hi`."""
        stream = (publisher, part.incarnation)
        for entry in self._overlapping(stream, lo - part.first, hi - part.first):
            for record in self.holdings.at([entry.place]):
                if record.stream == stream and record.end <= part.count:
                    yield record


def missing(history: Holdings, stream: Stream, part: Part) -> list[tuple[int, int]]:
    """The numbers of a part that are not in the history, and were not."""

    def look(store: Store) -> list[tuple[int, int]]:
        lane = store.index.lanes.get(stream)
        return [(part.first, part.end)] if lane is None else lane.missing(part.first, part.end)[0]

    return history.ask(look)


def unsettled(history: Holdings, manifest: Manifest, portion: Portion) -> list[int]:
    """How many rows of each part are not in the history."""
    stream = (manifest.publisher, portion.incarnation)
    return [sum(hi - lo for lo, hi in missing(history, stream, part)) for part in portion.parts]


def of_query(store: Store, stream: Stream) -> Sequence[Stream]:
    """The streams of a query's rows, of which `stream` is one."""
    (low, high), names = same_query(stream), store.index.names
    return names[bisect_left(names, low) : bisect_right(names, high)]


def last_batches(history: Holdings, stream: Stream) -> list[Origin]:
    """Which batch came last in each stream of a query's rows, of which `stream` is one."""

    def look(store: Store) -> Sequence[Entry]:
        lanes = store.index.lanes
        return [lanes[it].entries[-1] for it in of_query(store, stream) if lanes[it].entries]

    found = history.at(entry.place for entry in history.ask(look))
    return [origin for it in found if (origin := origin_of(it)) is not None]
