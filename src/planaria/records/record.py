"""A record: consecutive publications of one publisher, sealed once into bytes.

The record, not the publication, is hashed, stored, forwarded and reconciled. Its bytes are columns
(little endian), so that a reader can hand them to Arrow without touching a row:

    head        mark, version, columns, count, publisher, first, low, time, incarnation, pairs
    timestamps  count x int64, microseconds since 1970       (if any publication has one)
    payloads    (count + 1) x uint32 offsets
    keys        (count + 1) x uint32 offsets                 (if any publication has one)
    headers     (count + 1) x uint32 offsets into pairs, then (pairs + 1) x uint32 offsets of
                names and of values                          (if any publication has one)
    validity    one bit per publication, least significant first: has it a key?
    data        payloads, keys, names, values, each without separators
    batch       the key of a manifest, a batch, where it begins (if it settled with a batch)
    evidence    who published it, and its signature (version 2; see `planaria.records.evidence`)
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain, pairwise
from struct import Struct as Layout
from struct import error as StructError  # noqa: N812
from struct import pack, unpack_from
from typing import NamedTuple

from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.errors import MalformedMessage, UsageError
from planaria.core.ids import NodeId, is_node_id
from planaria.records.evidence import EVIDENCE_BYTES_MAX, Sealer, evidence_size
from planaria.records.tables import (
    Headers,
    ascends,
    cells_of,
    check_names,
    check_table,
    check_validity,
    table_of,
)

RECORD_KEY_BYTES = 16
RECORD_KEY_BITS = 8 * RECORD_KEY_BYTES
INCARNATION_BYTES = 12  # 96 bits of the operating system's: no two process starts share them
TIME_BITS = 40  # seconds since 1970, for 34,000 years
TIME_MAX = (1 << TIME_BITS) - 1
PLACE_BITS = TIME_BITS + RECORD_KEY_BITS
SEQUENCE_MAX = 2**63 - 1
PUBLICATIONS_MAX = 4096  # in one record; bounds what one message makes a receiver do
# A message around one record needs at most a topic of 1024 bytes and some integers.
RECORD_BYTES_MAX = FRAME_BYTES_MAX - 4096
SIGNED_BYTES_MAX = RECORD_BYTES_MAX + EVIDENCE_BYTES_MAX
HEADERS_MAX = 64  # of one publication
HEADER_NAME_BYTES_MAX = 255
HEADER_VALUE_BYTES_MAX = 8192
PUBLICATION_KEY_BYTES_MAX = 1024

Stream = tuple[NodeId, bytes]  # publisher and incarnation: whoever numbers publications from 0
Place = int  # a record's place in the order of retention: its time, then its key

_HEAD, _READ = Layout("<2sBBIqqqq12sI"), Layout("<3xBIqqqq12sI")  # read without mark, version
HEAD_BYTES = _HEAD.size
_MARK, _PLAIN, _SIGNED = b"PR", 1, 2  # versions: without evidence, and with it
BEGIN, _BEGIN_SIGNED = (_MARK + bytes([version]) for version in (_PLAIN, _SIGNED))
_ONE = Layout("<II")  # the offsets of a single payload
_HASH = blake2b(digest_size=RECORD_KEY_BYTES, person=b"planaria record")
KEYS, HEADERS, TIMESTAMPS, BATCH = 1, 2, 4, 8  # columns that may be left out
BATCH_LAYOUT = Layout("<16sqq")
PAYLOAD_BYTES_MAX = 1 << 20  # of one publication; the rest of its record is for key and headers


class MalformedRecord(MalformedMessage):
    """Bytes that are not one whole, sound record."""


class Draft(NamedTuple):
    """What an application publishes: not numbered yet. `timestamp` in microseconds since 1970."""

    payload: bytes
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None


class Publication(NamedTuple):
    """One publication as its reader sees it; its identity is its position."""

    publisher: NodeId
    incarnation: bytes
    sequence: int
    payload: bytes
    key: bytes | None
    headers: Headers
    timestamp: int


class Record:
    """A sealed record. `low` is the lowest number that its publisher still vouches for."""

    __slots__ = (
        "columns", "count", "data", "first", "incarnation", "key", "low", "pairs", "place",
        "publisher", "time",
    )  # fmt: skip

    count: int
    first: int
    incarnation: bytes
    low: int
    pairs: int
    place: Place  # where it stands in the order of retention, (time, key), as one integer
    publisher: NodeId
    time: int

    def __init__(self, data: bytes, key: bytes) -> None:
        """Read the head of bytes known to be sound: sealed here, or decoded before."""
        self.data, self.key = data, key
        (
            self.columns, self.count, self.publisher, self.first, self.low, self.time,
            self.incarnation, self.pairs,
        ) = _READ.unpack_from(data)  # fmt: skip
        self.place = self.time << RECORD_KEY_BITS | int.from_bytes(key, "big")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.data == other.data

    def __hash__(self) -> int:
        return int.from_bytes(self.key[:8], "big")

    def __repr__(self) -> str:
        span = f"{self.publisher}/{self.incarnation.hex()[:8]} [{self.first}, {self.end})"
        return f"<Record {span} at {self.time}, {self.key.hex()[:8]}>"

    @property
    def stream(self) -> Stream:
        """Who numbers these publications."""
        return self.publisher, self.incarnation

    @property
    def end(self) -> int:
        """The number after the last."""
        return self.first + self.count

    @property
    def signed(self) -> bool:
        """Does evidence of its publisher end it?"""
        return self.data[2] == _SIGNED

    @property
    def columns_end(self) -> int:
        """Where its columns end and evidence begins."""
        size = len(self.data)
        if not self.signed:
            return size
        return size - evidence_size(self.data, settled=bool(self.columns & BATCH))

    def offsets(self) -> "Offsets":
        """Where the columns lie in `data`."""
        return Offsets(self.columns, self.count, self.pairs, self.data)

    def payloads(self, lo: int, hi: int) -> list[bytes]:
        """The payloads of the numbers from `lo` to before `hi`."""
        lo, hi = lo - self.first, hi - self.first
        if not self.columns:  # payloads alone, as nearly always
            return cells_of(self.data, HEAD_BYTES, HEAD_BYTES + 4 * (self.count + 1), lo, hi)
        at = self.offsets()
        return cells_of(self.data, at.payloads, at.payload_data, lo, hi)

    def timestamps(self, lo: int, hi: int) -> tuple[int, ...]:
        """The times of the numbers from `lo` to before `hi`, in microseconds since 1970."""
        if not self.columns & TIMESTAMPS:
            return (self.time * 1_000_000,) * (hi - lo)
        start = self.offsets().timestamps + 8 * (lo - self.first)
        return unpack_from(f"<{hi - lo}q", self.data, start)

    def publications(self, lo: int, hi: int) -> list[Publication]:
        """The publications numbered from `lo` to before `hi`."""
        lo = max(lo, self.first)
        hi = max(lo, min(hi, self.end))
        at, rows = self.offsets(), range(lo - self.first, hi - self.first)
        payloads = self.payloads(lo, hi)
        keys: list[bytes | None] = [None] * len(rows)
        headers: list[Headers] = [()] * len(rows)
        if self.columns & KEYS:
            keys = at.key_cells(rows)
        if self.columns & HEADERS:
            headers = at.header_cells(rows)
        numbers = range(lo, hi)
        each = zip(numbers, payloads, keys, headers, self.timestamps(lo, hi), strict=True)
        who, start = self.publisher, self.incarnation
        return [Publication(who, start, n, p, k, h, t) for n, p, k, h, t in each]


class Offsets:
    """Where the columns of a record lie in its bytes."""

    __slots__ = (
        "data", "end", "header_rows", "key_data", "keys", "name_data", "names", "payload_data",
        "payloads", "timestamps", "validity", "value_data", "values",
    )  # fmt: skip

    def __init__(self, columns: int, count: int, pairs: int, data: bytes) -> None:
        self.data = data
        self.timestamps = HEAD_BYTES
        self.payloads = self.timestamps + 8 * count * bool(columns & TIMESTAMPS)
        at = self.payloads + 4 * (count + 1)
        self.keys = self.header_rows = self.names = self.values = at
        if columns & KEYS:
            at += 4 * (count + 1)
            self.header_rows = self.names = self.values = at
        if columns & HEADERS:
            self.names = at + 4 * (count + 1)
            self.values = self.names + 4 * (pairs + 1)
            at = self.values + 4 * (pairs + 1)
        self.validity = at
        at += (count + 7) // 8 * bool(columns & KEYS)
        self.payload_data = at
        at += self._last(self.payloads, count)
        self.key_data = at
        if columns & KEYS:
            at += self._last(self.keys, count)
        self.name_data = self.value_data = at
        if columns & HEADERS:
            self.value_data = at + self._last(self.names, pairs)
            at = self.value_data + self._last(self.values, pairs)
        self.end = at

    def _last(self, table: int, entries: int) -> int:
        """The last offset of a table: how long its data is; 0 if the bytes end before."""
        at = table + 4 * entries
        return int.from_bytes(self.data[at : at + 4], "little")

    def key_cells(self, rows: range) -> list[bytes | None]:
        """The keys of `rows`, None for those without."""
        cells = cells_of(self.data, self.keys, self.key_data, rows.start, rows.stop)
        bits = self.data[self.validity : self.payload_data]
        return [
            cell if bits[row >> 3] >> (row & 7) & 1 else None
            for row, cell in zip(rows, cells, strict=True)
        ]

    def header_cells(self, rows: range) -> list[Headers]:
        """The headers of `rows`."""
        bounds = unpack_from(f"<{len(rows) + 1}I", self.data, self.header_rows + 4 * rows.start)
        lo, hi = bounds[0], bounds[-1]
        names = [c.decode() for c in cells_of(self.data, self.names, self.name_data, lo, hi)]
        values = cells_of(self.data, self.values, self.value_data, lo, hi)
        pairs = list(zip(names, values, strict=True))
        return [tuple(pairs[a - lo : b - lo]) for a, b in pairwise(bounds)]


def record_key(data: bytes) -> bytes:
    """The 128-bit key of a record's bytes. Compute it once, where the record enters."""
    hash = _HASH.copy()
    hash.update(data)
    return hash.digest()


