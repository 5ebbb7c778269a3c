"""The records of all topics of one node, in one SQLite file that always opens.

Write-ahead log, `synchronous=FULL`, one row per record with checksums, one writer. Bodies stay on
disk: in memory lives an entry per record. Whatever a crash, a full disk or a damaged file left
behind: what can be read is kept, the rest is set aside with one line, and nothing is served that
is not, byte for byte, what was written.
"""

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from planaria.core.errors import CapacityExceeded
from planaria.network.store.directory import CLEAN, DAMAGED, IN_USE, Directory
from planaria.network.store.opening import Report, is_damage, open_anew, open_file
from planaria.network.store.rows import (
    OF_TOPIC,
    Owner,
    check_of,
    entry_of,
    head_of,
    of_topic,
    owner_in,
    owner_of,
    pack_state,
    record_in,
    staging_id,
    topic_id,
    unpack_state,
)
from planaria.network.store.writer import PENDING_BYTES_MAX, Writer
from planaria.records.batches import Arrival
from planaria.records.lanes import Drops, Entry
from planaria.records.positions import Intervals
from planaria.records.record import RECORD_KEY_BITS, Place, Record, Stream
from planaria.records.store import Committed, Store
from planaria.records.window import Window

SELECT_MAX = 500  # rows of one query
SWEEP_MAX = 4096  # rows of abandoned topics that are erased at a time
ROW_MAX = (1 << 63) - 1  # of SQLite's integers

State = tuple[Drops, int, Intervals]

_log = logging.getLogger("planaria.store")


