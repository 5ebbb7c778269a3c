"""Records as an Arrow table, column by column: no row is touched. Needs `planaria[trace]`.

| column | type |
|---|---|
| publisher, sequence | int64 |
| incarnation | fixed_size_binary(12) |
| timestamp | timestamp(us), of the record where the publication has none |
| key | binary, null where the publication has none |
| headers | map(string, binary) |
| payload | binary |
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planaria.core.errors import UsageError
from planaria.records.batches import Slice
from planaria.records.record import HEADERS, INCARNATION_BYTES, KEYS, TIMESTAMPS, Offsets

if TYPE_CHECKING:
    import pyarrow as pa

_Array = np.ndarray[Any, np.dtype[Any]]
_OFFSET, _STAMP = np.dtype("<u4"), np.dtype("<i8")


NAMES = ("publisher", "incarnation", "sequence", "timestamp", "key", "headers", "payload")


def to_arrow(slices: Sequence[Slice], names: Sequence[str] = NAMES) -> "pa.Table":
    """The publications of these slices as one table, in their order, with these columns."""
    try:
        import pyarrow as pa
    except ImportError:
        raise UsageError(
            "reading into Arrow needs pyarrow: pip install 'planaria[trace]'"
        ) from None
    counts = np.fromiter((part.hi - part.lo for part in slices), np.int64, len(slices))
    rows = int(counts.sum())
    places = [part.record.offsets() for part in slices]
    columns: dict[str, Callable[[], Any]] = {
        "publisher": lambda: _numbers(pa, pa.int64(), publishers(slices, counts)),
        "incarnation": lambda: pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(INCARNATION_BYTES), rows, [None, pa.py_buffer(incarnations(slices))]
        ),
        "sequence": lambda: _numbers(pa, pa.int64(), sequences(slices, counts)),
        "timestamp": lambda: _numbers(pa, pa.timestamp("us"), _timestamps(slices, places, counts)),
        "key": lambda: _keys(pa, slices, places, rows),
        "headers": lambda: _headers(pa, slices, places),
        "payload": lambda: _payloads(pa, slices, places, rows),
    }
    return pa.table({name: columns[name]() for name in names})


def publishers(slices: Sequence[Slice], counts: _Array) -> _Array:
    """The publisher of every row."""
    each = np.fromiter((part.record.publisher for part in slices), np.int64, len(slices))
    return np.repeat(each, counts)


def incarnations(slices: Sequence[Slice]) -> bytes:
    """The incarnation of every row, one after the other."""
    return b"".join(part.record.incarnation * (part.hi - part.lo) for part in slices)


def sequences(slices: Sequence[Slice], counts: _Array) -> _Array:
    """Each slice's numbers ascend by one: a running sum with a jump where a slice begins."""
    firsts = np.fromiter((part.lo for part in slices), np.int64, len(slices))
    starts = np.cumsum(counts) - counts
    return np.repeat(firsts - starts, counts) + np.arange(int(counts.sum()), dtype=np.int64)


def _timestamps(slices: Sequence[Slice], places: Sequence[Offsets], counts: _Array) -> _Array:
    times = np.fromiter((part.record.time for part in slices), np.int64, len(slices)) * 1_000_000
    stamps = np.repeat(times, counts)
    if any(part.record.columns & TIMESTAMPS for part in slices):
        at = 0
        for part, place in zip(slices, places, strict=True):
            count = part.hi - part.lo
            if part.record.columns & TIMESTAMPS:
                start = place.timestamps + 8 * (part.lo - part.record.first)
                stamps[at : at + count] = np.frombuffer(part.record.data, _STAMP, count, start)
            at += count
    return stamps


def _payloads(pa: Any, slices: Sequence[Slice], places: Sequence[Offsets], rows: int) -> Any:
    tables, data = [], []
    for part, place in zip(slices, places, strict=True):
        table, cells = _cut(part, place.payloads, place.payload_data)
        tables.append(table)
        data.append(cells)
    return _binary(pa, rows, tables, data)


