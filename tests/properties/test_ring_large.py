"""Large skip rings heal as well, from arbitrary states and from every start that has a name."""

from collections.abc import Callable
from math import log2

import pytest

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule
from planaria.simulator.trial import Spec, must_heal

LARGE = [(64, 5, 1000), (256, 5, 100), (1024, 1, 20)]  # size, seeds in a test and a campaign
INTERVALS_PER_LEVEL = 14  # what any start may take for each doubling of n


@pytest.mark.parametrize(("n", "few", "many"), LARGE)
def test_large_ring_heals_from_arbitrary_states(
    n: int, few: int, many: int, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(few, many)):
        scheduler = SCHEDULERS[seed % len(SCHEDULERS)]
        must_heal(
            RingOverlay(histories=False), Spec(n, seed, "corrupt", scheduler=scheduler, closure=3)
        )


def test_large_ring_with_its_histories_heals_from_arbitrary_states(
    seeds: Callable[[int, int], int],
) -> None:
    for seed in range(seeds(1, 50)):
        must_heal(RingOverlay(), Spec(seeds(64, 256), seed, "corrupt", closure=3))


@pytest.mark.parametrize("start", ["fresh", "wiped", "permuted", "crash50", "swapped"])
def test_time_to_heal_grows_like_the_logarithm(
    start: str, seeds: Callable[[int, int], int]
) -> None:
    for n in (16, 64, seeds(256, 4096)):
        outcome = must_heal(RingOverlay(), Spec(n, 1, start, closure=3))
        assert 0 < outcome.intervals <= INTERVALS_PER_LEVEL * log2(n)


@pytest.mark.parametrize("name", [name for name in NAMED if name != "none"])
def test_large_ring_survives_every_named_nemesis(
    name: str, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(1, 20)):
        spec = Spec(seeds(100, 1000), seed, "legitimate", load_schedule(name), closure=3)
        must_heal(RingOverlay(supervisors=2), spec)
