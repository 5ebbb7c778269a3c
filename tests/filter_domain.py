"""A small world in which filters can be checked by trying every notification.

Conditions are drawn as SQL text together with a plain function that evaluates them; the values
hit every cell between the literals that can occur.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from planaria.filters.timestamps import Timestamp, read_timestamp

TIMES = ["2013-01-01", "2013-01-02 03:04:05", "2013-01-02 03:04:05.000001"]
TEXTS = ["", "a", "ab", "b"]
LEVELS = ["a", "b", "$s"]
NUMBERS: list[Any] = [-1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5]
STRINGS: list[Any] = sorted(
    {text + more for text in TEXTS for more in ("", "\0", "c")} | {"ac", "bb", "c", "zz"}
)
INSTANTS: list[Any] = [
    Timestamp(read_timestamp(text).microseconds + shift) for text in TIMES for shift in (-1, 0, 1)
]
VALUES: dict[str, list[Any]] = {
    "n": [None, "1", True, *NUMBERS],
    "s": [None, 1, *STRINGS],
    "t": [None, "2013-01-01", *INSTANTS],
    "f": [None, 1, False, True],
    "topic": [
        None,
        *("/".join(it) for k in (1, 2, 3) for it in product(["a", "b", "x", "$s", ""], repeat=k)),
    ],
}


class Condition(NamedTuple):
    """SQL text and what it means."""

    sql: str
    holds: Callable[[Mapping[str, Any]], bool]


def _typed(value: Any, like: type) -> bool:
    if like is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is like


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: bool(x == y),
    "<>": lambda x, y: bool(x != y),
    "<": lambda x, y: bool(x < y),
    "<=": lambda x, y: bool(x <= y),
    ">": lambda x, y: bool(x > y),
    ">=": lambda x, y: bool(x >= y),
}


def _selects(pattern: str, topic: str) -> bool:
    """MQTT, section 4.7, as a recursion over levels."""
    if topic.startswith("$") and pattern[0] in "+#":
        return False

    def walk(wanted: list[str], levels: list[str]) -> bool:
        if not wanted:
            return not levels
        if wanted[0] == "#":
            return True
        return bool(levels) and wanted[0] in ("+", levels[0]) and walk(wanted[1:], levels[1:])

    return walk(pattern.split("/"), topic.split("/"))


LITERALS: dict[str, tuple[type, list[tuple[str, Any]]]] = {
    "n": (float, [("-1", -1), ("0", 0), ("1", 1), ("1.0", 1), ("2", 2)]),
    "s": (str, [(f"'{text}'", text) for text in TEXTS]),
    "t": (Timestamp, [(f"TIMESTAMP '{text}'", read_timestamp(text)) for text in TIMES]),
}


@st.composite
def topic_patterns(draw: st.DrawFn) -> Condition:
    """The topic matches an MQTT pattern."""
    level = st.sampled_from([*LEVELS[:2], "+"])
    stem = draw(st.lists(level, min_size=1, max_size=2))
    stem = [draw(st.sampled_from(LEVELS)), *stem[1:]] if draw(st.booleans()) else stem
    pattern = "/".join([*stem, *(["#"] if draw(st.booleans()) else [])])
    return Condition(
        f"topic = '{pattern}'",
        lambda it: it.get("topic") is not None and _selects(pattern, it["topic"]),
    )


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    """One constraint of any supported form."""
    name = draw(st.sampled_from(["n", "n", "s", "s", "t", "f", "topic"]))
    if name == "topic":
        return draw(topic_patterns())
    if name == "f":
        wanted = draw(st.booleans())
        return Condition("f" if wanted else "NOT f", lambda it: it.get("f") is wanted)
    kind, literals = LITERALS[name]
    form = draw(st.sampled_from(["compare", "between", "in", "prefix", "exists"]))
    if form == "exists":
        return Condition(f"{name} IS NOT NULL", lambda it: it.get(name) is not None)
    if form == "prefix":
        text = draw(st.sampled_from(TEXTS))
        return Condition(
            f"s LIKE '{text}%'",
            lambda it: type(it.get("s")) is str and it["s"].startswith(text),
        )
    if form == "in":
        chosen = draw(st.lists(st.sampled_from(literals), min_size=1, max_size=3))
        members = [value for _, value in chosen]
        return Condition(
            f"{name} IN ({', '.join(text for text, _ in chosen)})",
            lambda it: _typed(it.get(name), kind) and it[name] in members,
        )
    (one, low), (two, high) = draw(st.sampled_from(literals)), draw(st.sampled_from(literals))
    if form == "between":
        return Condition(
            f"{name} BETWEEN {one} AND {two}",
            lambda it: _typed(it.get(name), kind) and low <= it[name] <= high,
        )
    sign = draw(st.sampled_from(sorted(OPERATORS)))
    return Condition(
        f"{name} {sign} {one}",
        lambda it: _typed(it.get(name), kind) and OPERATORS[sign](it[name], low),
    )


def conjunctions(most: int = 3) -> st.SearchStrategy[Condition]:
    """Up to `most` constraints that must all hold."""
    return st.lists(comparisons(), min_size=1, max_size=most).map(
        lambda found: Condition(
            " AND ".join(it.sql for it in found),
            lambda attributes: all(it.holds(attributes) for it in found),
        )
    )


def notifications(*names: str) -> list[dict[str, Any]]:
    """Every notification over the named attributes; None means that an attribute is missing."""
    found = []
    for values in product(*(VALUES[name] for name in names)):
        present = zip(names, values, strict=True)
        found.append({name: value for name, value in present if value is not None})
    return found
