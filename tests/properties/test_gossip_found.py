"""What the hunt found in the gossip overlay, each as the trial that failed and as its cause."""

import pytest

from planaria.protocols.gossip.links import LINK_AGE_MAX
from planaria.protocols.gossip.membership import PATIENCE
from planaria.protocols.gossip.node import GossipNode
from planaria.simulator.gossip import MeasuredGossip
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial, must_heal

# Legitimate for three intervals, then one more with a size, or links, that were wrong.
RELAPSED = [
    (7, 7224, "corrupt", ""),
    (7, 8169, "corrupt", "at 1 for 6 partition groups=2 one_way=yes"),
    (4, 8878, "legitimate", "at 1 corrupt count=1"),
]


def spec(n: int, seed: int, start: str, faults: str) -> Spec:
    schedule = parse_schedule(faults, "found")
    return Spec(n=n, seed=seed, start=start, scheduler="priority", faults=schedule)


@pytest.mark.parametrize(("n", "seed", "start", "faults"), RELAPSED)
def test_trial_that_relapsed_heals(n: int, seed: int, start: str, faults: str) -> None:
    must_heal(MeasuredGossip(), spec(n, seed, start, faults))


def test_what_is_false_and_still_on_its_way_is_seen_before_it_arrives() -> None:
    """Estimates were right for three intervals, and four hashes of the dead in flight."""
    trial = Trial(MeasuredGossip(), spec(*RELAPSED[0]))
    trial.suffer()
    seen = [trial.violations() for _ in trial.heal()]
    estimates = [{it.node for it in found if it.invariant == "size"} for found in seen]
    hidden = [at for at, nodes in enumerate(estimates) if nodes == {None}]
    wrong = [at for at, nodes in enumerate(estimates) if nodes - {None}]
    assert [at for at in hidden if at < max(wrong)]  # all estimates right, and wrong again later
    assert not any(seen[-PATIENCE:])


def shown_after(age: int, seed: int) -> int | None:
    """Links of a legitimate network are said to be `age` old: when does that do harm?"""
    trial = Trial(MeasuredGossip(), Spec(n=8, seed=seed, start="legitimate", scheduler="priority"))
    trial.simulator.run_interval()
    for _, node in sorted(trial.simulator.nodes.items()):
        assert isinstance(node, GossipNode)
        for group in node.groups.values():
            aged = {id: (topic, age) for id, (topic, _) in group.links.contacts.items()}
            group.links.contacts = aged
    assert not trial.violations()
    for interval in range(1, 2 * LINK_AGE_MAX):
        trial.simulator.run_interval()
        if trial.violations():
            return interval
    return None


def test_a_false_age_shows_before_the_overlay_counts_as_legitimate() -> None:
    """No answer comes in time and the links die: after more than 3 intervals, within PATIENCE."""
    ages = range(LINK_AGE_MAX - PATIENCE, LINK_AGE_MAX)
    shown = {shown_after(age, seed) for age in ages for seed in range(3)}
    late = {interval for interval in shown if interval is not None and interval > 3}
    assert late
    assert max(late) < MeasuredGossip.calm
