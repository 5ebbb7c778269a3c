"""Links that acknowledge: what the memory bridges costs nothing, and what it cannot is reported."""

from collections.abc import Callable

import pytest

from content_lab import WatchedWorld, run
from planaria.core.ids import NodeId
from planaria.core.node import Notice
from planaria.protocols.content.overlay import RECONFIGURATION
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec


class Gaps:
    """Who was told that something is missing."""

    kinds = ("effect",)

    def __init__(self) -> None:
        self.counts: dict[NodeId, int] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: object, effect: object) -> None:
        if isinstance(effect, Notice) and effect.kind == "gap":
            self.counts[node] = self.counts.get(node, 0) + 1


@pytest.mark.parametrize(
    "fault",
    [
        "at 2 for 10 loss rate=0.2",
        "at 2 for 10 loss rate=0.6",
        "at 2 for 10 partition groups=2",
        "at 2 for 10 partition one_way=yes",
        "at 2 for 10 duplicate rate=0.5",
        "at 2 for 10 reorder rate=0.5 intervals=3",
        "at 2 for 10 partition groups=3",
    ],
)
def test_loss_and_partitions_of_links_that_stay_lose_nothing(
    fault: str, seeds: Callable[[int, int], int]
) -> None:
    """Every publication counts, those in the middle of it above all."""
    for seed in range(seeds(1, 40)):
        overlay, gaps = WatchedWorld(subscriptions=30), Gaps()
        spec = Spec(9, seed, "legitimate", parse_schedule(fault), closure=RECONFIGURATION)
        outcome, book = run(overlay, spec, [gaps])
        assert outcome.tested
        end = max(it.time for it in book.published.values())
        during = [it for it in book.due(end) if 2 < it.publication.time < 12]
        assert len(during) > 10
        assert book.missed(end) == [], spec.command(overlay)
        assert book.wrong() == [], spec.command(overlay)
        assert gaps.counts == {}


@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_partition_shorter_than_the_memory_loses_nothing_though_trees_fall_apart(
    share: float, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(1, 20)):
        overlay = WatchedWorld(subscriptions=30, brokers=7)
        lasts = int(share * overlay.timing_of(7).memory)
        faults = parse_schedule(f"at 2 for {lasts} partition groups=2")
        spec = Spec(7, seed, "legitimate", faults, closure=RECONFIGURATION)
        _, book = run(overlay, spec)
        end = max(it.time for it in book.published.values())
        assert len([it for it in book.due(end) if it.publication.time < lasts]) > 50
        assert book.missed(end) == [], spec.command(overlay)
        assert book.wrong() == [], spec.command(overlay)


def test_a_partition_longer_than_the_memory_is_reported_to_everybody() -> None:
    overlay, gaps = WatchedWorld(subscriptions=30, brokers=7), Gaps()
    faults = parse_schedule(f"at 2 for {3 * overlay.timing_of(7).memory} partition groups=2")
    spec = Spec(7, 0, "legitimate", faults, closure=RECONFIGURATION)
    _, book = run(overlay, spec, [gaps])
    end = max(it.time for it in book.published.values())
    assert book.missed(end) != []
    assert sorted(gaps.counts) == list(range(7))
    assert max(gaps.counts.values()) <= 7
