"""The matching index against a plain loop over its filters, while filters come and go."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from filter_domain import VALUES, conjunctions
from planaria.core.errors import UsageError
from planaria.protocols.routing.filters import Filter, matches
from planaria.protocols.routing.matching import GAIN_MIN, MatchingIndex
from planaria.protocols.routing.sql import parse


def filters_of(condition: str) -> list[Filter]:
    try:
        return list(parse(condition))
    except UsageError:
        return []


anything = st.fixed_dictionaries({}, optional={n: st.sampled_from(v) for n, v in VALUES.items()})
some_filters = st.lists(conjunctions().map(lambda it: filters_of(it.sql)), max_size=60)


@given(some_filters, st.lists(anything, min_size=1, max_size=20), st.randoms())
def test_the_index_finds_what_a_loop_finds(
    drawn: list[list[Filter]], notifications: list[dict[str, Any]], rng: Any
) -> None:
    """Each filter is entered several times, so that leaves split and are sieved."""
    index, plain = MatchingIndex(), dict[Any, Filter]()
    for number, filter in enumerate(it for found in drawn for it in found):
        for copy in range(1 + rng.randrange(GAIN_MIN)):
            index.add((number, copy), filter)
            plain[number, copy] = filter
    for key in sorted(plain):
        if rng.random() < 0.3:
            index.remove(key)
            del plain[key]
    assert len(index) == len(plain)
    for raw in notifications:
        attributes = {name: value for name, value in raw.items() if value is not None}
        expected = [key for key, filter in plain.items() if matches(filter, attributes)]
        assert sorted(index.match(attributes), key=str) == sorted(expected, key=str)


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
