"""Damage to the files of a node that is not running."""

import shutil
from pathlib import Path
from random import Random

STORE = "store"


def wipe(directory: Path) -> int:
    """Remove a node's store; how many bytes of it there were."""
    store = directory / STORE
    size = sum(path.stat().st_size for path in _files(store))
    shutil.rmtree(store, ignore_errors=True)
    return size


def keep_copy(directory: Path, copy: Path) -> None:
    """Copy a store as it is now, to bring it back later."""
    shutil.rmtree(copy, ignore_errors=True)
    if (directory / STORE).exists():
        shutil.copytree(directory / STORE, copy)


def bring_back(directory: Path, copy: Path) -> int:
    """Put an old copy in a store's place; how many files are other than they were."""
    store = directory / STORE
    before = {path.name: path.read_bytes() for path in _files(store)}
    shutil.rmtree(store, ignore_errors=True)
    if copy.exists():
        shutil.copytree(copy, store)
    after = {path.name: path.read_bytes() for path in _files(store)}
    return sum(before.get(name) != after.get(name) for name in {*before, *after} - {"lock"})


def flip(directory: Path, bits: int, rng: Random) -> int:
    """Flip bits anywhere in the files of a store; how many bytes are other than they were."""
    changed = 0
    files = [path for path in _data(directory) if path.stat().st_size]
    for path in files:
        data = bytearray(path.read_bytes())
        whole = sum(one.stat().st_size for one in files)
        before = bytes(data)
        for _ in range(max(1, round(bits * len(data) / whole))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        changed += sum(one != other for one, other in zip(before, data, strict=True))
    return changed


def truncate(directory: Path, keep: float) -> int:
    """Cut the files of a store short; how many bytes are gone."""
    gone = 0
    for path in _data(directory):
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(int(size * keep))
        gone += size - path.stat().st_size
    return gone


def _files(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("*") if path.is_file()) if store.exists() else []


def _data(directory: Path) -> list[Path]:
    """The files with records: SQLite's file and its log."""
    return [it for it in _files(directory / STORE) if it.name in ("records.db", "records.db-wal")]
