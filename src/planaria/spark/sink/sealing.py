"""Arrow columns as records, without touching a row: both are offsets and concatenated bytes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planaria.core.errors import UsageError
from planaria.network.client.batches import Sealing
from planaria.records.record import (
    HEADERS,
    KEYS,
    MalformedRecord,
    Record,
    Stream,
    decode,
    encode_head,
)

RECORD_ROWS = 1024  # in a record
RECORD_BYTES = 128 << 10  # of one, but that of a single row: larger ones delay control frames
HEADER_BYTES = 8  # that a header takes beside its name and value

_Array = np.ndarray[Any, np.dtype[Any]]
Cells = tuple[_Array, memoryview | bytes]  # offsets from 0 on, and the data


def by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each topic, in their order; raises UsageError if a row has none."""
    if topic is not None:
        yield topic, batch
        return
    column = batch.column("topic")
    if column.null_count:
        raise UsageError(f"row {_first_null(column)} has no topic: leave it out, or fill it")
    codes = column.dictionary_encode()
    if len(codes.dictionary) == 1:
        yield codes.dictionary[0].as_py(), batch
        return
    numbers = codes.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    rows = batch.take(pa.array(order))
    bounds = [0, *np.cumsum(np.bincount(numbers, minlength=len(codes.dictionary))).tolist()]
    for at, name in enumerate(codes.dictionary.to_pylist()):
        yield name, rows.slice(bounds[at], bounds[at + 1] - bounds[at])


def records(batch: pa.RecordBatch) -> Iterator[Sealing]:
    """How to seal the rows of one topic, some at a time.

    Raises UsageError if a row has no value, or if something of it is too large for a record.
    """
    values = _binary(batch.column("value"))
    if values.null_count:
        raise UsageError(f"row {_first_null(values)} has no value: leave it out, or fill it")
    keys = _binary(batch.column("key")) if "key" in batch.schema.names else None
    headers = _pairs(batch.column("headers")) if "headers" in batch.schema.names else None
    ends = _ends(values, keys, headers)
    lo = 0
    while lo < len(values):
        before = int(ends[lo - 1]) if lo else 0
        hi = int(np.searchsorted(ends, before + RECORD_BYTES, side="right"))
        hi = max(lo + 1, min(hi, lo + RECORD_ROWS))
        part = None if keys is None else keys.slice(lo, hi - lo)
        extra = None if headers is None else _cut(headers, lo, hi)
        yield _sealing(values.slice(lo, hi - lo), part, extra)
        lo = hi


def _ends(values: pa.Array, keys: pa.Array | None, headers: "Headers | None") -> _Array:
    """How many bytes the rows up to each one have, of all columns."""
    ends: _Array = _cells(values)[0].astype(np.int64)
    if keys is not None:
        ends = ends + _cells(keys)[0]
    if headers is not None:
        offsets, names, texts = headers
        pairs = _cells(names)[0].astype(np.int64) + _cells(texts)[0]
        ends = ends + (pairs[offsets] - pairs[offsets[0]]) + HEADER_BYTES * (offsets - offsets[0])
    return ends[1:]


def _sealing(values: pa.Array, keys: pa.Array | None, headers: "Pairs | None") -> Sealing:
    count, columns, pairs = len(values), 0, 0
    payloads = _cells(values)
    tables, data, validity = [payloads[0]], [payloads[1]], b""
    if keys is not None and keys.null_count < count:
        columns |= KEYS
        there = np.asarray(keys.is_valid().to_numpy(zero_copy_only=False))
        validity = np.packbits(there, bitorder="little").tobytes()
        cells = _cells(pc.fill_null(keys, b"") if keys.null_count else keys)
        tables.append(cells[0])
        data.append(cells[1])
    if headers is not None and headers[0][-1]:
        columns |= HEADERS
        rows, names, texts = headers
        pairs = int(rows[-1])
        tables += [rows, names[0], texts[0]]
        data += [names[1], texts[1]]
    body = b"".join([*(it.astype("<u4").tobytes() for it in tables), validity, *data])

    def seal(stream: Stream, first: int, time: int) -> Record:
        head = encode_head(stream, first, time, columns, count, pairs)
        try:
            return decode(head + body)
        except MalformedRecord as error:
            raise UsageError(f"among {count} rows: {error}") from None

    return seal


Pairs = tuple[_Array, Cells, Cells]  # offsets of rows, names, values
Headers = tuple[_Array, pa.Array, pa.Array]  # the same of a whole column


def _pairs(column: pa.Array) -> Headers:
    """The offsets of a column of headers, and all names and values.

    Raises UsageError if one lacks either: a record has no null for them.
    """
    offsets = column.offsets.to_numpy()
    if isinstance(column, pa.MapArray):
        names, values, absent = column.keys, column.items, 0
    else:
        pairs = column.values
        names, values, absent = pairs.field("key"), pairs.field("value"), pairs.null_count
    if names.null_count or absent:
        raise UsageError("a header has no name: leave it out, or fill it")
    if values.null_count:
        name = names[_first_null(values)].as_py()
        raise UsageError(f"header {name!r} has no value: leave it out, or fill it")
    return offsets, _binary(names), _binary(values)


def _cut(headers: Headers, lo: int, hi: int) -> Pairs:
    offsets, names, values = headers
    first, last = int(offsets[lo]), int(offsets[hi])
    rows = offsets[lo : hi + 1].astype(np.int64) - first
    return rows, _cells(names.slice(first, last - first)), _cells(values.slice(first, last - first))


def _binary(column: pa.Array) -> pa.Array:
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _cells(column: pa.Array) -> Cells:
    """The offsets of a column of bytes, from 0 on, and its data."""
    _, table, data = column.buffers()
    if not len(column) or table is None:
        return np.zeros(len(column) + 1, np.int32), b""
    offsets = np.frombuffer(table, np.int32, len(column) + 1, 4 * column.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    cells = b"" if data is None else memoryview(data)[first:last]
    return offsets - first, cells


def _first_null(column: pa.Array) -> int:
    return int(np.argmin(column.is_valid().to_numpy(zero_copy_only=False)))
