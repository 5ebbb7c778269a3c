"""Patience is counted in own timeouts: how much faster than others a node's may come."""

import pytest

from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.registry import REGISTERED, find_kind

FASTEST = 4  # times; docs/guarantees.md promises nothing beyond


def with_a_fast_node(name: str, start: str, seed: int) -> Trial:
    """Four nodes, one of which has four timeouts in an interval; nobody tells of failed sends."""
    options = {"subscriptions": 4} if name == "content" else {}
    spec = Spec(4, seed, start, silent_failures=True)
    trial = Trial(find_kind(name).make(**options), spec)
    fast = sorted(trial.simulator.nodes)[-1 - seed % 2]
    trial.simulator.slowness[fast] = 1 / FASTEST
    return trial


@pytest.mark.parametrize("start", ["legitimate", "corrupt"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", REGISTERED)
def test_a_node_four_times_as_fast_as_others_harms_nobody(name: str, seed: int, start: str) -> None:
    trial = with_a_fast_node(name, start, seed)
    outcome, violation = trial.judge()
    assert violation is None
    assert outcome.legitimate
    assert outcome.intervals == 0 or start == "corrupt"
