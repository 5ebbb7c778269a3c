"""Which filters a broker tells: those that no other one covers, whether asked before or not."""

from random import Random

import pytest

from planaria.filters.filters import Filter, conjunction, covers
from planaria.filters.values import Values
from planaria.protocols.routing.strategies import (
    PAIRS_MAX,
    REMEMBERED_FILTERS_MAX,
    maximal,
)
from planaria.protocols.routing.workload import random_filter


def numbered(*numbers: float) -> list[Filter]:
    """A filter for each number, and nothing else."""
    return [Filter((("n", Values(numbers=(((it, 0), (it, 1)),))),)) for it in numbers]


def on_topic(filter: Filter, rng: Random) -> Filter:
    """What `filter` matches of one topic, or of some."""
    pattern = rng.choice(("a/b", "a/+", "a/#", "#", "c/b"))
    found = conjunction([*filter.constraints, ("topic", Values(topics=(pattern,)))])
    assert found is not None
    return found


@pytest.mark.parametrize("topics", [False, True])
@pytest.mark.parametrize("count", [PAIRS_MAX, 3 * PAIRS_MAX])
@pytest.mark.parametrize("seed", range(5))
def test_those_stay_that_no_other_covers(seed: int, count: int, topics: bool) -> None:
    rng = Random(seed)
    drawn = [random_filter(rng) for _ in range(count)]
    if topics:
        drawn = [on_topic(it, rng) if rng.random() < 0.7 else it for it in drawn]
    filters = list(dict.fromkeys(drawn))
    right = [it for it in filters if not any(covers(by, it) for by in filters if by is not it)]
    for _ in range(2):  # from memory too
        assert maximal(filters) == right
        assert maximal(filters[::-1]) == right[::-1]


def test_of_equal_filters_each_caller_gets_its_own() -> None:
    whole, real = numbered(1, 2), numbered(1.0, 2.0)
    assert whole == real
    for mine in (whole, real):
        assert all(a is b for a, b in zip(maximal(mine), mine, strict=True))


def test_many_filters_are_judged_as_few_are() -> None:
    filters = numbered(*range(REMEMBERED_FILTERS_MAX + 1))
    everywhere = Filter((("n", Values(numbers=(((0, 0), (len(filters), 1)),))),))
    assert maximal(filters) == filters
    assert maximal([*filters, everywhere]) == [everywhere]
