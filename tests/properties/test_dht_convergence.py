"""The DHT becomes legitimate from anything, under every scheduler and nemesis, and stays so."""

from collections.abc import Callable

import pytest

from planaria.protocols.dht.node import DhtNode
from planaria.protocols.dht.overlay import DhtOverlay, give_places
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule
from planaria.simulator.trial import Spec, Trial, must_heal

# A DHT reads no clock; all other faults there are.
NEMESES = sorted({*NAMED} - {"none", "skew"})


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_dht_converges_from_arbitrary_states(
    scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    """Arbitrary neighbours, fingers, counters, lookups and messages; some name nobody."""
    for seed in range(seeds(8, 400)):
        must_heal(DhtOverlay(), Spec(n=1 + 3 * seed % 17, seed=seed, scheduler=scheduler))


@pytest.mark.parametrize("detected", [True, False])
@pytest.mark.parametrize("nemesis", NEMESES)
def test_dht_heals_after(nemesis: str, detected: bool, seeds: Callable[[int, int], int]) -> None:
    """Whether or not a failed send is noticed: silence is enough, only slower."""
    for seed in range(seeds(1, 50)):
        spec = Spec(14, seed, "legitimate", load_schedule(nemesis))
        trial = Trial(DhtOverlay(), spec)
        trial.simulator.detects_failed_sends = detected
        outcome = trial.run()
        assert outcome.failure is None, spec.command(trial.overlay)
        assert outcome.ineffective == []


def test_everybody_joins_at_once() -> None:
    assert must_heal(DhtOverlay(), Spec(60, 1, "fresh")).intervals <= 60


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_legitimate_dht_stays(n: int) -> None:
    outcome = must_heal(DhtOverlay(), Spec(n, 0, "legitimate", closure=60))
    assert outcome.intervals == 0


def test_two_rings_that_know_nothing_of_each_other_become_one() -> None:
    """Each ring is right in itself; only the calls to contacts can join them."""
    trial = Trial(DhtOverlay(), Spec(24, 2, "legitimate", load_schedule("partition")))
    members = [node.dht for node in trial.simulator.nodes.values() if isinstance(node, DhtNode)]
    for half in (members[:12], members[12:]):
        give_places(half, DhtOverlay().space)
    assert trial.violations()
    outcome = trial.run()
    assert outcome.failure is None
