"""The sketch of a group's size: what is false dies out, what is true stays, with slow links too."""

from collections import deque

import pytest

from planaria.protocols.gossip.messages import SLOWEST
from planaria.protocols.gossip.sketch import (
    ROUND_TRIP,
    SKETCH_AGE_MAX,
    Sketch,
    estimate,
    exact,
    grow_old,
    merge,
    rank,
)

GHOST = 12345  # a hash that no member has


def exchange(slow: int, ages: tuple[int, int], intervals: int) -> list[tuple[Sketch, Sketch]]:
    """Two members send each other all they know in every interval; it takes `slow` to arrive."""
    members = (1, 2)
    sketches = [exact(members) | {GHOST: age} for age in ages]
    flight: deque[list[tuple[tuple[int, int], ...]]] = deque()
    seen = []
    for _ in range(intervals):
        sketches = [grow_old(it, me) for it, me in zip(sketches, members, strict=True)]
        flight.append([tuple(it.items()) for it in sketches])
        if len(flight) > slow:
            arrived = flight.popleft()
            merge(sketches[0], arrived[1])
            merge(sketches[1], arrived[0])
        seen.append((dict(sketches[0]), dict(sketches[1])))
    return seen


@pytest.mark.parametrize("slow", range(SLOWEST))
@pytest.mark.parametrize("ages", [(0, 0), (0, SLOWEST), (0, SKETCH_AGE_MAX), (30, 27)])
def test_what_is_false_dies_out_and_what_is_true_stays_where_links_are_slow(
    slow: int, ages: tuple[int, int]
) -> None:
    """Where any younger age was taken, two members kept a ghost for 119 intervals."""
    limit = SKETCH_AGE_MAX + 2 * ROUND_TRIP
    seen = exchange(slow, ages, 2 * limit)
    for sketches in seen[limit:]:
        assert [GHOST in it for it in sketches] == [False, False]
    for sketches in seen:
        assert [{rank(1), rank(2)} <= it.keys() for it in sketches] == [True, True]
    assert [estimate(it) for it in seen[-1]] == [2, 2]


def test_news_must_be_younger_than_mine_by_more_than_it_takes_there_and_back() -> None:
    mine = {GHOST: ROUND_TRIP + 5}
    merge(mine, [(GHOST, 4)])
    assert mine == {GHOST: ROUND_TRIP + 5}
    merge(mine, [(GHOST, 3)])
    assert mine == {GHOST: 4}


def test_my_own_hash_is_new_in_every_interval() -> None:
    sketch = exact([1, 2])
    for age in range(1, 9):
        sketch = grow_old(sketch, 1)
        assert sketch == {rank(1): 0, rank(2): age}
