"""Covering, overlap and merging of filters against trying every notification of a small world."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filter_domain import Condition, conjunctions, notifications
from planaria.core.errors import UsageError
from planaria.filters.filters import (
    EVERYTHING,
    Attributes,
    Filter,
    covers,
    filter_id,
    imperfect_merge,
    is_well_formed,
    matches,
    merge,
    overlaps,
    witness,
)
from planaria.filters.ranges import LAST, prefix_end
from planaria.filters.sql import parse
from planaria.filters.values import RANGES_MAX, Values
from planaria.filters.wording import to_sql


def read(condition: str) -> Filter | None:
    """The one filter of a conjunction; None if it can never be true."""
    try:
        (found,) = parse(condition)
    except UsageError as error:
        if "never true" not in str(error):
            raise
        return None
    return found


def world(*conditions: Condition) -> list[dict[str, Any]]:
    """Every notification over the attributes that the conditions name."""
    text = " ".join(it.sql for it in conditions)
    names = [name for name in ("n", "s", "t", "f", "topic") if f"{name} " in f"{text} "]
    return notifications(*names[:3])  # three attributes are thousands of notifications


def of_two(*conditions: Condition) -> bool:
    """Do these name at most two attributes, so that a world is quickly tried?"""
    text = " ".join(it.sql for it in conditions)
    return sum(f"{name} " in f"{text} " for name in ("n", "s", "t", "f", "topic")) <= 2


pairs = st.tuples(conjunctions(2), conjunctions(2)).filter(lambda it: of_two(*it))


@given(conjunctions().filter(of_two))
def test_a_filter_matches_what_its_condition_says(condition: Condition) -> None:
    filter = read(condition.sql)
    for attributes in world(condition):
        passes = filter is not None and matches(filter, attributes)
        assert passes == condition.holds(attributes), attributes


@given(pairs)
def test_covering_and_overlap_are_exact(pair: tuple[Condition, Condition]) -> None:
    f, g = (read(it.sql) for it in pair)
    if f is None or g is None:
        return
    everything = world(*pair)
    in_f = [pair[0].holds(it) for it in everything]
    in_g = [pair[1].holds(it) for it in everything]
    assert covers(f, g) == all(a or not b for a, b in zip(in_f, in_g, strict=True))
    assert overlaps(f, g) == any(a and b for a, b in zip(in_f, in_g, strict=True))
    assert (f == g) == (in_f == in_g)
    assert (filter_id(f) == filter_id(g)) == (f == g)


@given(pairs)
def test_a_perfect_merge_matches_the_union_and_is_found_if_there_is_one(
    pair: tuple[Condition, Condition],
) -> None:
    f, g = (read(it.sql) for it in pair)
    if f is None or g is None:
        return
    merged = merge(f, g)
    everything = world(*pair)
    union = [it for it in everything if pair[0].holds(it) or pair[1].holds(it)]
    if merged is not None:
        assert [it for it in everything if matches(merged, it)] == union
        assert is_well_formed(merged)
    else:
        # Where no merge is found the smallest box round both holds more than both.
        box = _box(union)
        assert len([it for it in everything if _in_box(box, it)]) > len(union)


def _box(some: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = sorted({name for it in some for name in it})
    return {name: [it.get(name) for it in some] for name in names}


def _in_box(box: dict[str, list[Any]], attributes: Attributes) -> bool:
    def same(x: Any, y: Any) -> bool:
        return type(x) is type(y) and bool(x == y)

    for name, allowed in box.items():
        if any(it is None for it in allowed):
            continue  # a box that allows the attribute to be missing does not constrain it
        if not any(same(attributes.get(name), it) for it in allowed):
            return False
    return True


@given(pairs, st.sampled_from([0.0, 0.1, 0.25, 0.5]))
def test_an_imperfect_merge_covers_both_and_keeps_its_bound(
    pair: tuple[Condition, Condition], bound: float
) -> None:
    f, g = (read(it.sql) for it in pair)
    if f is None or g is None:
        return
    everything = world(*pair)
    merged = imperfect_merge(f, g, everything, bound)
    if merged is None:
        return
    assert covers(merged, f)
    assert covers(merged, g)
    passing = [it for it in everything if matches(merged, it)]
    wasted = [it for it in passing if not pair[0].holds(it) and not pair[1].holds(it)]
    assert len(wasted) <= bound * len(passing)


def test_an_imperfect_merge_is_found_within_its_bound_and_not_beyond() -> None:
    f, g = read("n = 0 AND s = 'a'"), read("n = 1 AND s = 'b'")
    assert f is not None
    assert g is not None
    sample: list[Attributes] = [{"n": n, "s": s} for n in (0, 1) for s in ("a", "b")]
    assert imperfect_merge(f, g, sample, 0.5) == read("n IN (0, 1) AND s IN ('a', 'b')")
    assert imperfect_merge(f, g, sample, 0.49) is None
    assert imperfect_merge(f, g, [], 0.5) is None


@given(conjunctions())
def test_a_filter_matches_its_witness_and_reads_back_from_its_words(condition: Condition) -> None:
    filter = read(condition.sql)
    if filter is None:
        return
    found = witness(filter)
    assert found is not None
    assert matches(filter, found)
    assert is_well_formed(filter)
    assert parse(to_sql(filter)) == (filter,)


def test_everything_covers_and_matches_all() -> None:
    assert matches(EVERYTHING, {})
    assert covers(EVERYTHING, parse("n > 1")[0])
    assert parse("TRUE") == (EVERYTHING,)


@pytest.mark.parametrize("prefix", ["a", "", LAST, "a" + LAST, "\ud7ff", "az"])
def test_the_end_of_a_prefix_is_after_its_strings_and_before_all_others(prefix: str) -> None:
    end = prefix_end(prefix)
    assert (0, prefix + LAST * 3) < end
    assert end == (1, "") or not end[1].startswith(prefix)
    assert "\ud800" not in end[1]


def test_merging_stops_before_a_filter_grows_too_large() -> None:
    grown = parse("n = 0")[0]
    for number in range(2, 2 * RANGES_MAX, 2):
        merged = merge(grown, parse(f"n = {number}")[0])
        assert merged is not None
        grown = merged
    assert merge(grown, parse(f"n = {2 * RANGES_MAX}")[0]) is None


@pytest.mark.parametrize(
    "garbage",
    [
        Filter((("b", Values(topics=("a",))),)),
        Filter((("topic", Values(numbers=(((0, 0), (1, 0)),))),)),
        Filter((("n", Values()),)),
        Filter((("n", Values(numbers=(((1, 0), (0, 0)),))),)),
        Filter((("n", Values(numbers=(((0, 0), (1, 0)), ((1, 0), (2, 0))))),)),
        Filter((("n", Values(numbers=(((float("nan"), 0), (2, 0)),))),)),
        Filter((("n", Values(numbers=(((0, 5), (2, 0)),))),)),
        Filter((("n", Values(numbers=(((0, 0), (float("inf"), 1)),))),)),
        Filter((("n", Values(numbers=(((0, 0), (2, 2)),))),)),
        Filter((("n", Values(booleans=((0, 9),))),)),
        Filter((("topic", Values(topics=("a/#/b",))),)),
        Filter((("topic", Values(topics=("a", "a/+/#"))),)),
        Filter((("b", Values(booleans=((0, 1),))), ("a", Values(booleans=((0, 1),))))),
    ],
)
def test_a_filter_that_no_condition_gives_is_recognised(garbage: Filter) -> None:
    assert not is_well_formed(garbage)


@pytest.mark.parametrize("numbers", [(1 << 70, 2.0**70), (2.0**70, 1 << 70)])
def test_equal_numbers_are_judged_each_by_itself_because_only_one_can_be_sent(
    numbers: tuple[float, float],
) -> None:
    cuts = [Values(numbers=(((number, 0), (number, 1)),)) for number in numbers]
    filters = [Filter((("n", values),)) for values in cuts]
    assert filters[0] == filters[1]
    for _ in range(2):  # from memory too
        assert [is_well_formed(it) for it in filters] == [isinstance(it, float) for it in numbers]
