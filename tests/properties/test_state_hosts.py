"""The state of a host of the DHT or of its tree is a value: bytes and back, it goes on."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.core.overlay import Overlay
from planaria.protocols.dht.overlay import DhtOverlay
from planaria.protocols.tree.overlay import TreeOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import compose, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from state_lab import goes_on_identically, starts_fresh

LOOKUPS = "\n".join(f"at {time} publish count=3" for time in (1, 2.9, 5, 8.9, 12, 15.9, 18))


@pytest.fixture(params=[DhtOverlay, TreeOverlay])
def make(request: pytest.FixtureRequest) -> Callable[[], Overlay]:
    """Makes the overlay under test."""
    kind: Callable[[], Overlay] = request.param
    return kind


@pytest.mark.parametrize("start", ["corrupt", "legitimate", "fresh"])
def test_any_host_goes_on_from_its_bytes_as_without(
    start: str, make: Callable[[], Overlay], seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(6, 300)):
        rng = stream(seed, "state", start)
        spec = Spec(rng.randint(1, 11), seed, start, scheduler=rng.choice(SCHEDULERS), closure=6)
        goes_on_identically(make(), spec, at=rng.sample(range(20), 3))


@pytest.mark.parametrize("nemesis", ["churn", "corrupt", "bitflip", "damage"])
def test_so_it_does_while_faults_happen(nemesis: str, make: Callable[[], Overlay]) -> None:
    faults = compose(load_schedule(nemesis), parse_schedule(LOOKUPS))
    goes_on_identically(make(), Spec(9, 4, "legitimate", faults, closure=6), at=[3, 9, 16])


def test_bytes_that_are_no_state_leave_it_fresh(make: Callable[[], Overlay]) -> None:
    starts_fresh(make(), Spec(5, 3))


def test_judge_asked_twice_says_the_same_and_changes_nothing(
    make: Callable[[], Overlay],
    seeds: Callable[[int, int], int],
) -> None:
    for seed in range(seeds(6, 100)):
        once, twice = (Trial(make(), Spec(2 + seed, seed)) for _ in range(2))
        for _ in range(25):
            found = twice.violations()
            assert found == twice.violations() == once.violations()
            assert twice.overlay.metrics(twice.simulator.states()) == twice.overlay.metrics(
                twice.simulator.states()
            )
            once.simulator.run_interval()
            twice.simulator.run_interval()
        assert once.simulator.states() == twice.simulator.states()