def intact(data: bytes, place: Place) -> Record | None:
    """The record of that place in bytes which were a record once; None if they are another's."""
    key = (place & (1 << RECORD_KEY_BITS) - 1).to_bytes(RECORD_KEY_BYTES, "big")
    if record_key(data) != key or len(data) < HEAD_BYTES:
        return None
    record = Record(data, key)
    return record if record.place == place else None


def seal(
    stream: Stream,
    first: int,
    drafts: Sequence[Draft],
    *,
    time: int,
    low: int = 0,
    sign: Sealer | None = None,
) -> Record:
    """Make the one record of `drafts`, numbered from `first`; a retry sends the same bytes.

    `sign` adds the evidence of who published it. Raises UsageError if a bound is exceeded.
    """
    try:
        data = _encode(stream, first, drafts, time, low)
        return decode(data if sign is None else sign(data))
    except (MalformedRecord, StructError) as error:
        raise UsageError(f"cannot seal this record: {error}") from None


def encode_head(
    stream: Stream, first: int, time: int, columns: int, count: int, pairs: int, low: int = 0
) -> bytes:
    """The head of a record of `count` publications with so many headers."""
    head = (columns, count, stream[0], first, low, time, stream[1], pairs)
    return _HEAD.pack(_MARK, _PLAIN, *head)


