"""The supervised skip ring heals from any state and stays healed (Theorems 8 and 13)."""

from collections.abc import Callable

import pytest

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, must_heal

BATCHES = 50  # parametrized so that workers share the seeds
FAULTS = ("", "at 0.5 crash share=0.3", "at 0.5 leave share=0.3")


def arbitrary_spec(seed: int) -> Spec:
    """n = 1..12, a third with crashes, a third with leavers, all schedulers in turn."""
    n = 1 + seed % 12
    faults = FAULTS[seed // 12 % 3] if n > 2 else ""
    scheduler = SCHEDULERS[seed % len(SCHEDULERS)]
    return Spec(n, seed, "corrupt", parse_schedule(faults), scheduler, intervals=150, closure=5)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_theorem_8_converges_from_arbitrary_states(
    batch: int, seeds: Callable[[int, int], int]
) -> None:
    """Arbitrary variables everywhere and arbitrary messages in flight; one supervisor or two."""
    one, two = RingOverlay(), RingOverlay(supervisors=2)
    for seed in range(batch, seeds(5_000, 200_000), BATCHES):
        must_heal(two if seed % 2 else one, arbitrary_spec(seed))
