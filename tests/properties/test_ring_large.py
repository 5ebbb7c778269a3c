"""Large skip rings heal as well, from arbitrary states and from every start that has a name."""

from collections.abc import Callable
from math import log2

import pytest

from planaria.core.chance import combination
from planaria.protocols.skipring.inquiry import VERSION_AGE_MAX
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.topic_supervisor import TopicSupervisor
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule
from planaria.simulator.trial import Spec, Trial, must_heal
from ring_lab import RingLab

LARGE = [
    (48, 4, 1000),
    (64, 0, 1000),
    (256, 0, 100),
    (1024, 0, 20),
]  # size, seeds in a test and a campaign
STARTS = ["fresh", "wiped", "permuted", "crash50", "swapped", "corrupt"]


def bound(n: int) -> float:
    """Intervals that any start may take: 2 log n + 10 is what four seeds took, and two to spare."""
    return 2 * log2(n) + 12


@pytest.mark.parametrize(("n", "few", "many"), LARGE)
def test_large_ring_heals_from_arbitrary_states(
    n: int, few: int, many: int, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(few, many)):
        (scheduler,) = combination(seed, SCHEDULERS)
        must_heal(
            RingOverlay(histories=False), Spec(n, seed, "corrupt", scheduler=scheduler, closure=3)
        )


def test_large_ring_with_its_histories_heals_from_arbitrary_states(
    seeds: Callable[[int, int], int],
) -> None:
    for seed in range(seeds(1, 50)):
        must_heal(RingOverlay(), Spec(seeds(64, 256), seed, "corrupt", closure=3))


@pytest.mark.parametrize("start", STARTS)
def test_time_to_heal_grows_like_the_logarithm(
    start: str, seeds: Callable[[int, int], int]
) -> None:
    for n in (16, seeds(64, 4096)):
        outcome = must_heal(RingOverlay(histories=False), Spec(n, 1, start, closure=3))
        assert 0 < outcome.intervals <= bound(n)


def test_one_that_joins_does_not_wake_the_ring() -> None:
    lab = RingLab.legitimate(128)
    lab.run(20)
    quiet = lab.count(15).to_supervisors
    lab.simulator.add(lab.overlay.spawn(500, lab.simulator.rng))
    assert lab.count(15).to_supervisors <= quiet + 20
    assert 500 in lab.recorded


def test_forgotten_ring_is_heard_of_within_a_few_intervals() -> None:
    """Doubt travels ahead of the answers, and not once per request."""
    lab = RingLab.legitimate(256)
    lab.served.database.entries = []
    traffic = lab.count(12)
    assert len(lab.recorded) == 256
    assert traffic.to_supervisors < 4 * 256


@pytest.mark.parametrize("seed", range(3))
def test_nobody_helps_itself_while_the_supervisor_works_off_its_queue(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if n were so large that the queue takes 24 timeouts, which a corrupt wait outlasts.

    One whose last configuration is false as well, in range and long ago, may still be an orphan.
    """
    monkeypatch.setattr(TopicSupervisor, "rate", property(lambda served: 2))
    overlay = RingOverlay(histories=False)
    trial = Trial(overlay, Spec(48, seed, "corrupt"))
    peers = [node for id, node in trial.simulator.nodes.items() if id < 48]
    for one in map(overlay.subscriber, peers):
        one.orphan, one.inquiry.version_age = None, VERSION_AGE_MAX
    long = [id for id in range(48) if overlay.subscriber(peers[id]).inquiry.waiting > 24]
    assert len(long) > 10, "nobody's wait is corrupt"
    for _ in range(30):
        trial.simulator.run_interval()
        assert not [id for id in range(48) if overlay.subscriber(peers[id]).orphan]


@pytest.mark.parametrize("name", [name for name in NAMED if name != "none"])
def test_large_ring_survives_every_named_nemesis(
    name: str, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(1, 20)):
        spec = Spec(seeds(16, 1000), seed, "legitimate", load_schedule(name), closure=3)
        must_heal(RingOverlay(supervisors=2), spec)
