"""The store in memory: the same as the one on disk but for what a process leaves behind."""

from collections.abc import Sequence

from planaria.core.state import State, Stateful
from planaria.records.audit import AuditState
from planaria.records.index import Index
from planaria.records.lanes import Drops, Entry
from planaria.records.positions import DeliveredState, Intervals
from planaria.records.record import MalformedRecord, Place, Record, Stream, decode, intact
from planaria.records.store import Committed, Store
from planaria.records.window import Window

Dropped = tuple[int, int, list[tuple[int, int]], int]  # `Drops` as a value, with its check


class MemoryStoreState(State):
    """What is held, by which windows, what of each stream is gone, and what was delivered.

    All else is derived from it: which records are shown, sums, lanes, quotas.
    """

    window: Window
    windows: list[Window]
    bodies: dict[int, bytes]
    shown: set[int]
    lanes: dict[tuple[int, bytes], tuple[Dropped, Dropped]]  # gone, hidden
    delivered: DeliveredState
    audit: AuditState


class MemoryStore(Store, Stateful):
    """A store whose records live in memory alone, as simulations use it."""

    state_type = MemoryStoreState

    def __init__(self, *, volatile: bool = False) -> None:
        """`volatile`: nobody stands in for a disk, as the simulator does."""
        super().__init__()
        self.volatile = volatile
        self._bodies: dict[Place, bytes] = {}

    def state(self) -> MemoryStoreState:
        """What is held and remembered."""
        index = self.index
        lanes = {
            stream: (_value(lane.gone), _value(lane.hid)) for stream, lane in index.lanes.items()
        }
        return MemoryStoreState(
            index.window, [*index.windows], self._bodies, set(index.shown), lanes,
            self.delivered.state(), self._audit.state(),
        )  # fmt: skip

    def load(self, state: State) -> None:
        """Hold what a state holds, as far as it is records; derive all else."""
        assert isinstance(state, MemoryStoreState)
        self._bodies = dict(state.bodies)
        self.delivered.load(state.delivered)
        self.index = Index()
        self.index.judge_by(state.window, state.windows)
        self.mend()
        self._audit.load(state.audit)
        for stream, (gone, hid) in state.lanes.items():
            lane = self.index.lane(stream)
            lane.gone, lane.hid = _drops(gone), _drops(hid)

    def mend(self) -> None:
        """Make the index anew from the records' bytes, which alone say what is held."""
        entries = []
        for place, data in list(self._bodies.items()):
            try:
                record = decode(data)
            except MalformedRecord:
                record = None
            if record is None or record.place != place:
                del self._bodies[place]
            else:
                entries.append((Entry.of(record), record.low))
        self._mend(entries)

    def audit(self, limit: int) -> int:
        """Check the next records; first, whether the index knows all of them."""
        if len(self._bodies) != len(self.index.shown) + len(self.index.hidden):
            self.mend()
            return 1 + super().audit(limit)
        return super().audit(limit)

    def commit(self, done: Committed) -> None:
        """Nothing is more durable than memory here: done at once."""
        done(None)

    def staging(self) -> "MemoryStore":
        """Another one, in memory as well."""
        return MemoryStore(volatile=self.volatile)

    def _admit(self, records: Sequence[Record]) -> None:
        return

    def _write(self, entry: Entry, record: Record) -> None:
        self._bodies[entry.place] = record.data

    def _erase(self, entry: Entry) -> None:
        self._bodies.pop(entry.place, None)

    def _note(self, stream: Stream) -> None:
        return

    def _load(self, entries: Sequence[Entry]) -> list[Record | None]:
        return [self._sealed(entry) for entry in entries]

    def _sealed(self, entry: Entry) -> Record | None:
        data = self._bodies.get(entry.place, b"")
        record = intact(data, entry.place)
        if record is None:
            self._erase(entry)
            self._damaged(entry)
        return record


def _value(drops: Drops) -> Dropped:
    return drops.firm, drops.time, [*drops.last], drops.check


def _drops(value: Dropped) -> Drops:
    drops = Drops()
    drops.firm, drops.time, drops.last, drops.check = *value[:2], Intervals(value[2]), value[3]
    return drops
