"""Patience is counted in own timeouts: how much faster than others a node's may come.

Delays are counted in intervals, so the two belong together: who is r times as fast waits for 1/r of
the time, and messages may take no longer than `Overlay.delay_max` / r. A message that is lost takes
for ever: no bound is promised while some are, but that it heals.
"""

from random import Random

import pytest

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.delays import INTERVAL, parse_delay
from planaria.simulator.engine import Simulator
from planaria.simulator.links import Loss
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.registry import REGISTERED, find_kind
from ring_lab import RingLab

FASTEST = 4  # times; docs/guarantees.md promises nothing beyond
CALLED = ("dht", "tree", "content")  # a neighbour's next word comes an interval and a delay later


def with_a_fast_node(name: str, start: str, seed: int, delay: str) -> Trial:
    """Four nodes, one of which has four timeouts in an interval; nobody tells of failed sends."""
    options = {"subscriptions": 4} if name == "content" else {}
    overlay = find_kind(name).make(**options)
    longest = overlay.delay_max / FASTEST
    if name in CALLED and delay != "fixed":
        longest -= 1
    ticks = int(longest * INTERVAL)
    trial = Trial(overlay, Spec(4, seed, start, delay=f"{delay}:{ticks}", silent_failures=True))
    fast = sorted(trial.simulator.nodes)[-1 - seed % 2]
    trial.simulator.slowness[fast] = 1 / FASTEST
    return trial


@pytest.mark.parametrize("start", ["legitimate", "corrupt"])
@pytest.mark.parametrize("delay", ["fixed", "uniform:1"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", REGISTERED)
def test_a_node_four_times_as_fast_as_others_harms_nobody_with_delays_a_quarter_as_long(
    name: str, seed: int, delay: str, start: str
) -> None:
    trial = with_a_fast_node(name, start, seed, delay)
    outcome, violation = trial.judge()
    assert violation is None
    assert outcome.legitimate
    assert outcome.intervals == 0 or start == "corrupt"


@pytest.mark.parametrize(("delay", "removed"), [(4.5 / FASTEST, 0), (2, 2)])
def test_a_supervisor_may_be_fast_or_messages_slow_but_not_both(delay: float, removed: int) -> None:
    """Two members are accused, and have ten of its timeouts to answer: 2.5 intervals."""
    overlay = RingOverlay(1)
    simulator = Simulator(2, delay=parse_delay(f"fixed:{int(delay * INTERVAL)}"))
    lab = RingLab(overlay, overlay.legitimate(8, simulator.rng), simulator)
    simulator.slowness[overlay.supervisors[0]] = 1 / FASTEST
    lab.member(1).silence = (9, 9)
    gone = set[int]()
    for _ in range(60):
        lab.run()
        gone |= set(lab.peers) - set(lab.recorded)
    assert len(gone) == removed


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", REGISTERED)
def test_from_any_state_it_heals_while_messages_are_lost_all_the_time(name: str, seed: int) -> None:
    trial = Trial(find_kind(name).make(), Spec(6, seed, "corrupt", silent_failures=True))
    loss = Loss(0.05, Random(seed))
    trial.simulator.rules.append(loss)
    verdicts = list(trial.heal())
    assert loss.affected > 0
    assert verdicts[-trial.overlay.calm :] == [[]] * trial.overlay.calm
