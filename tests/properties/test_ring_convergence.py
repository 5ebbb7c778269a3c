"""The supervised skip ring heals from any state and stays healed (Theorems 8 and 13)."""

from collections.abc import Callable
from math import prod

import pytest

from planaria.core.chance import combination
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, must_heal

BATCHES = 24  # parametrized so that workers share the seeds
FAULTS = ("", "at 0.5 crash share=0.3", "at 0.5 leave share=0.3")
AXES = (range(1, 13), (1, 2), SCHEDULERS, FAULTS)
TWICE = 2 * prod(map(len, AXES))  # every combination, from two arbitrary states


def arbitrary(seed: int) -> tuple[RingOverlay, Spec]:
    """A third with crashes, a third with leavers; publications meanwhile in all of them."""
    n, supervisors, scheduler, faults = combination(seed, *AXES)
    schedule = parse_schedule(f"at 0.3 publish count=3\n{faults if n > 2 else ''}")
    spec = Spec(n, seed, "corrupt", schedule, scheduler, closure=5)
    return RingOverlay(supervisors=supervisors), spec


@pytest.mark.parametrize("batch", range(BATCHES))
def test_theorem_8_converges_from_arbitrary_states(
    batch: int, seeds: Callable[[int, int], int]
) -> None:
    """Arbitrary variables everywhere and arbitrary messages in flight; one supervisor or two."""
    for seed in range(batch, seeds(TWICE, 200_000), BATCHES):
        must_heal(*arbitrary(seed))
