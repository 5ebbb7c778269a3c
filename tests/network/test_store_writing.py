"""How a store writes and reads: synced, in groups, in one scan, bodies on disk alone."""

import gc
import sqlite3
import tracemalloc
from pathlib import Path
from threading import Semaphore

import pytest

from planaria.lab.incidents.disk_ring import commit
from planaria.network.store.database import Database
from planaria.network.store.opening import FILE
from records_lab import NOW, A, numbers, record, stream

ENTRY_BYTES = 600  # of one record in memory, what it takes of all tables included
FULL = (2,)  # SQLite's number for it


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
        with sqlite3.connect(tmp_path / FILE, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")  # so that the first transaction has to wait
            for number in range(40):
                store.append([record(A, number)])

                def done(error: Exception | None, number: int = number) -> None:
                    assert error is None
                    acknowledged.append(number)
                    all_of_them.release()

                store.commit(done)
            assert acknowledged == [], "nothing is on disk yet"
            other.execute("ROLLBACK")
        other.close()
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
