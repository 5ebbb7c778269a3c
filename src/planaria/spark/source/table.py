"""Slices of records as Arrow batches with the columns that Spark expects: no row is touched.

| column | type | |
|---|---|---|
| key | binary | null where there is none |
| value | binary | the payload |
| topic | string | |
| publisher, sequence | long | numbers ascend by one within (publisher, incarnation) |
| timestamp | timestamp | of the record where the publication has none |
| headers | array<struct<key: string, value: binary>> | as Kafka's, null without any |
| id | binary | the position: publisher, incarnation and number, 28 bytes |

Any other column is a member of the JSON object that the value is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from planaria.core.errors import UsageError, unknown
from planaria.records.arrow import incarnations, publishers, sequences, to_arrow
from planaria.records.batches import Slice
from planaria.records.record import INCARNATION_BYTES
from planaria.spark.source.options import COLUMNS, ReadOptions
from planaria.spark.source.values import members, typed, types_of

HEADERS_TYPE = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
TYPES = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "publisher": LongType(),
    "sequence": LongType(),
    "timestamp": TimestampType(),
    "headers": HEADERS_TYPE,
    "id": BinaryType(),
}
_HELD = {  # what records hold as columns, by their names there
    "key": "key", "value": "payload", "publisher": "publisher", "sequence": "sequence",
    "timestamp": "timestamp", "headers": "headers",
}  # fmt: skip
_ID = np.dtype([("publisher", ">i8"), ("incarnation", f"V{INCARNATION_BYTES}"), ("number", ">i8")])


class Rows(NamedTuple):
    """Slices of one topic."""

    topic: str
    slices: Sequence[Slice]

    @property
    def size(self) -> int:
        """How many rows they are."""
        return sum(part.hi - part.lo for part in self.slices)


def schema_of(options: ReadOptions) -> StructType:
    """The columns that were asked for; with `schema` the members of the value instead of it."""
    fields = dict(TYPES)
    names: list[str] = list(COLUMNS)
    if options.schema is not None:
        found = types_of(options.schema)
        taken = [name for name in found if name.casefold() in TYPES]
        if taken:
            raise UsageError(
                f"option schema: {taken[0]!r} is a column of every topic; read `value` and "
                "use from_json"
            )
        fields |= found
        names = [name for name in COLUMNS if name != "value"] + list(found)
    if options.columns is not None:
        names = list(dict.fromkeys(options.columns))
    for name in names:
        if name not in fields:
            raise unknown("column", name, list(fields))
    return StructType([StructField(name, fields[name]) for name in names])


def check_given(schema: StructType, options: ReadOptions) -> None:
    """Raise UsageError for a schema that is not what options ask for, or that no topic has.

    It is that of the options, unless the user gave one: then Spark does not ask for theirs.
    """
    check_schema(schema)
    if options.columns is None and options.schema is None:
        return
    if _columns(schema) != _columns(schema_of(options)):
        raise UsageError(
            "a schema beside the options columns or schema, with other columns than theirs: give "
            "the one or the others"
        )


def _columns(schema: StructType) -> list[tuple[str, DataType]]:
    return [(field.name, field.dataType) for field in schema.fields]


def check_schema(schema: StructType) -> None:
    """Raise UsageError for columns that no topic has."""
    seen: dict[str, str] = {}
    for field in schema.fields:
        name, type = field.name, field.dataType
        before = seen.setdefault(name.casefold(), name)
        if before != name:
            raise UsageError(f"columns {before!r} and {name!r} differ in case alone: rename one")
        ours = TYPES.get(name)
        if ours is None and name.casefold() in TYPES:
            raise UsageError(f"a column {name!r}: write {name.casefold()}, as every topic has it")
        if ours is None:
            typed(type)
        elif type != ours:
            wanted = ours.simpleString()
            raise UsageError(f"column {name} is {wanted}, not {type.simpleString()}")
        if not field.nullable and (ours is None or name in ("key", "headers")):
            # Spark would believe it, and leave out conditions such as IS NULL.
            raise UsageError(f"column {name} may be null: leave out NOT NULL")


class Table:
    """Makes record batches of one schema."""

    def __init__(self, schema: StructType) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        check_schema(schema)
        self.fields = schema.fields
        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._members = [field for field in self.fields if field.name not in TYPES]

    def batch(self, parts: Sequence[Rows]) -> pa.RecordBatch:
        """The rows of these parts, in their order."""
        slices = [one for part in parts for one in part.slices]
        values = members(slices, self._members) if self._members else {}
        columns = _Columns(parts, slices, [it.name for it in self.fields])
        arrays = [
            values[it.name] if it.name in values else columns.make(it.name, it.type)
            for it in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class _Columns:
    """Makes the columns that every topic has."""

    def __init__(
        self, parts: Sequence[Rows], slices: Sequence[Slice], names: Sequence[str]
    ) -> None:
        self.parts, self.slices = parts, slices
        held = [_HELD[name] for name in names if name in _HELD]
        self._held = to_arrow(slices, held) if held else None

    def make(self, name: str, type: pa.DataType) -> Any:
        """One column."""
        if name == "topic":
            return self._topics(type)
        if name == "headers":
            return self._headers(type)
        if name == "id":
            return self._ids(type)
        return self._record_column(_HELD[name]).cast(type)

    def _record_column(self, name: str) -> Any:
        assert self._held is not None
        return self._held.column(name).combine_chunks()

    def _topics(self, type: pa.DataType) -> Any:
        names = [part.topic.encode() for part in self.parts]
        counts = np.fromiter((part.size for part in self.parts), np.int64, len(self.parts))
        lengths = np.repeat(np.fromiter(map(len, names), np.int64, len(names)), counts)
        text = b"".join(name * int(count) for name, count in zip(names, counts, strict=True))
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(type, len(lengths), buffers)

    def _headers(self, type: pa.DataType) -> Any:
        """Null where there are none, as Kafka's."""
        pairs = self._record_column("headers")
        if not len(pairs.keys):
            return pa.nulls(len(pairs), type)
        inner = pa.StructArray.from_arrays([pairs.keys, pairs.items], fields=[*type.value_type])
        none = pa.array(np.diff(pairs.offsets.to_numpy()) == 0)
        return pa.ListArray.from_arrays(pairs.offsets, inner, type=type, mask=none)

    def _ids(self, type: pa.DataType) -> Any:
        slices = self.slices
        counts = np.fromiter((part.hi - part.lo for part in slices), np.int64, len(slices))
        ids = np.empty(int(counts.sum()), _ID)
        ids["publisher"] = publishers(slices, counts)
        ids["incarnation"] = np.frombuffer(incarnations(slices), f"V{INCARNATION_BYTES}")
        ids["number"] = sequences(slices, counts)
        offsets = np.arange(len(ids) + 1, dtype=np.int32) * _ID.itemsize
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(ids.view(np.uint8))]
        return pa.Array.from_buffers(type, len(ids), buffers)
