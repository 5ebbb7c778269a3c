"""How a store's file is opened, whatever became of it."""

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from planaria.network.store.directory import DAMAGED, IN_USE, Directory
from planaria.network.store.rows import APPLICATION, SCHEMA, VERSION, entry_of
from planaria.network.store.salvage import FORMATS, FORMATS_AT, UNREADABLE, Row, readable_rows

FILE = "records.db"
MENDED = "records.db.mended"
_SUFFIXES = ("-wal", "-shm")  # of files that SQLite keeps beside another
CHECKPOINT_PAGES = 4096  # 16 MiB of log, then it is worked into the file
PAGE_BYTES_MIN = 512  # SQLite takes a shorter file for an empty one
SALVAGED_ROWS = 1000  # in one transaction

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
# Ways to read where nothing can be written: as it is; alone, without the shared file that the log
# needs; without the log.
_READING = ("mode=ro", "mode=rw", "immutable=1")

Report = Callable[[str], None]


class Foreign(Exception):
    """A file that some other program or version wrote."""


class Opened(NamedTuple):
    """Connections to a sound file; `writing` is None where nothing can be written."""

    reading: sqlite3.Connection
    writing: sqlite3.Connection | None


def is_damage(error: sqlite3.Error) -> bool:
    """Does SQLite say that the file is not what it should be, rather than that it cannot write?"""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in _DAMAGE


def open_file(directory: Directory, report: Report) -> Opened:
    """Open the directory's file: as it is, or what can be saved of it, or for reading alone."""
    path = directory.path / FILE
    if not directory.writable:
        return _for_reading(path, report, "is read-only")
    if (directory.path / MENDED).exists() and not path.exists():
        (directory.path / MENDED).rename(path)
    try:
        return _as_it_is(directory, path, report)
    except Foreign as error:
        return open_anew(directory, report, str(error))
    except UnicodeDecodeError:
        return open_anew(directory, report, "is damaged (its schema is no text)")
    except sqlite3.Error as error:
        if is_damage(error):
            return open_anew(directory, report, f"is damaged ({error})")
        return _for_reading(path, report, f"cannot be written ({error})")


def _as_it_is(directory: Directory, path: Path, report: Report) -> Opened:
    if directory.left == DAMAGED:
        raise Foreign("was found damaged")
    used, log = path.exists(), path.with_name(f"{FILE}-wal")
    lost = used and directory.left == IN_USE and not log.exists()
    size = path.stat().st_size if used else 0
    if 0 < size < PAGE_BYTES_MIN:
        raise Foreign("is no database")
    if size and max(_formats(path)) > max(FORMATS):
        raise Foreign("is damaged (its header names a format that there is not)")
    if used and directory.left and not size:
        report(f"{path}: is empty; begins anew, peers have what was there")
    writing = _connect(path)
    try:
        _prepare(writing, used)
        if lost:
            report(f"{path}: its log is missing; what was only there is gone until peers bring it")
            found = writing.execute("PRAGMA quick_check(1)").fetchone()
            if found != ("ok",):
                raise Foreign(f"is damaged ({str(found[0]).splitlines()[-1]})")
        return Opened(_connect(path), writing)
    except BaseException:
        writing.close()
        raise


def _formats(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(FORMATS_AT)
        return file.read(len(FORMATS))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
    connection.text_factory = _text
    return connection


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _prepare(connection: sqlite3.Connection, used: bool) -> None:
    """Make the tables of a new file; raises Foreign if it is not ours."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    program = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if used and (tables or program or version) and (program, version) != (APPLICATION, VERSION):
        known = program == APPLICATION
        raise Foreign(f"is version {version}, not {VERSION}" if known else "is another program's")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    if not tables:
        ours = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
        connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} {ours} COMMIT;")


def _for_reading(path: Path, report: Report, why: str) -> Opened:
    """Serve what is there; publications are refused until the process is started again."""
    report(f"{path}: {why}; serves what is readable and refuses publications")
    for mode in _READING:
        uri = f"{path.absolute().as_uri()}?{mode}"
        try:
            with ExitStack() as attempt:
                connection = sqlite3.connect(uri, uri=True, isolation_level=None)
                attempt.callback(connection.close)
                connection.text_factory = _text
                if mode == "mode=rw":
                    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("SELECT id FROM records LIMIT 1").fetchall()
                attempt.pop_all()
                return Opened(connection, None)
        except UNREADABLE:
            continue
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return Opened(connection, None)


def open_anew(directory: Directory, report: Report, why: str) -> Opened:
    """Copy the rows that can be read into a new file, and set the old one aside.

    The new file takes its place last: who is killed on the way does it again.
    """
    path, mended = directory.path / FILE, directory.path / MENDED
    aside = directory.aside(FILE)
    try:
        _remove(mended)
        writing = _connect(mended)
        _prepare(writing, used=False)
        saved, ended = _copy(path, writing)
        writing.close()  # works its log into the file
        path.rename(aside)
        for suffix in _SUFFIXES:
            if path.with_name(FILE + suffix).exists():
                path.with_name(FILE + suffix).rename(aside.with_name(aside.name + suffix))
        mended.rename(path)
        report(f"{path}: {why}; {saved} records kept, the rest set aside in {aside.name}{ended}")
        writing = _connect(path)
        _prepare(writing, used=True)
        return Opened(_connect(path), writing)
    except (OSError, sqlite3.Error) as error:
        return _for_reading(path, report, f"{why}, and cannot be mended ({error})")


def _remove(path: Path) -> None:
    for suffix in ("", *_SUFFIXES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _copy(damaged: Path, writing: sqlite3.Connection) -> tuple[int, str]:
    """Copy the sound rows; returns how many records, and what ended it before its time."""
    saved, batch = 0, list[Row]()
    try:
        for row in readable_rows(damaged):
            batch.append(row)
            if len(batch) >= SALVAGED_ROWS:
                saved, batch = saved + _insert(writing, batch), []
        saved += _insert(writing, batch)
    except (OSError, sqlite3.Error) as error:
        if writing.in_transaction:
            writing.execute("ROLLBACK")
        return saved, f" (stopped: {error})"
    return saved, ""


def _insert(writing: sqlite3.Connection, rows: list[Row]) -> int:
    writing.execute("BEGIN IMMEDIATE")
    for table, *values in rows:
        marks = ", ".join("?" * len(values))
        writing.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)  # noqa: S608
    writing.execute("COMMIT")
    return sum(row[0] == "records" and entry_of(row[1], row[2]) is not None for row in rows)
