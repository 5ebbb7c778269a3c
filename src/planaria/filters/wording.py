"""Filters in words: as SQL that `sql.parse` reads again, for people and for error messages."""

import re
from functools import cache
from math import inf
from typing import Any

from planaria.filters.filters import Filter
from planaria.filters.numbers import write_number
from planaria.filters.ranges import ALL_BOOLEANS, NUL, Range, prefix_end
from planaria.filters.timestamps import written
from planaria.filters.values import ANYTHING, Values

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # would end a line, or worse


@cache
def keywords() -> frozenset[str]:
    """Of any kind: most would do unquoted, but which depends on what stands beside them."""
    from sqlglot.dialects.spark import Spark  # slow to load, and seldom needed

    return frozenset(Spark.Tokenizer.KEYWORDS) | {*Spark.Parser.NO_PAREN_FUNCTION_PARSERS}


def to_sql(filter: Filter) -> str:
    """A condition that selects what `filter` matches."""
    constraints = [_constraint(_quoted(name), values) for name, values in filter.constraints]
    return " AND ".join(constraints) or "TRUE"


def _constraint(name: str, values: Values) -> str:
    if values == ANYTHING:
        return f"{name} IS NOT NULL"
    if values.topics:
        return _listed(name, [_text(pattern) for pattern in values.topics])
    found = _ranges(name, [_number(it) for it in values.numbers])
    found += _ranges(name, [_string(it) for it in values.strings])
    found += _ranges(name, [_timestamp(it) for it in values.timestamps])
    if values.booleans == ALL_BOOLEANS:
        found.append(f"{name} IN (FALSE, TRUE)")
    else:
        found += [name if low else f"NOT {name}" for low, _ in values.booleans]
    return found[0] if len(found) == 1 else f"({' OR '.join(found)})"


Parts = tuple[str | None, str | None, str | None]  # equal to, lower end, upper end


def _ranges(name: str, ranges: list[Parts]) -> list[str]:
    equal = [point for point, _, _ in ranges if point is not None]
    found = [_listed(name, equal)] if equal else []
    for point, low, high in ranges:
        if point is None:
            ends = [f"{name} {end}" for end in (low, high) if end is not None]
            found.append(" AND ".join(ends) or f"({name} < 0 OR {name} >= 0)")
    return found


def _listed(name: str, literals: list[str]) -> str:
    return f"{name} = {literals[0]}" if len(literals) == 1 else f"{name} IN ({', '.join(literals)})"


def _number(one: Range) -> Parts:
    (low, after), (high, end) = one
    if low == high:
        return write_number(low), None, None
    return (
        None,
        None if low == -inf else f"{'>' if after else '>='} {write_number(low)}",
        None if high == inf else f"{'<=' if end else '<'} {write_number(high)}",
    )


def _string(one: Range) -> Parts:
    low, high = one[0][1], one[1]
    if high == (0, low + NUL):
        return _text(low), None, None
    if high == prefix_end(low) and not any(sign in low for sign in "%_\\"):
        return None, f"LIKE {_text(low + '%')}", None
    start = f"> {_text(low[:-1])}" if low.endswith(NUL) else f">= {_text(low)}"
    if high[0]:
        return None, start, None
    end = high[1]
    stop = f"<= {_text(end[:-1])}" if end.endswith(NUL) else f"< {_text(end)}"
    return None, start if low else None, stop


def _timestamp(one: Range) -> Parts:
    low, high = one
    if high == low + 1:
        return _time(low), None, None
    return None, f">= {_time(low)}", f"<= {_time(high - 1)}"


def _time(microseconds: int) -> str:
    return f"TIMESTAMP '{written(microseconds)}'"


def _text(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{_CONTROL.sub(_coded, escaped)}'"


def _coded(control: re.Match[str]) -> str:
    return f"\\u{ord(control[0]):04x}"


def _quoted(name: str) -> str:
    plain = name.isidentifier() and name.isascii() and name.upper() not in keywords()
    return name if plain else f"`{name.replace('`', '``')}`"