def _encode(stream: Stream, first: int, drafts: Sequence[Draft], time: int, low: int) -> bytes:
    count, columns = len(drafts), 0
    payloads, keys, headers, timestamps = zip(*drafts, strict=True) if drafts else ((),) * 4
    tables, data = [table_of(payloads)], [*payloads]
    if keys.count(None) < count:
        columns |= KEYS
        cells = [key or b"" for key in keys]
        tables.append(table_of(cells))
        data += cells
    pairs = [*chain.from_iterable(headers)]
    validity = times = b""
    if columns & KEYS:
        bits = sum((key is not None) << row for row, key in enumerate(keys))
        validity = bits.to_bytes((count + 7) // 8, "little")
    if pairs:
        columns |= HEADERS
        names, values = [name.encode() for name, _ in pairs], [value for _, value in pairs]
        tables += [table_of(headers), table_of(names), table_of(values)]
        data += [*names, *values]
    if timestamps.count(None) < count:
        columns |= TIMESTAMPS
        stamps = [time * 1_000_000 if at is None else at for at in timestamps]
        times = pack(f"<{count}q", *stamps)
    head = encode_head(stream, first, time, columns, count, len(pairs), low)
    return b"".join([head, times, *tables, validity, *data])


def decode(data: bytes) -> Record:
    """The record in `data`, every field and column checked, with its key computed this once.

    Raises MalformedRecord, in one line, on anything else.
    """
    return decode_unnamed(data, record_key(data))


def decode_unnamed(data: bytes, key: bytes = b"") -> Record:
    """The same without its key, which takes most of the time: for whoever only reads it."""
    begin = data[:3]
    if begin != BEGIN or not HEAD_BYTES <= len(data) <= RECORD_BYTES_MAX:
        most = SIGNED_BYTES_MAX if begin == _BEGIN_SIGNED else RECORD_BYTES_MAX
        if not HEAD_BYTES <= len(data) <= most:
            raise MalformedRecord(f"record of {len(data)} bytes: at most {most}")
        if begin not in (BEGIN, _BEGIN_SIGNED):
            raise MalformedRecord(f"no record of version 1 or 2: begins with {begin.hex()}")
    record = Record(data, key)
    if record.columns or record.pairs or not _is_plain(record):
        _check_head(record)
        _check_columns(record)
    return record


def _is_plain(record: Record) -> bool:
    """Is this clearly a sound record of payloads alone, as nearly all are?"""
    data, count, first, low, time = record.data, record.count, record.first, record.low, record.time
    least = record.publisher | first | low | time  # of 64 bits each: below 0 if one of them is
    if least < 0 or low > first or first > SEQUENCE_MAX - count or time > TIME_MAX:
        return False
    end = len(data) if data[2] == _PLAIN else record.columns_end
    size = end - HEAD_BYTES - 4 * (count + 1)
    if size < 0 or end > PAYLOAD_BYTES_MAX:
        return False
    if count == 1:
        return _ONE.unpack_from(data, HEAD_BYTES) == (0, size)
    return 0 < count <= PUBLICATIONS_MAX and ascends(data, HEAD_BYTES, count, size)


def _check_head(record: Record) -> None:
    if not 1 <= record.count <= PUBLICATIONS_MAX:
        raise MalformedRecord(f"{record.count} publications: 1 to {PUBLICATIONS_MAX} in a record")
    if not is_node_id(record.publisher):
        raise MalformedRecord(f"publisher {record.publisher} cannot name a node")
    if not 0 <= record.low <= record.first <= SEQUENCE_MAX - record.count:
        raise MalformedRecord(f"number {record.first} from low {record.low}: out of range")
    if not 0 <= record.time <= TIME_MAX:
        raise MalformedRecord(f"time {record.time} out of range")
    if record.columns & ~(KEYS | HEADERS | TIMESTAMPS | BATCH):
        raise MalformedRecord(f"unknown columns {record.columns:#x}")
    if bool(record.pairs) != bool(record.columns & HEADERS):
        raise MalformedRecord(f"{record.pairs} headers in columns {record.columns:#x}")
    if record.pairs > record.count * HEADERS_MAX:
        raise MalformedRecord(f"{record.pairs} headers: at most {HEADERS_MAX} a publication")


def _check_columns(record: Record) -> None:
    at, count, pairs, data = record.offsets(), record.count, record.pairs, record.data
    end, columns = record.columns_end, record.columns
    if (found := at.end + BATCH_LAYOUT.size * bool(columns & BATCH)) != end:
        raise MalformedRecord(f"columns end at {found}, the record at {end}")
    try:
        size = at.key_data - at.payload_data
        if size > PAYLOAD_BYTES_MAX or not ascends(data, at.payloads, count, size):
            check_table("payload", data, at.payloads, count, PAYLOAD_BYTES_MAX)
        if columns & KEYS:
            lengths = check_table("key", data, at.keys, count, PUBLICATION_KEY_BYTES_MAX)
            check_validity(data[at.validity : at.payload_data], lengths)
        if columns & HEADERS:
            rows = check_table("headers", data, at.header_rows, count, HEADERS_MAX)
            if sum(rows) != pairs:
                raise MalformedRecord(f"{pairs} headers, but {sum(rows)} belong to publications")
            check_table("header value", data, at.values, pairs, HEADER_VALUE_BYTES_MAX)
            lengths = check_table("header name", data, at.names, pairs, HEADER_NAME_BYTES_MAX)
            check_names(data[at.name_data : at.value_data], lengths)
    except ValueError as error:
        raise MalformedRecord(str(error)) from None
