"""Values that are JSON objects, as typed columns: each member by its name.

A member that is missing, null or of another type is null in its column, and so is all of a value
that is no JSON object. Whole numbers are also numbers of a DOUBLE or FLOAT column, and dates and
times are text as ISO 8601 writes it.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    TimestampType,
)

from planaria.core.errors import UsageError
from planaria.filters.attributes import object_of
from planaria.records.batches import Slice

Reader = Callable[[Any], Any]  # the value of a member, or None

_NAMES: dict[str, DataType] = {
    "string": StringType(),
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "byte": ByteType(),
    "smallint": ShortType(),
    "short": ShortType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "timestamp": TimestampType(),
    "date": DateType(),
}
_BITS: dict[type[DataType], int] = {ByteType: 7, ShortType: 15, IntegerType: 31, LongType: 63}
_MEMBER = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<plain>\w+))\s*[:\s]\s*(?P<type>\w+)\s*")


def types_of(text: str) -> dict[str, DataType]:
    """The columns in `name TYPE, name TYPE`; raises UsageError for what is none."""
    found: dict[str, DataType] = {}
    taken: set[str] = set()
    for part in text.split(","):
        match = _MEMBER.fullmatch(part)
        type = _NAMES.get(match["type"].lower()) if match else None
        if match is None or type is None:
            raise UsageError(
                f"option schema: {part.strip()!r} is not NAME TYPE with a type of "
                f"{', '.join(sorted(_NAMES))}; for others read `value` and use from_json"
            )
        name = match["quoted"] or match["plain"]
        if name.casefold() in taken:
            raise UsageError(
                f"option schema: {name!r} is named twice; names that differ in case alone are one"
            )
        taken.add(name.casefold())
        found[name] = type
    return found


def members(slices: Sequence[Slice], fields: Sequence[StructField]) -> dict[str, Any]:
    """A column of Arrow for each of these members."""
    found: list[list[Any]] = [[] for _ in fields]
    readers = [(field.name, typed(field.dataType)) for field in fields]
    for part in slices:
        for payload in part.record.payloads(part.lo, part.hi):
            value = object_of(payload)
            for (name, read), column in zip(readers, found, strict=True):
                member = value.get(name)
                column.append(None if member is None else read(member))
    from pyspark.sql.pandas.types import to_arrow_type

    columns = zip(fields, found, strict=True)
    return {
        field.name: pa.array(column, to_arrow_type(field.dataType, timezone="UTC"))
        for field, column in columns
    }


def typed(type: DataType) -> Reader:
    """What makes a value of this type of a member; raises UsageError if there is no such type."""
    bits = _BITS.get(type.__class__)
    if bits is not None:
        return lambda value: _whole(value, 1 << bits)
    readers: dict[str, Reader] = {
        "string": lambda value: value if isinstance(value, str) else None,
        "boolean": lambda value: value if isinstance(value, bool) else None,
        "float": _number,
        "double": _number,
        "timestamp": _time,
        "date": _date,
    }
    name = type.simpleString()
    if name not in readers:
        raise UsageError(f"no column of type {name}: read `value` and use from_json")
    return readers[name]


def _whole(value: Any, end: int) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool)
    return value if good and -end <= value < end else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _time(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def _date(value: Any) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
