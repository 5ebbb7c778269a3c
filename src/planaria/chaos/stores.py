"""Damage to the files of a node that is not running."""

import shutil
from pathlib import Path
from random import Random

STORE = "store"
KEPT = (STORE, "overlays")  # of rings, and of the parts in other overlays
LOCK = "lock"  # says who uses a store, not what is in it
HALF_WRITTEN = shutil.ignore_patterns(".*.part")  # by a node that runs: gone in the next moment


def wipe(directory: Path) -> int:
    """Remove what a node keeps of publications; how many bytes of it there were."""
    size = sum(len(data) for data in _contents(directory).values())
    for name in KEPT:
        shutil.rmtree(directory / name, ignore_errors=True)
    return size


def keep_copy(directory: Path, copy: Path) -> None:
    """Copy that as it is now, to bring it back later."""
    shutil.rmtree(copy, ignore_errors=True)
    _copy(directory, copy)


def bring_back(directory: Path, copy: Path) -> int:
    """Put an old copy in its place; how many files are other than they were."""
    before = _contents(directory)
    wipe(directory)
    _copy(copy, directory)
    after = _contents(directory)
    return sum(before.get(name) != after.get(name) for name in {*before, *after})


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


def _copy(source: Path, target: Path) -> None:
    for name in KEPT:
        if (source / name).exists():
            shutil.copytree(source / name, target / name, ignore=HALF_WRITTEN)


def _contents(directory: Path) -> dict[str, bytes]:
    """All files, by their names."""
    files = [path for name in KEPT for path in _files(directory / name) if path.name != LOCK]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def _files(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("*") if path.is_file()) if store.exists() else []


def _data(directory: Path) -> list[Path]:
    """The files with records: SQLite's file and its log."""
    return [it for it in _files(directory / STORE) if it.name in ("records.db", "records.db-wal")]
