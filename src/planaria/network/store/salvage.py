"""What can still be read of a damaged database, row by row.

SQLite refuses a file that is shorter than it should be, or stops at the first page that cannot be.
Padded with zeros and read by ranges it gives all rows that do not lie on a damaged page.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planaria.network.store.rows import entry_of, unpack_state
from planaria.records.record import intact

RANGE_MIN = 8  # rows: about a page of them; a smaller unreadable range is given up
QUERIES_MAX = 1 << 17  # so that a file of any kind is done within seconds
ROWS_PER_PAGE_MAX = 64  # of the smallest records
FORMATS_AT = 18  # in the header: what a program must know to write the file, and to read it
FORMATS = b"\2\2"  # with a log, the highest that there are

# What SQLite says of damage may quote it: where those bytes are no text, Python raises the second.
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)

Row = tuple[Any, ...]


def readable_rows(path: Path) -> Iterator[Row]:
    """The sound rows of a database file: ('records', id, head, body), ('streams', ...), names."""
    pages = pad(path)
    try:
        connection = sqlite3.connect(path, isolation_level=None)
    except sqlite3.Error:
        return
    try:
        for row in _by_ranges(connection, pages):
            described = entry_of(*row[:2])
            if described is not None and intact(_bytes(row[2]), described[1].place) is not None:
                yield ("records", *row)
        for row in _until_damage(connection, "SELECT * FROM streams"):
            if unpack_state(row[3]) is not None:
                yield ("streams", *row)
        for row in _until_damage(connection, "SELECT * FROM topics"):
            if isinstance(row[1], str):
                yield ("topics", *row)
    finally:
        connection.close()


def pad(path: Path) -> int:
    """Give a file the length that its first page claims, with zeros, and formats that there are.

    Returns its pages.
    """
    with path.open("r+b") as file:
        head = file.read(100)
        size = int.from_bytes(head[16:18], "big")
        size = 65536 if size == 1 else size
        pages = int.from_bytes(head[28:32], "big")
        length = file.seek(0, 2)
        if head[:16] != b"SQLite format 3\0" or size < 512:
            return 0
        if length < size * pages:
            file.truncate(size * pages)  # a hole in the file: takes no room on the disk
        if max(head[FORMATS_AT:][:2]) > max(FORMATS):
            file.seek(FORMATS_AT)
            file.write(FORMATS)
        return pages


def _by_ranges(connection: sqlite3.Connection, pages: int) -> Iterator[Row]:
    """The rows of records by ascending and descending scans around whatever cannot be read."""
    found = list(_until_damage(connection, "SELECT max(id) FROM records"))
    newest = found[0][0] if found and isinstance(found[0][0], int) else 0
    scans = _Scans(connection)
    if not newest:
        yield from scans.ascending(1, 1 << 62)
        newest = scans.reached + ROWS_PER_PAGE_MAX * pages
        ranges = [(scans.reached + 1, newest)] if scans.broken else []
    else:
        ranges = [(1, newest)]
    while ranges and scans.queries < QUERIES_MAX:
        lo, hi = ranges.pop()
        if hi < lo:
            continue
        yield from scans.ascending(lo, hi)
        if not scans.broken:
            continue
        lo = scans.reached + 1
        yield from scans.descending(lo, hi)
        hi = scans.reached - 1
        if hi - lo >= max(RANGE_MIN, newest >> 14):
            middle = (lo + hi) // 2
            ranges += [(middle + 1, hi), (lo, middle)]


class _Scans:
    """Range scans that remember how far they came, and whether damage ended them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.queries = 0
        self.reached = 0
        self.broken = False

    def ascending(self, lo: int, hi: int) -> Iterator[Row]:
        self.reached = lo - 1
        yield from self._scan("ASC", lo, hi, 1)

    def descending(self, lo: int, hi: int) -> Iterator[Row]:
        self.reached = hi + 1
        yield from self._scan("DESC", lo, hi, -1)

    def _scan(self, direction: str, lo: int, hi: int, step: int) -> Iterator[Row]:
        self.queries += 1
        self.broken = False
        query = (
            f"SELECT id, head, body FROM records WHERE id BETWEEN ? AND ? ORDER BY id {direction}"  # noqa: S608
        )
        try:
            for row in self._connection.execute(query, (lo, hi)):
                if not lo <= row[0] <= hi or (row[0] - self.reached) * step <= 0:
                    self.broken = True  # a page of zeros has rows too, all of them number 0
                    return
                self.reached = row[0]
                yield row
        except UNREADABLE:
            self.broken = True


def _until_damage(connection: sqlite3.Connection, query: str) -> Iterator[Row]:
    try:
        yield from connection.execute(query)
    except UNREADABLE:
        return


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""
