"""Disks that are full or read-only: back-pressure, and a start all the same."""

import subprocess
from pathlib import Path

import pytest

from planaria.core.errors import CapacityExceeded
from planaria.lab.incidents.disk_ring import commit
from planaria.network.store import writer
from planaria.network.store.database import Database
from planaria.network.store.opening import FILE
from planaria.records.record import Record
from records_lab import NOW, A, B, numbers, record


def test_a_full_disk_is_back_pressure_and_loses_nothing(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.05)
    said: list[str] = []
    acknowledged: list[Record] = []
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    with Database(small_disk / "store", said.append) as database:
        store = database.topic("news")
        refused = None
        for n in range(1000):
            one = record(A, n, text="x" * 4000)
            try:
                store.append([one])
                commit(store)
                acknowledged.append(one)
            except CapacityExceeded as error:
                refused = error
                break
            except AssertionError:
                continue  # on disk it is not, and was not acknowledged
        assert refused is not None
        assert "cannot write" in str(refused)
        assert len(said) == 1
        assert "refuses publications until it can" in said[0]
        assert len(acknowledged) > 10
        ballast.unlink()
        for _ in range(400):
            try:
                commit(store)
                break
            except AssertionError:
                continue
        store.append([record(B, 0)])
        commit(store)
        visible = store.places(0, NOW + 1)
        assert {one.place for one in acknowledged} < {*visible}
    with Database(small_disk / "store", said.append) as database:
        assert database.topic("news").places(0, NOW + 1) == visible, "what was pending is written"
    assert len(said) == 1


def test_a_process_killed_on_a_full_disk_starts_with_all_it_acknowledged(small_disk: Path) -> None:
    path = small_disk / "store"
    with Database(path, list[str]().append) as database:
        store = database.topic("news")
        acknowledged = []
        for n in range(400):
            try:
                store.append([record(A, n, text="x" * 4000)])
                commit(store)
                acknowledged.append(n)
            except (CapacityExceeded, AssertionError):
                break
        assert len(acknowledged) > 10
        for name in (FILE, f"{FILE}-wal"):
            (small_disk.parent / name).write_bytes((path / name).read_bytes())
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
        (path / name).unlink(missing_ok=True)
    for name in (FILE, f"{FILE}-wal"):
        (path / name).write_bytes((small_disk.parent / name).read_bytes())
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)):
                pass
        except OSError:
            pass
    said: list[str] = []
    with Database(path, said.append) as database:
        found = numbers(database.topic("news").read({}, limit=10**6)).get(A, [])
        assert found[: len(acknowledged)] == acknowledged
        if database.writer is None:
            assert len(said) == 1
            with pytest.raises(CapacityExceeded, match="read-only"):
                database.topic("news").append([record(B, 0)])


def test_a_read_only_disk_serves_what_it_has(small_disk: Path) -> None:
    path = small_disk / "store"
    with Database(path) as database:
        store = database.topic("news")
        store.append([record(A, n) for n in range(50)])
        commit(store)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    said: list[str] = []
    with Database(path, said.append) as database:
        assert numbers(database.topic("news").read({})) == {A: list(range(50))}
        with pytest.raises(CapacityExceeded, match="read-only"):
            database.topic("news").append([record(B, 0)])
        errors: list[Exception | None] = []
        database.topic("news").commit(errors.append)
        assert "read-only" in str(errors[0])
    assert len(said) == 1
    assert "read-only; serves what is readable and refuses publications" in said[0]


def test_a_full_disk_without_any_file_still_starts(small_disk: Path) -> None:
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)):
                pass
        except OSError:
            pass
    said: list[str] = []
    with Database(small_disk / "store", said.append) as database:
        assert database.topic("news").vector() == {}
        with pytest.raises(CapacityExceeded):
            database.topic("news").append([record(A)])
    assert len(said) == 1
