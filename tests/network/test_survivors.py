"""What survivors see of killed nodes, and what grows in a network that is used for long."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from planaria.network.bench.killed import longest, survive
from planaria.network.bench.soak import Level, Soak, levels, slope

FIGURES = dict.fromkeys(
    ("pss", "descriptors", "threads", "contacts", "topics", "records", "store", "links", "clients"),
    10.0,
)


@pytest.mark.parametrize("supervisor", [False, True])
def test_survivors_of_four_kills_lose_nothing_and_get_nothing_twice(
    seeds: Callable[[int, int], int], tmp_path: Path, supervisor: bool
) -> None:
    for number in range(seeds(0, 2)):
        found = asyncio.run(survive(tmp_path / str(number), supervisor=supervisor))
        print(found)
        assert (found.lost, found.twice) == (0, 0)


def test_nothing_grows_in_a_network_that_is_used_for_long(
    seeds: Callable[[int, int], int], tmp_path: Path
) -> None:
    soak = Soak(tmp_path, minutes=seeds(0, 30), report=print)
    found = asyncio.run(soak.run())
    assert soak.published
    assert soak.visits
    assert soak.kills
    assert found
    assert [it for it in found if it.grows] == []


def test_the_longest_gap_is_between_neighbours() -> None:
    assert longest([1.0, 1.5, 4.0, 4.25]) == 2.5
    assert longest([7.0]) == 0


def test_a_slope_is_that_of_the_nearest_line() -> None:
    assert slope([(0.0, 1.0), (10.0, 6.0), (20.0, 11.0)]) == pytest.approx(0.5)
    assert slope([(3.0, 1.0), (3.0, 2.0)]) == 0


def test_what_rises_in_the_last_third_grows_and_what_rises_before_does_not() -> None:
    """A process that has just started takes a while to have everything that it needs."""
    warm = [(float(at), FIGURES | {"pss": min(40.0, 10.0 + 3 * at)}) for at in range(31)]
    leaks = [(float(at), FIGURES | {"pss": 40.0 + at}) for at in range(31)]
    found = levels({"warm": warm, "leaks": leaks})
    assert [(it.node, it.figure) for it in found if it.grows] == [("leaks", "pss")]
    assert next(it for it in found if it.grows).per_hour == pytest.approx(3600)


def test_a_run_too_short_to_be_judged_says_nothing() -> None:
    assert levels({"n1": [(0.0, FIGURES)]}) == []


@pytest.mark.parametrize(("figure", "after", "grows"), [("pss", 41.0, False), ("links", 45, True)])
def test_growth_is_more_than_what_comes_and_goes(figure: str, after: float, grows: bool) -> None:
    assert Level("n1", figure, 40.0, after, 0.0).grows is grows
