"""Large rings with histories agree in logarithmic time, whatever the scheduler holds back."""

from collections.abc import Callable
from math import log2

import pytest

from planaria.protocols.publications.bound import intervals_to_agree
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial

SPLIT = parse_schedule(
    "at 0 publish count=10\nat 1 for 4 partition groups=3\nat 2 publish count=20"
)
RING = 45  # intervals in which these rings alone heal, at most
SLOWEST = 4.5  # intervals that a message takes under the slowest scheduler


def healed(n: int, seed: int, scheduler: str) -> int:
    spec = Spec(n, seed, "corrupt", SPLIT, scheduler=scheduler, intervals=300)
    outcome = Trial(RingOverlay(2), spec).run()
    assert outcome.failure is None
    assert outcome.metrics["publications"] >= 30
    return outcome.intervals


@pytest.mark.parametrize(("n", "seed", "few"), [(19, 900012, 1), (47, 900002, 0)])
def test_types_held_back_for_four_intervals_cost_a_logarithm_not_a_multiple_of_n(
    n: int, seed: int, few: int, seeds: Callable[[int, int], int]
) -> None:
    """At most two exchanges at a time take 103 intervals at n = 19 and 189 at n = 47."""
    for it in range(seeds(few, 1)):
        assert healed(n, seed + it, "priority") <= 20 * log2(n)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_large_ring_with_histories_agrees_under(
    scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    n = seeds(13, 20)
    assert healed(n, 900003, scheduler) <= RING + intervals_to_agree(n, SLOWEST)


def test_bound_grows_with_the_logarithm_and_with_the_delay() -> None:
    steps = [intervals_to_agree(1 << k, 1.0) - intervals_to_agree(1 << k - 1, 1.0) for k in (2, 9)]
    assert steps[0] == steps[1] == 8
    assert intervals_to_agree(1, 0.5) > 0
    assert intervals_to_agree(64, 4.0) > intervals_to_agree(64, 1.0)
