"""Spark's simple filters, pushed down to planning and to nodes.

What is pushed lets through all that the filters do, perhaps more: Spark judges every row again. So
results are those without it, and only what travels is less.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from planaria.core.errors import UsageError
from planaria.spark.source.fetch import Condition
from planaria.spark.source.offsets import Range
from planaria.spark.source.table import TYPES

EXACT = 1 << 53  # below it a double has every whole number
IN_MAX = 64  # values of an IN that a node is asked to compare
TIME_MIN, TIME_END = -(1 << 63), (1 << 63) - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN_TEXT = re.compile(r"[^'\\\x00-\x1f]*")
_SIGNS = {
    EqualTo: "=", EqualNullSafe: "=", GreaterThan: ">", GreaterThanOrEqual: ">=",
    LessThan: "<", LessThanOrEqual: "<=",
}  # fmt: skip
_WORDS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: lambda it, value: it == value,
    EqualNullSafe: lambda it, value: it == value,
    GreaterThan: lambda it, value: it > value,
    GreaterThanOrEqual: lambda it, value: it >= value,
    LessThan: lambda it, value: it < value,
    LessThanOrEqual: lambda it, value: it <= value,
    In: lambda it, values: it in values,
    StringStartsWith: lambda it, value: it.startswith(value),
    StringEndsWith: lambda it, value: it.endswith(value),
    StringContains: lambda it, value: value in it,
}

Test = Callable[[Any], bool]


class Pushed:
    """What the filters of one query leave to be read."""

    def __init__(self, schema: StructType) -> None:
        members = [field for field in schema.fields if field.name not in TYPES]
        self._types = {field.name: field.dataType.simpleString() for field in members}
        self._tests: dict[str, list[tuple[type[Filter], Any]]] = {"topic": [], "publisher": []}
        self._numbers = (0, 1 << 63)
        self._times = (TIME_MIN, TIME_END)
        self._where: list[str] = []

    def take(self, filters: Iterable[Filter]) -> None:
        """Push what can be pushed of these, all of which must hold."""
        for filter in filters:
            names: tuple[str, ...] = getattr(filter, "attribute", ())
            if len(names) == 1 and type(filter) in _WORDS:
                self._take(names[0], filter, getattr(filter, "value", None))

    def _take(self, name: str, filter: Filter, value: Any) -> None:
        values = list(value) if isinstance(filter, In) else [value]
        whole = all(_whole(it) for it in values)
        if name in self._tests and (whole or name == "topic"):
            self._tests[name].append((type(filter), value))
        elif name == "sequence" and whole:
            self._numbers = _narrowed(self._numbers, filter, values)
        elif name == "timestamp" and all(isinstance(it, datetime) for it in values):
            stamps = [_microseconds(it) for it in values]
            self._times = _narrowed(self._times, filter, stamps)
        elif name in self._types and _PLAIN_NAME.fullmatch(name):
            self._take_member(name, filter, values)

    def _take_member(self, name: str, filter: Filter, values: Sequence[Any]) -> None:
        written = [literal(self._types[name], it, type(filter)) for it in values]
        if None in written or not 0 < len(written) <= IN_MAX:
            return
        if isinstance(filter, In):
            text = f"`{name}` IN ({', '.join(filter_out_none(written))})"
        elif type(filter) in _SIGNS:
            text = f"`{name}` {_SIGNS[type(filter)]} {written[0]}"
        else:
            return
        if _understood(" AND ".join([*self._where, text])):
            self._where.append(text)

    def ranges(self, ranges: Sequence[Range]) -> list[Range]:
        """What is left of these ranges."""
        found = []
        for it in ranges:
            lo, hi = max(it.lo, self._numbers[0]), min(it.hi, self._numbers[1])
            passes = self._passes("topic", it.topic) and self._passes("publisher", it.stream[0])
            if lo < hi and passes:
                found.append(it._replace(lo=lo, hi=hi))
        return found

    def _passes(self, name: str, value: Any) -> bool:
        return all(_WORDS[kind](value, wanted) for kind, wanted in self._tests[name])

    def condition(self, filter: str | None) -> Condition:
        """What nodes are asked for, together with the query's own `filter`."""
        parts = [*([f"({filter})"] if filter is not None else []), *self._where]
        where = " AND ".join(parts) or None
        if where is not None and len(parts) > 1 and not _understood(where):
            where = filter  # together they say too much for one condition, or nothing can be true
        times = None if self._times == (TIME_MIN, TIME_END) else self._times
        return Condition(where, times)


def literal(type: str, value: Any, kind: type[Filter]) -> str | None:
    """A value as nodes understand it, if they compare it as Spark does; else None."""
    if type == "boolean":
        good = isinstance(value, bool) and kind in (EqualTo, EqualNullSafe)
        return str(value).upper() if good else None
    if type in ("tinyint", "smallint", "int", "bigint"):
        return str(value) if _whole(value) else None
    if type == "double":
        good = isinstance(value, float) and math.isfinite(value) and abs(value) < EXACT
        return f"{value:.17f}".rstrip("0").rstrip(".") if good and _short(value) else None
    if type == "string" and kind in (EqualTo, EqualNullSafe, In):
        good = isinstance(value, str) and _PLAIN_TEXT.fullmatch(value) is not None
        return f"'{value}'" if good else None
    return None


def filter_out_none(written: Sequence[str | None]) -> list[str]:
    """Those that are there."""
    return [it for it in written if it is not None]


def _short(value: float) -> bool:
    """Is it the same after it was written with 17 digits behind the point?"""
    return float(f"{value:.17f}") == value


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _microseconds(value: datetime) -> int:
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    delta = aware - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _narrowed(bounds: tuple[int, int], filter: Filter, values: Sequence[int]) -> tuple[int, int]:
    """The numbers from the first to before the second that may satisfy a filter, too."""
    lo, end = bounds
    if isinstance(filter, EqualTo | EqualNullSafe | In) and values:
        return max(lo, min(values)), min(end, max(values) + 1)
    if isinstance(filter, GreaterThan):
        return max(lo, values[0] + 1), end
    if isinstance(filter, GreaterThanOrEqual):
        return max(lo, values[0]), end
    if isinstance(filter, LessThan):
        return lo, min(end, values[0])
    if isinstance(filter, LessThanOrEqual):
        return lo, min(end, values[0] + 1)
    return bounds


def _understood(text: str) -> bool:
    from planaria.filters.sql import parse

    try:
        return bool(parse(text))
    except UsageError:
        return False