def _keys(pa: Any, slices: Sequence[Slice], places: Sequence[Offsets], rows: int) -> Any:
    if not any(part.record.columns & KEYS for part in slices):
        return pa.nulls(rows, pa.binary())
    tables, data, valid = [], [], []
    for part, place in zip(slices, places, strict=True):
        lo, hi = part.lo - part.record.first, part.hi - part.record.first
        if part.record.columns & KEYS:
            table, cells = _cut(part, place.keys, place.key_data)
            count = place.payload_data - place.validity
            bits = np.frombuffer(part.record.data, np.uint8, count, place.validity)
            valid.append(np.unpackbits(bits, bitorder="little")[lo:hi])
        else:
            table, cells = np.zeros(hi - lo + 1, _OFFSET), b""
            valid.append(np.zeros(hi - lo, np.uint8))
        tables.append(table)
        data.append(cells)
    return _binary(pa, rows, tables, data, np.packbits(np.concatenate(valid), bitorder="little"))


def _headers(pa: Any, slices: Sequence[Slice], places: Sequence[Offsets]) -> Any:
    tables, names, values = [], [], []
    used = any(part.record.columns & HEADERS for part in slices)
    if not used:
        tables.append(np.zeros(sum(part.hi - part.lo for part in slices) + 1, _OFFSET))
    for part, place in zip(slices, places, strict=True) if used else ():
        lo, hi = part.lo - part.record.first, part.hi - part.record.first
        if not part.record.columns & HEADERS:
            tables.append(np.zeros(hi - lo + 1, _OFFSET))
            continue
        data = part.record.data
        table = np.frombuffer(data, _OFFSET, hi - lo + 1, place.header_rows + 4 * lo)
        tables.append(table)
        first, last = int(table[0]), int(table[-1])
        names.append(_range(data, place.names, place.name_data, first, last))
        values.append(_range(data, place.values, place.value_data, first, last))
    offsets = _joined(tables)
    pairs = int(offsets[-1])
    name = _binary(pa, pairs, [t for t, _ in names], [d for _, d in names])
    value = _binary(pa, pairs, [t for t, _ in values], [d for _, d in values])
    return pa.MapArray.from_arrays(_numbers(pa, pa.int32(), offsets), name.cast(pa.string()), value)


def _cut(part: Slice, table: int, start: int) -> tuple[_Array, bytes | memoryview]:
    """The offsets and the data of a slice's part of a column of bytes."""
    lo, hi = part.lo - part.record.first, part.hi - part.record.first
    return _range(part.record.data, table, start, lo, hi)


def _range(
    data: bytes, table: int, start: int, lo: int, hi: int
) -> tuple[_Array, bytes | memoryview]:
    offsets = np.frombuffer(data, _OFFSET, hi - lo + 1, table + 4 * lo)
    return offsets, memoryview(data)[start + int(offsets[0]) : start + int(offsets[-1])]


def _joined(tables: Sequence[_Array]) -> _Array:
    """One table of offsets for columns that follow each other."""
    if not tables:
        return np.zeros(1, np.int32)
    ends = np.cumsum(np.fromiter(map(len, tables), np.int64, len(tables)))[:-1]
    lengths = np.delete(np.diff(np.concatenate(tables).astype(np.int64)), ends - 1)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if int(offsets[-1]) >= 1 << 31:
        raise UsageError(f"{int(offsets[-1])} bytes in one column: read smaller batches")
    return offsets.astype(np.int32)


def _numbers(pa: Any, type: Any, values: _Array) -> Any:
    """A column of numbers, of these very bytes."""
    return pa.Array.from_buffers(type, len(values), [None, pa.py_buffer(values)])


def _binary(
    pa: Any,
    rows: int,
    tables: Sequence[_Array],
    data: Sequence[bytes | memoryview],
    validity: _Array | None = None,
) -> Any:
    """A column of bytes from the offsets and data of its parts."""
    known = None if validity is None else pa.py_buffer(validity)
    buffers = [known, pa.py_buffer(_joined(tables)), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)
