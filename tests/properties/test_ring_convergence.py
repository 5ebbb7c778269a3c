"""The supervised skip ring heals from any state and stays healed (Theorems 8 and 13)."""

from collections.abc import Callable, Sequence

import pytest

from planaria.core.chance import combination, stream
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, must_heal

BATCHES = 24  # parametrized so that workers share the seeds
FAULTS = ("", "at 0.5 crash share=0.3", "at 0.5 leave share=0.3")
DELAYS = ("uniform:1:50", "fixed:1", "fixed:23", "fixed:50")
SIZES = (1, 2, 3, 4, 6, 9)
LARGER = (*SIZES, 12)  # in a campaign
FEW = len(SIZES) * 3 * len(SCHEDULERS)  # seeds: each combination once


def arbitrary_trial(seed: int, sizes: Sequence[int] = SIZES) -> tuple[RingOverlay, Spec]:
    """The combination whose turn it is (of supervisors all but one may be dead), and everything
    else by chance."""
    rng = stream(seed, "arbitrary ring")
    n, supervisors, scheduler = combination(seed, sizes, range(1, 4), SCHEDULERS)
    overlay = RingOverlay(supervisors, histories=rng.random() < 0.5)
    published = "at 0.3 publish count=3" if overlay.histories else ""
    faults = parse_schedule(f"{published}\n{rng.choice(FAULTS) if n > 2 else ''}")
    delay, silent = rng.choice(DELAYS), rng.random() < 0.5
    spec = Spec(n, seed, "corrupt", faults, scheduler, delay, closure=5, silent_failures=silent)
    return overlay, spec


@pytest.mark.parametrize("batch", range(BATCHES))
def test_theorem_8_converges_from_arbitrary_states(
    batch: int, seeds: Callable[[int, int], int]
) -> None:
    """Arbitrary variables everywhere and arbitrary messages in flight."""
    sizes = LARGER[: seeds(len(SIZES), len(LARGER))]
    for seed in range(batch, seeds(FEW, 200_000), BATCHES):
        must_heal(*arbitrary_trial(seed, sizes))


def test_every_combination_is_tried() -> None:
    """Parameters that share a factor leave half of the cases out, in any number of seeds."""
    tried = [arbitrary_trial(seed) for seed in range(FEW)]
    drawn = {(it.n, len(overlay.supervisors), it.scheduler) for overlay, it in tried}
    assert len(drawn) == FEW
    rest = {(it.delay, it.silent_failures, overlay.histories) for overlay, it in tried}
    assert len(rest) == len(DELAYS) * 2 * 2