class Database:
    """An open store directory. Use it from one thread; `topic` gives the store of a topic."""

    def __init__(self, path: Path | str, report: Report = _log.warning) -> None:
        """Open `path`, whatever is in it; `report` gets a line for all that is not as it was."""
        self.report = report
        self._directory = Directory(Path(path))
        self._stores: dict[str, SqliteStore] = {}
        self._abandoned: list[tuple[int, Owner]] = []  # rows to be erased
        self.damaged = False  # was damage found that the next start is to mend?
        self.writer: Writer | None = None
        try:
            self.reading, self._writing = open_file(self._directory, report)
            wrong = self._scan_whole()
        except BaseException:
            self._directory.release()
            raise
        if self._writing is not None:
            self._directory.mark(IN_USE)
            self.writer = Writer(self._writing, report, self.found_damage)
        if wrong:
            self.set_aside(wrong, "the heads of")

    def topic(self, name: str) -> "SqliteStore":
        """The store of a topic."""
        if name not in self._stores:
            number = topic_id(name)
            self._stores[name] = self.opened(number)
            if self.writer is not None:
                self.writer.name(number, name)
        return self._stores[name]

    def opened(self, number: int) -> "SqliteStore":
        """A store of that number, with what the file has of it."""
        store = SqliteStore(self, number)
        store.restore(self._heads.pop(number, []), self._states.pop(number, {}))
        return store

    def unopened(self) -> list[str]:
        """The topics that the file has records of and that were not opened since the start."""
        try:
            rows = self.reading.execute("SELECT name FROM topics").fetchall()
        except sqlite3.Error as error:
            if is_damage(error):
                self.found_damage(error)
            return []
        names = {name for (name,) in rows if isinstance(name, str)}
        return sorted(name for name in names if topic_id(name) in self._heads)

    def abandon(self, name: str) -> None:
        """Hold nothing of a topic that nobody uses any more; `sweep` erases its rows."""
        if self.writer is None:
            return
        store, topic = self._stores.pop(name, None), topic_id(name)
        for number in (topic, staging_id(topic)):
            entries = [entry for entry, _ in self._heads.pop(number, [])]
            streams = {*self._states.pop(number, {})}
            if store is not None:
                entries += [*store.index.shown.values(), *store.index.hidden.values()]
                streams |= store.index.lanes.keys()
                store = store._staging
            mine = [it for it in entries if 0 <= it.row <= ROW_MAX]
            self._abandoned += [(it.row, owner_of(number, it.place)) for it in mine]
            for stream in streams:
                self.writer.note(number, stream, None)

    def sweep(self) -> None:
        """Erase some of what was abandoned; after a crash the rest is there at the next start."""
        if self.writer is not None:
            for _ in range(min(SWEEP_MAX, len(self._abandoned))):
                self.writer.erase(*self._abandoned.pop())

    def close(self) -> None:
        """Write what is pending and let go of the directory."""
        self.reading.close()
        if self.writer is not None and self._writing is not None:
            self.writer.close()
            self._writing.close()
            if self.writer.stalled is None and not self.damaged:
                self._directory.mark(CLEAN)
        self._directory.release()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def row(self) -> int:
        """The number of a new row."""
        self._next_row += 1
        return self._next_row - 1

    @property
    def path(self) -> Path:
        """The directory."""
        return self._directory.path

    def found_damage(self, error: sqlite3.Error) -> None:
        """The file is not what it should be: the next start saves what can be read of it."""
        if not self.damaged:
            self.damaged = True
            self._directory.mark(DAMAGED)
            self.report(f"{self._directory.path}: damaged ({error}); start again to mend it")

    def set_aside(self, rows: Sequence[int], what: str = "the bytes of") -> None:
        """Move rows out of the way that are not what was written."""
        if self.writer is not None:
            for row in rows:
                self.writer.set_aside(row)
        path = self._directory.path
        self.report(f"{path}: {what} {len(rows)} records are damaged; set aside, peers have them")

    def bodies(self, rows: Sequence[int]) -> dict[int, bytes]:
        """What the file has as bodies of these rows."""
        found: dict[int, bytes] = {}
        for at in range(0, len(rows), SELECT_MAX):
            part = rows[at : at + SELECT_MAX]
            try:
                found.update(self._select(part))
            except sqlite3.Error as error:
                if is_damage(error):
                    self.found_damage(error)
                found.update(self._one_by_one(part))
        return found

    def entries(self, topic: int) -> list[tuple[Entry, int]]:
        """What is on disk of a topic, or on its way there; raises sqlite3.Error."""
        unwritten = ({}, set(), set()) if self.writer is None else self.writer.unwritten()
        heads, erased, aside = unwritten
        query = f"SELECT id, head FROM records WHERE {OF_TOPIC}"  # noqa: S608
        heads.update(self.reading.execute(query, (of_topic(topic),)))
        found = [
            entry_of(row, head)
            for row, head in heads.items()
            if row not in aside and (row, owner_in(head)) not in erased
        ]
        return [(it[1], it[2]) for it in found if it is not None and it[0] == topic]

    def owner(self, row: int) -> tuple[int, Place] | None:
        """The topic and the place that a row's head names; None if it names none."""
        pending = self.writer is not None and self.writer.body(row) is not None
        if pending or not 0 <= row <= ROW_MAX:
            return (0, -1)  # of nobody who could not read it
        try:
            query = "SELECT head FROM records WHERE id = ?"
            found = self.reading.execute(query, (row,)).fetchone()
        except sqlite3.Error:
            return None
        described = None if found is None else entry_of(row, found[0])
        return None if described is None else (described[0], described[1].place)

    def _select(self, rows: Sequence[int]) -> list[tuple[int, bytes]]:
        marks = ", ".join("?" * len(rows))
        query = f"SELECT id, body FROM records WHERE id IN ({marks})"  # noqa: S608
        return self.reading.execute(query, rows).fetchall()

    def _one_by_one(self, rows: Sequence[int]) -> Iterable[tuple[int, bytes]]:
        for row in rows:
            try:
                yield from self._select([row])
            except sqlite3.Error:
                continue  # this one is what cannot be read

    def _scan_whole(self) -> list[int]:
        """Read the heads of all rows, of what can be saved if the file is damaged."""
        try:
            return self._scan()
        except sqlite3.Error as error:
            if self._writing is None:
                self.report(f"{self._directory.path}: cannot be read further ({error})")
                return []
            self.reading.close()
            self._writing.close()
            why = f"is damaged ({error})"
            self.reading, self._writing = open_anew(self._directory, self.report, why)
            return self._scan()

    def _scan(self) -> list[int]:
        """Read the heads of all rows; returns the rows whose checksum is wrong."""
        self._heads: dict[int, list[tuple[Entry, int]]] = {}
        self._states: dict[int, dict[Stream, State]] = {}
        self._next_row, wrong = 1, []
        for row, head in self.reading.execute("SELECT id, head FROM records"):
            described = entry_of(row, head)
            self._next_row = max(self._next_row, row + 1)
            if described is None:
                wrong.append(row)
            else:
                topic, entry, low = described
                self._heads.setdefault(topic, []).append((entry, low))
        for topic, who, incarnation, state in self.reading.execute("SELECT * FROM streams"):
            known = unpack_state(state)
            if known is not None:
                self._states.setdefault(topic, {})[who, incarnation] = known
        return wrong


