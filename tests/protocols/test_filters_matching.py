"""The matching index against a plain loop over its filters, while filters come and go."""

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filter_domain import VALUES, conjunctions
from planaria.core.errors import UsageError
from planaria.filters.filters import EVERYTHING, Filter, matches
from planaria.filters.matching import LEAF_MAX, MatchingIndex
from planaria.filters.sql import parse


def filters_of(condition: str) -> list[Filter]:
    try:
        return list(parse(condition))
    except UsageError:
        return []


anything = st.fixed_dictionaries({}, optional={n: st.sampled_from(v) for n, v in VALUES.items()})
some_filters = st.lists(conjunctions().map(lambda it: filters_of(it.sql)), max_size=60)
SIZES: dict[str, dict[str, float]] = {
    "as they are": {},
    "splits everywhere": {"matching.DISTINCT_MIN": 2, "matching.GAIN_MIN": 2},
    "arrays, few rows": {"sieve.INTEGER_MAX": 0, "sieve.BUCKETS_MAX": 2, "sieve.NAMED_MAX": 1},
    "many rows, no room": {"sieve.BUCKETS_MIN": 256, "sieve.NAMED_MAX": 2, "sieve.ROOM": 1.0},
}


def compare(index: MatchingIndex, plain: dict[Any, Filter], raw: dict[str, Any]) -> None:
    attributes = {name: value for name, value in raw.items() if value is not None}
    expected = [key for key, filter in plain.items() if matches(filter, attributes)]
    assert sorted(index.match(attributes), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("sizes", list(SIZES))
@given(some_filters, st.lists(anything, min_size=1, max_size=10), st.randoms())
def test_the_index_finds_what_a_loop_finds(
    sizes: str, drawn: list[list[Filter]], notifications: list[dict[str, Any]], rng: Any
) -> None:
    """Each filter is entered several times, so that leaves split and are sieved.

    Some come and some go between two notifications: sieves change in place, or are made anew.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SIZES[sizes].items():
            patch.setattr(f"planaria.filters.{name}", value)
        index, plain = MatchingIndex(), dict[Any, Filter]()
        coming = [
            ((number, copy), filter)
            for number, filter in enumerate(it for found in drawn for it in found)
            for copy in range(1 + rng.randrange(LEAF_MAX))
        ]
        rng.shuffle(coming)
        for turn, raw in enumerate(notifications, 1):
            while coming and len(coming) * len(notifications) > turn * len(plain):
                key, filter = coming.pop()
                index.add(key, filter)
                plain[key] = filter
            compare(index, plain, raw)
            for key in [it for it in plain if rng.random() < 0.2]:
                index.remove(key)
                del plain[key]
            compare(index, plain, raw)
            assert len(index) == len(plain)


def test_what_is_not_a_number_and_what_is_infinite_pass_as_a_filter_says() -> None:
    """NaN comes after the last number, in rows of bits too."""
    index, plain = MatchingIndex(), dict[Any, Filter]()
    for number in range(100):
        for text in (f"a > {number}", f"a < {number}", f"a <> {number}", "a IS NOT NULL"):
            plain[number, text] = parse(text)[0]
            index.add((number, text), plain[number, text])
    plain["all"] = EVERYTHING
    index.add("all", EVERYTHING)
    for value in (nan, inf, -inf, 2**70, -(2**70), 10**400, 50, 50.0, 50.5, "50", True):
        compare(index, plain, {"a": value})
    expected = [key for key in plain if key == "all" or not key[1].startswith("a < ")]
    assert sorted(index.match({"a": nan}), key=str) == sorted(expected, key=str)


def test_a_filter_with_long_lists_is_kept_in_few_places() -> None:
    """Sixteen values in each of five attributes would be a million branches."""
    index = MatchingIndex()
    names = [f"n{number}" for number in range(5)]
    for number in range(200):
        texts = [f"'{(number + step) % 200}'" for step in range(16)]
        (filter,) = parse(" AND ".join(f"{name} IN ({', '.join(texts)})" for name in names))
        index.add(number, filter)
    assert sorted(map(str, index.match(dict.fromkeys(names, "17")))) == sorted(
        map(str, range(2, 18))
    )
    assert branches(index) < 64 * 200


def branches(index: MatchingIndex) -> int:
    pending, found = [index._root], 0
    for branch in pending:
        found += 1
        pending += [*branch.children.values(), *([branch.rest] if branch.rest else [])]
    return found


def test_a_key_entered_twice_holds_the_newer_filter() -> None:
    index = MatchingIndex()
    index.add("k", parse("a = 1")[0])
    index.add("k", parse("a = 2")[0])
    assert index.match({"a": 1}) == []
    assert index.match({"a": 2}) == ["k"]
    index.remove("k")
    index.remove("k")
    assert index.match({"a": 2}) == []


def test_true_and_one_and_large_numbers_are_kept_apart() -> None:
    index = MatchingIndex()
    big = 2**53
    for number in range(200):
        index.add(("flag", number), parse("a AND b = 1")[0])
        index.add(("one", number), parse("a = 1 AND b = 1")[0])
        index.add(("big", number), parse(f"a > {big} AND b = {number}")[0])
    assert {key[0] for key in index.match({"a": True, "b": 1}) if isinstance(key, tuple)} == {
        "flag"
    }
    assert {key[0] for key in index.match({"a": 1.0, "b": 1}) if isinstance(key, tuple)} == {"one"}
    assert index.match({"a": big, "b": 7}) == []
    assert index.match({"a": big + 1, "b": 7}) == [("big", 7)]


def test_true_is_not_one_where_filters_are_split_by_value() -> None:
    """In a branch for one value nobody looks at that value again: it must be of the right kind."""
    index = MatchingIndex()
    for number in range(200):
        index.add(("other", number), parse(f"a = {number + 2}")[0])
        index.add(("one", number), parse(f"a = 1 AND b > {number}")[0])
        index.add(("true", number), parse(f"a AND b > {number}")[0])
        index.add(("false", number), parse(f"NOT a AND b > {number}")[0])
        index.add(("zero", number), parse(f"a = 0 AND b > {number}")[0])
    assert index._root.attribute == "a"
    for name, value in {"one": 1, "true": True, "false": False, "zero": 0.0}.items():
        found = index.match({"a": value, "b": 100.5})
        assert sorted(found, key=str) == sorted(((name, it) for it in range(101)), key=str)
