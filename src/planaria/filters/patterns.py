"""Sets of topics as unions of MQTT patterns: exact intersection, covering, and one way to write.

A pattern alone is `planaria.core.topics`. A union can cover a pattern that none of its parts
covers: `a` and `a/+/#` together are `a/#`.
"""

from itertools import zip_longest

from planaria.core.errors import UsageError
from planaria.core.topics import check_filter, matches

Patterns = tuple[str, ...]

_FRESH = "\0"  # stands for a level that no pattern names: topics cannot contain it


def selects(patterns: Patterns, topic: str) -> bool:
    """Does one of the patterns select `topic`?"""
    return any(matches(pattern, topic) for pattern in patterns)


def intersect_patterns(a: Patterns, b: Patterns) -> Patterns:
    """What both unions select."""
    both = (_intersect(p, q) for p in a for q in b)
    return normal_patterns([pattern for pattern in both if pattern is not None])


def covers_patterns(a: Patterns, b: Patterns) -> bool:
    """Does `a` select every topic that `b` selects?"""
    longest = max((pattern.count("/") + 1 for pattern in a), default=0)
    return all(selects(a, topic) for pattern in b for topic in _typical(pattern, longest))


def normal_patterns(patterns: list[str]) -> Patterns:
    """The union without parts that the others cover, and with `a`, `a/+/#` written as `a/#`."""
    found = sorted(dict.fromkeys(patterns))
    for pattern in list(found):
        joined = pattern.removesuffix("/+/#")
        if joined != pattern and joined in found:
            found.append(f"{joined}/#")
    kept = list(found)
    for pattern in sorted(found, key=lambda it: (-it.count("/"), it)):
        others = tuple(other for other in kept if other != pattern)
        if others and covers_patterns(others, (pattern,)):
            kept.remove(pattern)
    return tuple(kept) if kept == found else normal_patterns(kept)


def is_normal_patterns(patterns: Patterns) -> bool:
    """Are these as `normal_patterns` writes them? Bytes of a peer may not be."""
    try:
        proper = all(check_filter(pattern) == pattern for pattern in patterns)
    except UsageError:
        return False
    return proper and normal_patterns(list(patterns)) == patterns


def topic_in(pattern: str) -> str:
    """Some topic that `pattern` selects."""
    return _typical(pattern, 1)[0].replace(_FRESH, "x")


def _typical(pattern: str, longest: int) -> list[str]:
    """One topic for each shape that `pattern` selects, up to one level more than `longest`.

    The levels that the pattern leaves open are fresh. Who selects the typical topic has a wildcard
    at each of them and so selects all topics of the shape.
    """
    levels = [_FRESH if level == "+" else level for level in pattern.split("/")]
    if levels[-1] != "#":
        return ["/".join(levels)]
    stem = levels[:-1]
    shapes = (stem + [_FRESH] * more for more in range(max(0, longest - len(stem)) + 2))
    return [topic for shape in shapes if (topic := "/".join(shape))]


def _intersect(p: str, q: str) -> str | None:
    """The topics that both patterns select are always those of one pattern, or none."""
    a, b = p.split("/"), q.split("/")
    for one, other in ((a, b), (b, a)):
        if one[0].startswith("$") and other[0] in ("+", "#"):
            return None
    found: list[str] = []
    for place, (x, y) in enumerate(zip_longest(a, b)):
        if x == "#" or y == "#":
            found += b[place:] if x == "#" else a[place:]
            break
        if x is None or y is None or (x != y and "+" not in (x, y)):
            return None
        found.append(y if x == "+" else x)
    return "/".join(found) or None
