"""What was simulated has an interval, with one run none: no width is zero by accident."""

import pytest

from planaria.lab.routing.analysis import MUS, OMEGAS, RHOS
from planaria.studies.damulticast.facts import _scaling, among
from planaria.studies.facts import Group, Moments, Summary, mean, moments
from planaria.studies.judge import Fact, judge
from planaria.studies.leases.facts import _crossing_facts, _figure_facts
from planaria.studies.skipring.facts import FACTS

SCENARIO = {"omega": OMEGAS[0], "rho": RHOS[0], "mu": MUS[0]}


def wide(fact: Fact) -> bool:
    return fact.low is not None and fact.high is not None and fact.low < fact.high


def tried(at: float, seed: int, gain: float) -> Group:
    """A simulation beside a crossing at 100."""
    one = {"closed": moments([100.0]), "tried": moments([100 * at]), "gain": moments([gain])}
    return Group({**SCENARIO, "at": at, "seed": seed}, one)


KNOWN = Group({**SCENARIO, "at": 0.0, "seed": 0}, {"closed": moments([100.0])})


def test_figures_of_single_runs_add_up_and_can_be_had_in_other_units() -> None:
    found = moments([2.0, 4.0, 9.0])
    assert (found.runs, found.mean, found.least, found.most) == (3, 5.0, 2.0, 9.0)
    assert found.squares == pytest.approx(9 + 1 + 16)
    half = found.over(2.0)
    assert half.squares == pytest.approx(moments([1.0, 2.0, 4.5]).squares)
    assert (half.runs, half.mean, half.least, half.most) == (3, 2.5, 1.0, 4.5)
    assert moments([]) == Moments()


def test_a_simulated_crossing_is_as_wide_as_its_seeds_differ() -> None:
    pairs = [(30.0, -10.0), (10.0, -10.0), (20.0, -10.0)]
    cells = [
        tried(at, seed, gain)
        for seed, gains in enumerate(pairs)
        for at, gain in zip((0.95, 1.05), gains, strict=True)
    ]
    for count, known in ((1, False), (2, True), (3, True)):
        found = _crossing_facts(Summary([KNOWN, *cells[: 2 * count]]))["crossing_simulated"][None]
        assert found.runs == count
        assert wide(found) == known
        if not known:
            assert judge(found, "=", Fact(100.0, 100.0, 100.0), 0.5) == "undecided"


def test_runs_in_which_filtering_does_not_win_below_or_lose_above_are_counted() -> None:
    cells = [tried(0.95, 0, 3.0), tried(1.05, 0, -3.0), tried(0.95, 1, -0.1), tried(1.05, 1, -1)]
    assert _crossing_facts(Summary([KNOWN, *cells]))["wrong_sides"][None] == Fact(1, 1, 1, 4)
    assert _crossing_facts(Summary([KNOWN, *cells[:2]]))["wrong_sides"][None] == Fact(0, 0, 0, 2)
    assert _crossing_facts(Summary([]))["wrong_sides"][None].value is None


def test_subscriptions_in_equilibrium_have_an_interval() -> None:
    point = {"subscriptions": 100, "rho": RHOS[0], "mu": MUS[0]}
    run = {name: moments([1.0, 1.0]) for name in ("saved_1", "control", "crossed")}
    simulated = Summary([Group(point, {**run, "alive": moments([98.0, 104.0])})])
    alive = _figure_facts(simulated, simulated)["alive"][None]
    assert alive.value == pytest.approx(1.01)
    assert wide(alive)


def test_messages_over_their_bound_have_an_interval() -> None:
    runs = [Group({"size": size}, {"sent": moments([size, 9 * size])}) for size in (10, 100)]
    found = dict(_scaling(Summary(runs)))
    assert all(wide(it) for it in found.values())
    assert len(found) == 2


def test_a_share_of_those_that_came_so_far_is_of_them_alone() -> None:
    got = among(moments([1.0] * 30 + [0.0] * 70), moments([1.0] * 60 + [0.0] * 40))
    assert got.value == pytest.approx(0.5)
    assert got.runs == 60
    assert wide(got)
    assert among(Moments(), moments([0.0, 0.0])).value is None


def test_congestion_beside_rings_with_random_ids_is_a_mean() -> None:
    assert FACTS["worse"].kind is mean
