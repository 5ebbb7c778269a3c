"""The one thread that writes: a transaction for all that has come since the last one.

Where a disk takes 8 ms to make something durable, one transaction per record would be 125 a second;
what comes while one is under way waits for the next together.
"""

import sqlite3
from collections.abc import Callable
from threading import Condition, Thread

from planaria.network.store.opening import is_damage
from planaria.network.store.rows import OWNED, Owner, owner_in
from planaria.records.record import Stream
from planaria.records.store import Committed

PENDING_BYTES_MAX = 64 << 20  # written by nobody yet; then the store refuses
RETRY_SECONDS = 1.0  # between attempts while the disk is full

Note = tuple[int, Stream]


class Pending:
    """Changes that belong into one transaction."""

    __slots__ = ("erased", "notes", "rows", "set_aside", "topics", "waiting")

    def __init__(self) -> None:
        self.rows: dict[int, tuple[bytes, bytes]] = {}  # row: head and body
        self.erased: list[tuple[int, Owner]] = []
        self.set_aside: list[int] = []
        self.notes: dict[Note, bytes | None] = {}  # what is remembered of a stream; None: nothing
        self.topics: dict[int, str] = {}
        self.waiting: list[Committed] = []

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)

    def followed_by(self, later: "Pending") -> "Pending":
        """Both as one, after the first of them failed."""
        both = Pending()
        both.rows = {**self.rows, **later.rows}
        both.erased = self.erased + later.erased
        both.set_aside = self.set_aside + later.set_aside
        both.notes = {**self.notes, **later.notes}
        both.topics = {**self.topics, **later.topics}
        both.waiting = later.waiting
        return both

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all of it in the transaction that is open."""
        run = connection.executemany
        run("INSERT OR REPLACE INTO topics VALUES (?, ?)", self.topics.items())
        rows = ((row, head, body) for row, (head, body) in self.rows.items())
        run("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", rows)
        aside = [(row,) for row in self.set_aside]
        run("INSERT OR REPLACE INTO set_aside SELECT * FROM records WHERE id = ?", aside)
        run("DELETE FROM records WHERE id = ?", aside)
        mine = [(row, *owner) for row, owner in self.erased]
        run(f"DELETE FROM records WHERE id = ? AND {OWNED}", mine)  # noqa: S608
        kept = [(t, *s, state) for (t, s), state in self.notes.items() if state is not None]
        run("INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?)", kept)
        gone = [(t, *s) for (t, s), state in self.notes.items() if state is None]
        run("DELETE FROM streams WHERE topic = ? AND publisher = ? AND incarnation = ?", gone)


class Writer:
    """Writes what it is given, in order, and says when it is on disk. `stalled`: why it cannot."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        report: Callable[[str], None],
        damaged: Callable[[sqlite3.Error], None],
    ) -> None:
        self.stalled: Exception | None = None
        self.pending_bytes = 0
        self._connection = connection
        self._report = report
        self._damaged = damaged
        self._pending, self._writing = Pending(), Pending()
        self._closing = False
        self._changed = Condition()  # re-entrant: `together` is held around other calls
        self._thread = Thread(target=self._run, name="planaria store", daemon=True)
        self._thread.start()

    def together(self) -> Condition:
        """Hold this (`with`) to have all that is given meanwhile in one transaction."""
        return self._changed

    def insert(self, row: int, head: bytes, body: bytes) -> None:
        """Write a record."""
        with self._changed:
            self._pending.rows[row] = (head, body)
            self.pending_bytes += len(head) + len(body)
            self._changed.notify()

    def erase(self, row: int, owner: Owner) -> None:
        """Delete a record; one that is not written yet never will be.

        A row that belongs to another record stays: memory named the wrong one.
        """
        with self._changed:
            pending = self._pending.rows.get(row)
            if pending is None:
                self._pending.erased.append((row, owner))
                self._changed.notify()
            elif owner_in(pending[0]) == owner:
                del self._pending.rows[row]
                self.pending_bytes -= len(pending[0]) + len(pending[1])

    def set_aside(self, row: int) -> None:
        """Move a row that is not what was written out of the way."""
        with self._changed:
            self._pending.set_aside.append(row)
            self._changed.notify()

    def note(self, topic: int, stream: Stream, state: bytes | None) -> None:
        """Remember this of a stream; None: nothing."""
        with self._changed:
            self._pending.notes[topic, stream] = state
            self._changed.notify()

    def name(self, topic: int, name: str) -> None:
        """Remember a topic's name."""
        with self._changed:
            self._pending.topics[topic] = name
            self._changed.notify()

    def commit(self, done: Committed) -> None:
        """Call `done`, in the writer's thread, once all that was given so far is on disk."""
        with self._changed:
            self._pending.waiting.append(done)
            self._changed.notify()

    def body(self, row: int) -> bytes | None:
        """The bytes of a record that may not be on disk yet."""
        with self._changed:
            found = self._pending.rows.get(row) or self._writing.rows.get(row)
            return found[1] if found else None

    def unwritten(self) -> tuple[dict[int, bytes], set[tuple[int, Owner]], set[int]]:
        """The heads of records that may not be on disk yet, and rows that may still be there: those
        that are erased if they are their owner's, and those that are set aside."""
        with self._changed:
            parts = (self._writing, self._pending)
            heads = {row: head for part in parts for row, (head, _) in part.rows.items()}
            erased = {one for part in parts for one in part.erased}
            return heads, erased, {row for part in parts for row in part.set_aside}

    def close(self) -> None:
        """Write what can be written, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._take():
            error = self._transaction()
            waiting = self._writing.waiting
            with self._changed:
                if error is None:
                    size = sum(len(h) + len(b) for h, b in self._writing.rows.values())
                    self.pending_bytes -= size
                else:
                    self._pending = self._writing.followed_by(self._pending)
                self._writing = Pending()
                if error is not None and self.stalled is None:
                    self._report(
                        f"store: cannot write ({error}); refuses publications until it can"
                    )
                self.stalled = error
            for done in waiting:
                self._tell(done, error)

    def _take(self) -> bool:
        """Wait for something to write; False when there is nothing more to come."""
        with self._changed:
            if self.stalled is not None and not self._closing:
                self._changed.wait(RETRY_SECONDS)
            while not self._closing and not self._pending and self.stalled is None:
                self._changed.wait()
            if self._closing and (self.stalled is not None or not self._pending):
                return False
            self._writing, self._pending = self._pending, Pending()
            return True

    def _transaction(self) -> Exception | None:
        """Write what was taken; what prevents it, if anything does: then nothing is written."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._writing.write(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if is_damage(error):
                self._damaged(error)
            return error
        return None

    def _tell(self, done: Committed, error: Exception | None) -> None:
        try:
            done(error)
        except Exception as wrong:  # a listener's mistake must not end the writer
            self._report(f"store: {done!r} failed after a commit: {wrong!r}")
