"""Sets of values of one kind as sorted, disjoint, half-open ranges between cuts.

A cut is a place between two values of an ordered kind. With cuts, open and closed ends, points,
prefixes and 'all but' are the same thing, and two sets are equal only if their ranges are.

    numbers      (v, 0) before v, (v, 1) after v; taken as dense: between any two lies a third;
                 NaN follows infinity, as in Spark: after infinity is before NaN
    strings      (0, s) before s; after s is (0, s + NUL), the next string; (1, "") after all
    timestamps   microseconds, booleans 0 and 1: whole numbers, after n is n + 1
"""

from bisect import bisect_right
from math import inf
from typing import Any

NUL = "\0"
LAST = chr(0x10FFFF)
SURROGATES = (0xD800, 0xE000)  # no text contains these code points

Cut = Any  # compared only with cuts of its own kind
Range = tuple[Any, Any]
Ranges = tuple[Range, ...]

TIMESTAMP_MIN = -62_135_596_800_000_000  # 0001-01-01, in microseconds from 1970
TIMESTAMP_END = 253_402_300_800_000_000  # 10000-01-01

BEFORE_NAN = (inf, 1)
ALL_NUMBERS: Ranges = (((-inf, 0), (inf, 2)),)
ALL_STRINGS: Ranges = (((0, ""), (1, "")),)
ALL_TIMESTAMPS: Ranges = ((TIMESTAMP_MIN, TIMESTAMP_END),)
ALL_BOOLEANS: Ranges = ((0, 2),)


def normal(ranges: list[Range]) -> Ranges:
    """The one way to write the union of `ranges`: sorted, without empty or touching ones."""
    found: list[Range] = []
    for low, high in sorted(ranges):
        if low >= high:
            continue
        if found and low <= found[-1][1]:
            if high > found[-1][1]:
                found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def is_normal(ranges: Ranges, everything: Ranges) -> bool:
    """Are these ranges as `normal` writes them, inside `everything`? Bytes of a peer may not be."""
    last = None
    for low, high in ranges:
        if not low < high or (last is not None and not last < low):
            return False
        last = high
    return covers(everything, ranges)


def contains(ranges: Ranges, cut: Cut) -> bool:
    """Is the value that follows `cut` in the set?"""
    if len(ranges) == 1:
        low, high = ranges[0]
        return bool(low <= cut < high)
    place = bisect_right(ranges, cut, key=_low)
    return place > 0 and bool(cut < ranges[place - 1][1])


def intersect(a: Ranges, b: Ranges) -> Ranges:
    """What is in both sets."""
    found = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low < high:
            found.append((low, high))
        if a[i][1] <= b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def union(a: Ranges, b: Ranges) -> Ranges:
    """What is in one of the sets."""
    return normal([*a, *b])


def covers(a: Ranges, b: Ranges) -> bool:
    """Is all of `b` in `a`?"""
    i = 0
    for low, high in b:
        while i < len(a) and a[i][1] < high:
            i += 1
        if i == len(a) or not a[i][0] <= low:
            return False
    return True


def complement(ranges: Ranges, everything: Ranges) -> Ranges:
    """What of `everything` is not in the set."""
    (low, end) = everything[0]
    found = []
    for start, stop in ranges:
        found.append((low, start))
        low = stop
    return normal([*found, (low, end)])


def prefix_end(prefix: str) -> tuple[int, str]:
    """The cut after all strings that begin with `prefix`."""
    kept = prefix.rstrip(LAST)
    if not kept:
        return (1, "")
    following = ord(kept[-1]) + 1
    if SURROGATES[0] <= following < SURROGATES[1]:
        following = SURROGATES[1]
    return (0, kept[:-1] + chr(following))


def _low(one: Range) -> Cut:
    return one[0]
