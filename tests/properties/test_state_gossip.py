"""The state of a process of the gossip overlay is a value: bytes and back, it goes on unchanged."""

import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.core.chance import stream
from planaria.protocols.gossip.overlay import GossipOverlay
from planaria.protocols.gossip.state import GossipNodeState
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import compose, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from state_lab import goes_on_identically, starts_fresh

EVENTS = "\n".join(f"at {time} publish count=3" for time in (1, 2.9, 5, 8.9, 12, 15.9, 18))


@pytest.mark.parametrize("start", ["corrupt", "legitimate", "fresh"])
def test_any_process_goes_on_from_its_bytes_as_without(
    start: str, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(4, 200)):
        rng = stream(seed, "state", start)
        spec = Spec(rng.randint(1, 11), seed, start, scheduler=rng.choice(SCHEDULERS), closure=6)
        goes_on_identically(GossipOverlay(), spec, at=rng.sample(range(20), 3))


@pytest.mark.parametrize("nemesis", ["churn", "corrupt", "bitflip", "damage"])
def test_so_it_does_while_faults_happen_and_events_travel(nemesis: str) -> None:
    faults = compose(load_schedule(nemesis), parse_schedule(EVENTS))
    goes_on_identically(GossipOverlay(), Spec(9, 4, "legitimate", faults, closure=6), at=[3, 9, 16])


def test_bytes_that_are_no_state_leave_it_fresh() -> None:
    starts_fresh(GossipOverlay(), Spec(5, 3))


@settings(max_examples=30)
@given(st.lists(st.text(), max_size=5), st.integers(0, 99))
def test_no_stored_wish_that_an_application_cannot_have_is_taken(
    names: list[str], seed: int
) -> None:
    overlay = GossipOverlay()
    node, other = overlay.spawn(0, Random(seed)), overlay.spawn(0, Random(seed))
    state = node.state()
    assert isinstance(state, GossipNodeState)
    group = next(iter(node.groups.values()))
    state.subscribed, state.joining = [*names, "a/b"], names
    state.publishing, state.groups = names, dict.fromkeys(names, group)
    other.load(state)
    assert "a/b" in other.subscribed
    for _ in range(3):
        other.on_timeout()
    assert not [name for name in other.groups if re.search("[+#\x00-\x1f\x7f-\x9f]", name)]


def test_judge_asked_twice_says_the_same_and_changes_nothing(
    seeds: Callable[[int, int], int],
) -> None:
    for seed in range(seeds(4, 60)):
        once, twice = (Trial(GossipOverlay(), Spec(2 + seed, seed)) for _ in range(2))
        for _ in range(25):
            found = twice.violations()
            assert found == twice.violations() == once.violations()
            states = twice.simulator.states()
            assert twice.overlay.metrics(states) == twice.overlay.metrics(states)
            once.simulator.run_interval()
            twice.simulator.run_interval()
        assert once.simulator.states() == twice.simulator.states()
