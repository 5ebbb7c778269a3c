"""The mobile overlay's state is a value, and its judge has no memory."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.chance import combination, stream
from planaria.core.node import Publish, Subscribe
from planaria.core.overlay import Violation
from planaria.lab.mobile.variants import oriented
from planaria.protocols.mobile.node import LAYERS_MAX, MobileNode, MobileState
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.mobile import MovingOverlay
from state_lab import goes_on_identically, starts_fresh

Seeds = Callable[[int, int], int]

STARTS = ("corrupt", "corrupt", "fresh", "legitimate")
GRAPHS = ("grid:2x3", "path:4", "ring:5", "complete:4", "waypoint:6:5")
WALKS = (0, 0, 3)


def test_nodes_replaced_by_their_bytes_go_on_identically(seeds: Seeds) -> None:
    """Corrupted and other starts, under every fault, at intervals drawn at random."""
    for seed in range(seeds(len(NAMED), 2_000)):
        start, graph, walk, nemesis = combination(seed, STARTS, GRAPHS, WALKS, sorted(NAMED))
        overlay = MovingOverlay(graph, publications=3, layers=1 + seed % 2, moving=6, walk=walk)
        spec = Spec(6, seed, start, load_schedule(nemesis))
        goes_on_identically(overlay, spec, stream(seed, "bytes").sample(range(1, 14), 4))


@pytest.mark.parametrize("orientation", ["three-state", "edge-bits"])
def test_variants_of_the_lab_go_on_identically_too(orientation: str) -> None:
    for seed in range(4):
        overlay = oriented(orientation, "grid:2x3", publications=2)
        faults = parse_schedule("at 4 restart count=2 state=kept\nat 6 restart count=1 state=stale")
        goes_on_identically(overlay, Spec(6, seed, "fresh", faults), (2, 5, 9))


def test_bytes_that_are_no_state_leave_a_node_fresh() -> None:
    starts_fresh(MovingOverlay("path:3", layers=2), Spec(3, 1, "corrupt"))


def test_any_layers_load_and_those_without_a_proper_name_are_left_out() -> None:
    node = MobileNode(1, Random(1))
    node.on_command(Subscribe("good/name"))
    layer = node.state().layers["good/name"]
    for wrong in ("", "a/+/b", "#", "a//b" * 2000, "\0", "good/name\0", "good\nname"):
        state = MobileState({7: None}, {wrong: layer, "good/name": layer})
        again = MobileNode(1, Random(2))
        again.load(state)
        assert [*again.layers] == ["good/name"]
        again.on_timeout()
    again.load(MobileState({}, {f"t/{number}": layer for number in range(LAYERS_MAX + 9)}))
    assert len(again.layers) == LAYERS_MAX


def outcome_of(seed: int, times: int) -> tuple[list[list[Violation]], object]:
    """What is wrong at the end of each interval, and how it ends, for a judge asked so often."""
    overlay = MovingOverlay("grid:2x3", publications=3, layers=2)
    faults = parse_schedule("at 3 corrupt count=2\nat 4 damage count=1\nat 5 restart count=1")
    trial = Trial(overlay, Spec(6, seed, "corrupt", faults))
    found = []
    judge = trial.violations

    def asked() -> list[Violation]:
        answers = [judge() for _ in range(times)]
        assert all(it == answers[0] for it in answers)
        overlay.metrics(trial.simulator.states())
        return answers[0]

    trial.violations = asked  # type: ignore[method-assign]
    trial.suffer()
    for wrong in trial.heal():
        found.append(wrong)
        assert asked() == wrong or any(it.invariant == "delivery" for it in wrong)
    return found, trial.simulator.rng.getstate()


def test_judge_that_is_asked_twice_says_the_same_and_changes_nothing() -> None:
    for seed in range(6):
        assert outcome_of(seed, 1) == outcome_of(seed, 3)


def test_judge_leaves_states_and_world_as_they_are() -> None:
    overlay = MovingOverlay("waypoint:6:5", publications=2, moving=8)
    trial = Trial(overlay, Spec(6, 3, "corrupt"))
    for _ in range(12):
        trial.simulator.run_interval()
        before = {id: node.snapshot() for id, node in trial.simulator.nodes.items()}
        world = (overlay.world.now, overlay.world.measures.metrics(range(6)))
        trial.violations()
        overlay.bound(6, 1.0)
        assert before == {id: node.snapshot() for id, node in trial.simulator.nodes.items()}
        assert world == (overlay.world.now, overlay.world.measures.metrics(range(6)))


def test_a_restart_is_told_and_without_being_told_nothing_is_forgotten() -> None:
    """Bytes and back are no restart: the lid and the links stay; a restart has others."""
    faults = parse_schedule("at 3 restart count=1 state=kept")
    trial = Trial(MovingOverlay("path:3"), Spec(3, 1, "legitimate", faults))
    trial.simulator.run(250)
    before = {id: _lid(node.state()) for id, node in trial.simulator.nodes.items()}
    trial.suffer()
    after = {id: _lid(node.state()) for id, node in trial.simulator.nodes.items()}
    assert sum(before[id] != after[id] for id in before) == 1
    assert trial.run().failure is None
    node = trial.simulator.nodes[0]
    assert node.on_command(Publish("layer/0", b"x"))


def _lid(state: object) -> int:
    assert isinstance(state, MobileState)
    return state.layers["layer/0"].orientation.lid
