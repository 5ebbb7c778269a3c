"""The store in memory: the same as the one on disk but for what a process leaves behind."""

from collections.abc import Sequence

from planaria.records.lanes import Entry
from planaria.records.record import Place, Record, Stream, intact
from planaria.records.store import Committed, Store


class MemoryStore(Store):
    """A store whose records live in memory alone, as simulations use it."""

    def __init__(self) -> None:
        super().__init__()
        self._bodies: dict[Place, bytes] = {}

    def commit(self, done: Committed) -> None:
        """Nothing is more durable than memory here: done at once."""
        done(None)

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
