"""How a store writes and reads: synced, in groups, in one scan, bodies on disk alone."""

import gc
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore
from time import sleep

import pytest

from planaria.core.errors import CapacityExceeded
from planaria.lab.incidents.disk_ring import commit
from planaria.network.store import database as stores
from planaria.network.store import writer
from planaria.network.store.database import Database
from planaria.network.store.opening import FILE
from planaria.network.store.writer import Pending
from planaria.records.positions import Mark
from planaria.records.window import Window
from records_lab import NOW, A, numbers, record, stream

ENTRY_BYTES = 600  # of one record in memory, what it takes of all tables included
FULL = (2,)  # SQLite's number for it


@contextmanager
def held_up(directory: Path) -> Iterator[None]:
    """No transaction of the store's comes to its end meanwhile."""
    other = sqlite3.connect(directory / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.parametrize("found", ["nothing", "a store", "a damaged store"])
def test_an_acknowledged_commit_was_synced_however_the_store_was_opened(
    tmp_path: Path, found: str
) -> None:
    if found != "nothing":
        with Database(tmp_path) as database:
            commit(database.topic("news"))
    if found == "a damaged store":
        (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-5000])
    with Database(tmp_path, lambda _: None) as database:
        commit(database.topic("news"))
        assert database._writing is not None
        assert database._writing.execute("PRAGMA synchronous").fetchone() == FULL
        assert database._writing.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_comes_during_a_commit_is_one_transaction(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        store = database.topic("news")
        commit(store)
        assert database._writing is not None
        statements: list[str] = []
        database._writing.set_trace_callback(statements.append)
        acknowledged: list[int] = []
        all_of_them = Semaphore(0)
        with held_up(tmp_path):
            for number in range(40):
                store.append([record(A, number)])

                def done(error: Exception | None, number: int = number) -> None:
                    assert error is None
                    acknowledged.append(number)
                    all_of_them.release()

                store.commit(done)
            assert acknowledged == [], "nothing is on disk yet"
        for _ in range(40):
            assert all_of_them.acquire(timeout=30)
        database._writing.set_trace_callback(None)
    assert acknowledged == list(range(40))
    commits = [one for one in statements if one == "COMMIT"]
    assert 1 <= len(commits) <= 3, "what waited for the first is written together"


def test_bodies_are_in_memory_neither_after_a_commit_nor_after_a_start(tmp_path: Path) -> None:
    places, size = list[int](), 0
    with Database(tmp_path) as database:
        store = database.topic("news")
        commit(store)
        gc.collect()
        tracemalloc.start()
        for n in range(1000):
            one = record(A, 32 * n, 32, time=NOW + n // 50, text="x" * 200)
            places.append(one.place)
            size += len(one.data)
            store.append([one])
        commit(store)
        assert tracemalloc.get_traced_memory()[0] < ENTRY_BYTES * len(places)
        tracemalloc.stop()
    assert size > 10 * ENTRY_BYTES * len(places)
    gc.collect()
    tracemalloc.start()
    with Database(tmp_path) as database:
        store = database.topic("news")
        used, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert used < ENTRY_BYTES * len(places)
        assert most < size / 4, "not even on the way"
        assert store.places(0, NOW + 10**6) == sorted(places)


def test_history_of_many_publishers_is_read_in_one_scan(tmp_path: Path) -> None:
    writers = [stream(number) for number in range(1, 301)]
    with Database(tmp_path) as database:
        store = database.topic("news")
        store.append([record(of, n) for n in range(3) for of in writers])
        commit(store)
        statements: list[str] = []
        database.reading.set_trace_callback(statements.append)
        batch = store.read({}, limit=450)
        database.reading.set_trace_callback(None)
    assert numbers(batch) == {of: [0, 1, 2] for of in writers[:150]}
    assert len(statements) == 1


def test_more_than_is_allowed_to_wait_for_the_disk_is_refused_until_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "PENDING_BYTES_MAX", 2000)
    with Database(tmp_path) as database:
        store = database.topic("news")
        commit(store)
        with held_up(tmp_path):
            store.append([record(A, 0, text="x" * 1500)])
            with pytest.raises(CapacityExceeded, match="not on disk yet: slow down"):
                store.append([record(A, 1, text="x" * 1500)])
            assert numbers(store.read({})) == {A: [0]}
        commit(store)
        store.append([record(A, 1, text="x" * 1500)])
        assert numbers(store.read({})) == {A: [0, 1]}


def test_a_transaction_that_fails_half_way_is_undone_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.01)
    write, failed = Pending.write, list[sqlite3.Error]()

    def half_way(pending: Pending, connection: sqlite3.Connection) -> None:
        write(pending, connection)
        if pending.rows and len(failed) < 3:
            failed.append(sqlite3.OperationalError("disk I/O error"))
            failed[-1].sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise failed[-1]

    monkeypatch.setattr(Pending, "write", half_way)
    said: list[str] = []
    with Database(tmp_path, said.append) as database:
        store = database.topic("news")
        store.append([record(A, 0)])
        for _ in range(10_000):
            if len(failed) == 3 and database.writer is not None and not database.writer.stalled:
                break
            sleep(0.001)
        store.append([record(A, 1)])
        commit(store)
    assert [line for line in said if "disk I/O error" in line] == said != []
    with Database(tmp_path) as database:
        assert numbers(database.topic("news").read({})) == {A: [0, 1]}


def test_a_record_that_is_in_two_rows_is_read_once_and_stays_in_one(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        store = database.topic("news")
        store.append([record(A, 0), record(A, 1)])
        commit(store)
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("INSERT INTO records SELECT id + 7, head, body FROM records WHERE id = 1")
    other.close()
    with Database(tmp_path) as database:
        store = database.topic("news")
        assert numbers(store.read({})) == {A: [0, 1]}
        assert len(store) == 2
        commit(store)
        assert database.reading.execute("SELECT count(*) FROM records").fetchone() == (2,)


def test_what_was_dropped_and_delivered_is_remembered_when_a_file_is_mended(
    tmp_path: Path,
) -> None:
    first, last = record(A, 0, time=NOW), record(A, 1, 9, time=NOW + 1)
    for damaged in (False, True):
        said: list[str] = []
        with Database(tmp_path, said.append) as database:
            store = database.topic("news")
            store.show(Window(limit=5))
            store.purge([])
            arrivals = store.append([first, last])
            assert [it.new for it in arrivals] == ([[], []] if damaged else [[(0, 1)], [(1, 10)]])
            assert store.vector() == {A: Mark(10)}
            commit(store)
        assert bool(said) == damaged
        connection = sqlite3.connect(tmp_path / FILE)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
