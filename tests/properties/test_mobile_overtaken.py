"""Fair links on which every other message is overtaken: nothing may depend on which ones are.

Found by looking for schedules that no scheduler of a hunt draws; no message takes longer than
`MobileOverlay.delay_max`.
"""

import pytest

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.overlay import unwrap
from planaria.simulator.delays import INTERVAL
from planaria.simulator.links import Rule
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.registry import find_kind


class Overtaken(Rule):
    """Of every two messages of a link one takes `ticks`, the other one tick."""

    def __init__(self, ticks: int, first: int) -> None:
        super().__init__()
        self.ticks, self.first = ticks, first
        self.sent: dict[tuple[NodeId, NodeId], int] = {}

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Count, and let every other one wait."""
        number = self.sent.get((source, target), 0)
        self.sent[source, target] = number + 1
        return [self.ticks if number % 2 == self.first else 1 for _ in delays]

    def delay_max(self, ticks: int) -> int:
        """As long as those wait."""
        return self.ticks


def overtaken(ticks: int, first: int, faults: str = "") -> Trial:
    """Two nodes that are legitimate, and such links between them."""
    overlay = find_kind("mobile").make(graph="path:2")
    schedule = tuple(parse_schedule(faults, "faults"))
    spec = Spec(2, 1, "legitimate", faults=schedule, delay="fixed:50", phases="1,51")
    trial = Trial(overlay, spec)
    trial.simulator.rules.append(Overtaken(ticks, first))
    return trial


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("intervals", [2, 3, 4, 5])
def test_what_is_sent_again_before_it_can_be_acknowledged_is_acknowledged(
    intervals: int, first: int
) -> None:
    """Beats with items were the slow ones, and each had a receipt of its own: none was in time, and
    what did not fit into the first beat was never sent."""
    outcome, violation = overtaken(intervals * INTERVAL, first, "at 1 publish count=200").judge()
    assert violation is None
    assert outcome.metrics["missed"] == 0


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("left", range(16))
def test_a_false_view_ends_though_every_other_word_is_overtaken(left: int, first: int) -> None:
    """Whole words were said every eight beats, so all of them could be among those overtaken."""
    trial = overtaken(2 * INTERVAL, first)
    nodes = trial.simulator.nodes
    layers = [unwrap(node).layers["layer/0"].orientation for node in nodes.values()]
    heights = [it for it in layers if isinstance(it, Heights)]
    low, high = sorted(heights, key=lambda it: it.lid)
    low.height = high.height = 30
    low.views = {high.id: (27, high.lid)}  # it has the turn, and believes that it has not
    high.views = {low.id: (30, low.lid)}
    high.audit = {low.id: left}
    assert [it.invariant for it in trial.violations()] == ["view"]
    assert trial.judge()[1] is None
