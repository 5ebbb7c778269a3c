"""A legitimate skip ring stays so (Theorem 13), for thousands of intervals and many sizes."""

from collections.abc import Callable

import pytest

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.trial import Spec, Trial
from ring_lab import RingLab

SMALL = range(1, 41)
LARGE = [63, 64, 65, 127, 128, 129, 256]


@pytest.mark.parametrize("n", [*SMALL, *LARGE])
def test_legitimate_ring_stays_legitimate(n: int, seeds: Callable[[int, int], int]) -> None:
    """In all about 2,600 intervals, each judged at its end with everything in flight."""
    intervals = seeds(60 if n <= 40 else 20, 5_000)
    lab = RingLab.legitimate(n, seed=n)
    assert not lab.violations()
    for _ in range(intervals):
        lab.run()
        assert not lab.violations()
    assert lab.simulator.delivered >= intervals, "nothing was ever said"


@pytest.mark.parametrize("scheduler", SCHEDULERS[1:])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 33])
def test_legitimate_ring_survives_unkind_schedulers(
    n: int, scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    """Messages late up to the bound of fairness are no reason to doubt anybody."""
    spec = Spec(n, n, "legitimate", scheduler=scheduler, closure=seeds(40, 2_000))
    assert Trial(RingOverlay(), spec).run().failure is None


@pytest.mark.parametrize("drift", [0.1, 0.3])
def test_legitimate_ring_survives_clocks_that_drift(drift: float) -> None:
    spec = Spec(20, 1, "legitimate", drift=drift, delay="late:1:50", closure=100)
    assert Trial(RingOverlay(), spec).run().failure is None
