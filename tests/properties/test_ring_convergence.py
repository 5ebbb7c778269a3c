"""The supervised skip ring heals from any state and stays healed (Theorems 8 and 13)."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial

BATCHES = 24  # parametrized so that workers share the seeds
FAULTS = ("", "at 0.5 crash share=0.3", "at 0.5 leave share=0.3")
DELAYS = ("uniform:1:50", "fixed:1", "fixed:23", "fixed:50")


def arbitrary_trial(seed: int) -> Trial:
    """n = 1..12, one supervisor to three, all but one maybe dead, and everything else by chance."""
    rng = stream(seed, "arbitrary ring")
    n = rng.randint(1, 12)
    overlay = RingOverlay(rng.randint(1, 3), histories=rng.random() < 0.5)
    published = "at 0.3 publish count=3" if overlay.histories else ""
    faults = parse_schedule(f"{published}\n{rng.choice(FAULTS) if n > 2 else ''}")
    scheduler, delay, silent = rng.choice(SCHEDULERS), rng.choice(DELAYS), rng.random() < 0.5
    spec = Spec(n, seed, "corrupt", faults, scheduler, delay, closure=5, silent_failures=silent)
    return Trial(overlay, spec)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_theorem_8_converges_from_arbitrary_states(
    batch: int, seeds: Callable[[int, int], int]
) -> None:
    """Arbitrary variables everywhere and arbitrary messages in flight."""
    for seed in range(batch, seeds(864, 200_000), BATCHES):
        trial = arbitrary_trial(seed)
        outcome = trial.run()
        if outcome.failure:
            raise trial.violation(*outcome.failure)
        assert not outcome.ineffective, seed


def test_campaign_tries_every_combination() -> None:
    """Parameters that share a factor leave half of the cases out, in any number of seeds."""
    tried = set()
    for seed in range(4_000):
        trial = arbitrary_trial(seed)
        assert isinstance(trial.overlay, RingOverlay)
        spec, supervisors = trial.spec, len(trial.overlay.supervisors)
        tried.add((spec.n, supervisors, spec.scheduler))
    assert len(tried) == 12 * 3 * len(SCHEDULERS)