class SqliteStore(Store):
    """The store of one topic in a database."""

    def __init__(self, database: Database, topic: int) -> None:
        super().__init__()
        self._database = database
        self._topic = topic
        self._rows: set[int] = set()  # that the file has of it, or will have
        self._staging: SqliteStore | None = None

    def staging(self) -> "SqliteStore":
        """What is staged for this topic, in the same file under another number."""
        if self._staging is None:
            self._staging = self._database.opened(staging_id(self._topic))
        return self._staging

    def restore(self, heads: Iterable[tuple[Entry, int]], states: dict[Stream, State]) -> None:
        """Take what the file has of this topic."""
        once = self._once(heads)
        for stream, (gone, newest, delivered) in states.items():
            self.index.lane(stream).gone = gone
            for lo, hi in delivered:
                self.delivered.add(stream, lo, hi, newest)
        self.index.load(once)
        # By number: marks of a history that came in another order would have too many holes.
        for stream, lane in self.index.lanes.items():
            newest = max((entry.place for entry in lane.entries), default=0) >> RECORD_KEY_BITS
            for lo, hi in lane.covered:
                self.delivered.add(stream, lo, hi, newest)

    def _once(self, heads: Iterable[tuple[Entry, int]]) -> list[tuple[Entry, int]]:
        """Each record once; a row more is erased."""
        once: dict[int, tuple[Entry, int]] = {}
        for entry, low in heads:
            if entry.place in once:
                self._erase(entry)
            else:
                once[entry.place] = (entry, low)
        self._rows = {entry.row for entry, _ in once.values()}
        return list(once.values())

    def mend(self) -> None:
        """Make the index anew from the file: a fault in memory has not changed that."""
        try:
            heads = self._database.entries(self._topic)
        except sqlite3.Error as error:
            if is_damage(error):
                self._database.found_damage(error)
            super().mend()
        else:
            self._mend(self._once(heads))

    def audit(self, limit: int) -> int:
        """Check the next records; first, whether the index knows as many as the file has."""
        if len(self._rows) != len(self.index.shown) + len(self.index.hidden):
            self.mend()
            return 1 + super().audit(limit)
        return super().audit(limit)

    def commit(self, done: Committed) -> None:
        """Call `done`, in the writer's thread, once all that was appended so far is on disk."""
        if self._database.writer is None:
            done(CapacityExceeded("the store is read-only"))
        else:
            self._database.writer.commit(done)

    def append(self, records: Iterable[Record]) -> list[Arrival]:
        """Hold records; what they insert, delete and change is on disk together, or not at all."""
        with self._together():
            return super().append(records)

    def show(self, window: Window) -> None:
        """Show what `window` keeps; what it deletes is deleted together."""
        with self._together():
            super().show(window)

    def purge(self, windows: Sequence[Window]) -> None:
        """Delete what no window would show, together."""
        with self._together():
            super().purge(windows)

    def drop(self, stream: Stream) -> None:
        """Hold nothing of a stream; all of it is deleted together."""
        with self._together():
            super().drop(stream)

    def _together(self) -> AbstractContextManager[object]:
        writer = self._database.writer
        return nullcontext() if writer is None else writer.together()

    def _admit(self, records: Sequence[Record]) -> None:
        writer = self._database.writer
        if writer is None:
            raise CapacityExceeded("the store is read-only: nothing can be published here")
        if writer.stalled is not None:
            raise CapacityExceeded(f"the store cannot write ({writer.stalled}): try again later")
        size = sum(len(record.data) for record in records)
        if writer.pending_bytes and writer.pending_bytes + size > PENDING_BYTES_MAX:
            raise CapacityExceeded(f"{writer.pending_bytes} bytes are not on disk yet: slow down")

    def _write(self, entry: Entry, record: Record) -> None:
        entry.row, entry.check = self._database.row(), check_of(record.data, entry)
        self._rows.add(entry.row)
        if self._database.writer is not None:
            head = head_of(self._topic, record)
            self._database.writer.insert(entry.row, head, record.data)

    def _erase(self, entry: Entry) -> None:
        self._rows.discard(entry.row)
        if self._database.writer is not None and 0 <= entry.row <= ROW_MAX:
            self._database.writer.erase(entry.row, owner_of(self._topic, entry.place))

    def _note(self, stream: Stream) -> None:
        if self._database.writer is None:
            return
        lane, numbers = self.index.lanes.get(stream), self.delivered.numbers(stream)
        state = None
        if lane is not None:
            lane.recall(bounded=self.index.bounded)  # what a fault made of it is not to outlive it
            state = pack_state(lane.gone, self.delivered.newest(stream), numbers)
        self._database.writer.note(self._topic, stream, state)

    def _load(self, entries: Sequence[Entry]) -> list[Record | None]:
        writer = self._database.writer
        bodies: dict[int, bytes | None] = {}
        if writer is not None and writer.pending_bytes:
            bodies = {entry.row: writer.body(entry.row) for entry in entries}
        rest = sorted({entry.row for entry in entries if bodies.get(entry.row) is None})
        rest = [row for row in rest if 0 <= row <= ROW_MAX]
        bodies.update(self._database.bodies(rest))
        found = [record_in(bodies.get(entry.row), entry) for entry in entries]
        pairs = zip(entries, found, strict=True)
        damaged = {entry.row: entry for entry, record in pairs if record is None}
        if damaged:
            self._let_go(list(damaged.values()))
        return found

    def _let_go(self, entries: Sequence[Entry]) -> None:
        """Hold these no longer, and set aside the rows that are theirs.

        If it is memory that is wrong, the disk is left as it is: the next start finds them there.
        """
        if not all(self.index.has(entry) for entry in entries):
            raise ValueError("an entry is not where it says that it is")
        owners = {entry.row: self._database.owner(entry.row) for entry in entries}
        mine = [it.row for it in entries if owners[it.row] in (None, (self._topic, it.place))]
        if mine:
            self._database.set_aside(mine)
            self._rows.difference_update(mine)
        for entry in entries:
            self._damaged(entry)
