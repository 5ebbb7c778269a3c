"""The state of a broker on a fixed tree is a value: bytes and back, it goes on unchanged."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import compose, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from state_lab import goes_on_identically, starts_fresh

PUBLISHED = parse_schedule("\n".join(f"at {time} publish count=3" for time in (1, 2.9, 7, 12)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_broker_goes_on_from_its_bytes_as_without(
    strategy: str, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(6, 300)):
        rng = stream(seed, "state", strategy)
        overlay = RoutingOverlay(strategy, rng.random() < 0.5, subscriptions=12)
        start = rng.choice(["corrupt", "corrupt", "fresh", "legitimate"])
        scheduler = rng.choice(SCHEDULERS)
        spec = Spec(rng.randint(1, 9), seed, start, PUBLISHED, scheduler=scheduler, closure=6)
        goes_on_identically(overlay, spec, at=rng.sample(range(18), 3))


@pytest.mark.parametrize("nemesis", ["lossy", "corrupt", "partition"])
def test_so_it_does_while_faults_happen(nemesis: str) -> None:
    faults = compose(load_schedule(nemesis), PUBLISHED)
    spec = Spec(9, 4, "legitimate", faults, closure=6)
    goes_on_identically(RoutingOverlay("merging"), spec, at=[3, 9, 16])


def test_bytes_that_are_no_state_leave_it_fresh() -> None:
    starts_fresh(RoutingOverlay(), Spec(5, 3))


def test_judge_asked_twice_says_the_same_and_changes_nothing() -> None:
    for seed in range(4):
        once, twice = (Trial(RoutingOverlay(), Spec(7, seed)) for _ in range(2))
        for _ in range(25):
            assert twice.violations() == twice.violations() == once.violations()
            once.simulator.run_interval()
            twice.simulator.run_interval()
        assert repr(once.simulator.states()) == repr(twice.simulator.states())
