"""What one attribute may be: a set of values of several kinds, closed under 'and' and 'or'.

A constraint speaks about values of the kind of its literal only: `delay > 60` is false for the
text '61', as it is for an attribute that is not there.
"""

from math import inf, isfinite
from typing import Any

from msgspec import Struct

from planaria.filters.patterns import (
    Patterns,
    covers_patterns,
    intersect_patterns,
    is_normal_patterns,
    normal_patterns,
    selects,
    topic_in,
)
from planaria.filters.ranges import (
    ALL_BOOLEANS,
    ALL_NUMBERS,
    ALL_STRINGS,
    ALL_TIMESTAMPS,
    BEFORE_NAN,
    NUL,
    contains,
    covers,
    intersect,
    is_normal,
    union,
)
from planaria.filters.timestamps import Timestamp

Number = int | float
Value = bool | int | float | str | Timestamp

RANGES_MAX = 64  # parts of one set: merging stops here, or one filter could fill a frame
INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 64) - 1  # whole numbers that can be sent
EXACT_MAX = 1 << 53  # whole numbers up to here are the same as int and as float

NumberRange = tuple[tuple[Number, int], tuple[Number, int]]
StringRange = tuple[tuple[int, str], tuple[int, str]]
WholeRange = tuple[int, int]


class Values(Struct, frozen=True, array_like=True, gc=False, cache_hash=True):
    """A set of values; equal sets are equal structs. `topics` is used by the topic alone."""

    numbers: tuple[NumberRange, ...] = ()
    strings: tuple[StringRange, ...] = ()
    timestamps: tuple[WholeRange, ...] = ()
    booleans: tuple[WholeRange, ...] = ()
    topics: Patterns = ()

    @property
    def empty(self) -> bool:
        """Is nothing in it?"""
        return self == NOTHING_AT_ALL


NOTHING_AT_ALL = Values()
ANYTHING = Values(ALL_NUMBERS, ALL_STRINGS, ALL_TIMESTAMPS, ALL_BOOLEANS)


def number(value: Number) -> Number:
    """One way to write a number: 1.0 is 1."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_MAX:
        return int(value)
    return value


def point(value: Value) -> Values:
    """The set of one value."""
    if isinstance(value, bool):
        return Values(booleans=((int(value), value + 1),))
    if isinstance(value, str):
        return Values(strings=(((0, value), (0, value + NUL)),))
    if isinstance(value, Timestamp):
        return Values(timestamps=((value.microseconds, value.microseconds + 1),))
    return Values(numbers=(((number(value), 0), (number(value), 1)),))


def has(values: Values, value: Value) -> bool:
    """Is `value` in the set?"""
    kind = type(value)
    if kind is str:
        if values.topics:
            return selects(values.topics, value)  # type: ignore[arg-type]
        return contains(values.strings, (0, value))
    if kind is bool:
        return contains(values.booleans, value)
    if kind is Timestamp:
        return contains(values.timestamps, value.microseconds)  # type: ignore[union-attr]
    if value != value:
        return contains(values.numbers, BEFORE_NAN)
    return contains(values.numbers, (value, 0))


def both(a: Values, b: Values) -> Values:
    """What is in `a` and in `b`."""
    return Values(
        intersect(a.numbers, b.numbers),
        intersect(a.strings, b.strings),
        intersect(a.timestamps, b.timestamps),
        intersect(a.booleans, b.booleans),
        intersect_patterns(a.topics, b.topics),
    )


def either(a: Values, b: Values) -> Values:
    """What is in `a` or in `b`."""
    return Values(
        union(a.numbers, b.numbers),
        union(a.strings, b.strings),
        union(a.timestamps, b.timestamps),
        union(a.booleans, b.booleans),
        normal_patterns([*a.topics, *b.topics]),
    )


def includes(a: Values, b: Values) -> bool:
    """Is all of `b` in `a`?"""
    return (
        covers(a.numbers, b.numbers)
        and covers(a.strings, b.strings)
        and covers(a.timestamps, b.timestamps)
        and covers(a.booleans, b.booleans)
        and covers_patterns(a.topics, b.topics)
    )


def parts(values: Values) -> int:
    """How many ranges and patterns the set is written with."""
    ordered = len(values.numbers) + len(values.timestamps)
    return ordered + len(values.strings) + len(values.booleans) + len(values.topics)


def points(values: Values, most: int) -> list[Value] | None:
    """The values of a finite set of at most `most`; None if there may be more."""
    found: list[Value] = []
    if parts(values) > most:
        return None
    for low, high in values.numbers:
        if low[0] != high[0]:
            return None
        found.append(low[0])
    for below, above in values.strings:
        if above != (0, below[1] + NUL):
            return None
        found.append(below[1])
    for start, end in values.timestamps:
        if end != start + 1:
            return None
        found.append(Timestamp(start))
    for start, end in values.booleans:
        found += [bool(it) for it in range(start, end)]
    if any("+" in pattern or "#" in pattern for pattern in values.topics):
        return None
    return [*found, *values.topics]


def example(values: Values) -> Value | None:
    """Some value of the set; None if it is empty, and in the gap between neighbouring floats."""
    if values.strings:
        return values.strings[0][0][1]
    if values.timestamps:
        return Timestamp(values.timestamps[0][0])
    if values.booleans:
        return bool(values.booleans[0][0])
    if values.topics:
        return topic_in(values.topics[0])
    if not values.numbers:
        return None
    (low, _), (high, _) = values.numbers[0]
    middle = low / 2 + high / 2 if abs(low) < inf and abs(high) < inf else 0
    for value in (low, high, middle, low + 1, high - 1):
        if abs(value) < inf and contains(values.numbers, (value, 0)):
            return value
    return None


def sendable(values: Values) -> bool:
    """Can all whole numbers in it be sent?"""
    for low, high in values.numbers:
        for value in (low[0], high[0]):
            if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
                return False
    return True


def regular(values: Values, *, topic: bool) -> bool:
    """Could `values` be what this module makes? A peer's message may hold anything of its type.

    It says the same of equal sets; whether whole numbers can be sent is another question.
    """
    if not 0 < parts(values) <= RANGES_MAX:
        return False
    if topic:
        proper = is_normal_patterns(values.topics) and values == Values(topics=values.topics)
    else:
        proper = (
            not values.topics
            and all(_proper_number(cut) for ends in values.numbers for cut in ends)
            and is_normal(values.numbers, ALL_NUMBERS)
            and is_normal(values.strings, ALL_STRINGS)
            and is_normal(values.timestamps, ALL_TIMESTAMPS)
            and is_normal(values.booleans, ALL_BOOLEANS)
        )
    return proper


def _proper_number(cut: tuple[Any, int]) -> bool:
    """A cut beside a finite number, or one of the two ends."""
    value, side = cut
    finite = isinstance(value, int) or isfinite(value)
    return cut in ALL_NUMBERS[0] or (side in (0, 1) and finite)
