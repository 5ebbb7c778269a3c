"""The mobile overlay heals: from any state, after any fault, while all move, split and merge."""

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest

from planaria.core.chance import combination
from planaria.core.errors import UsageError
from planaria.lab.mobile.three_state import ThreeState
from planaria.lab.mobile.variants import oriented
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.overlay import unwrap
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial, must_heal
from planaria.simulator.worlds.graphs import component
from planaria.simulator.worlds.mobile import MovingOverlay
from planaria.simulator.worlds.motion import Trace, Waypoint

Seeds = Callable[[int, int], int]

GRAPHS = ("grid:3x3", "ring:7", "path:6", "star:6", "complete:5", "rgg:14:5", "tree:12")


def test_heights_heal_from_any_state_under_every_scheduler(seeds: Seeds) -> None:
    """Any heights, views, links, buffers and messages in flight (what must hold, 2)."""
    for seed in range(seeds(35, 2000)):
        graph, scheduler = combination(seed, GRAPHS, SCHEDULERS)
        overlay = MovingOverlay(graph, publications=1)
        spec = Spec(9, seed, "corrupt", scheduler=scheduler)
        outcome = must_heal(overlay, spec)
        assert outcome.metrics["acyclic"]
        assert outcome.metrics["missed"] == 0


def test_three_states_heal_on_trees_from_any_values(seeds: Seeds) -> None:
    for seed in range(seeds(10, 500)):
        overlay = oriented("three-state", "tree:12")
        trial = Trial(overlay, Spec(12, seed, "legitimate"))
        rng = Random(seed)
        for node in trial.simulator.nodes.values():
            for layer in unwrap(node).layers.values():
                assert isinstance(layer.orientation, ThreeState)
                layer.orientation.val = rng.randrange(3)
        outcome = trial.run()
        assert outcome.failure is None
        assert outcome.metrics["acyclic"]


@pytest.mark.parametrize("orientation", ["heights", "edge-bits"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_all_join_at_once(graph: str, orientation: str) -> None:
    overlay = oriented(orientation, graph, publications=2)
    assert must_heal(overlay, Spec(9, 5, "fresh")).metrics["acyclic"]


# Mobile nodes read no clock, so a skewed one does nothing to them.
@pytest.mark.parametrize("nemesis", sorted(set(NAMED) - {"none", "skew"}))
def test_heights_heal_after(nemesis: str, seeds: Seeds) -> None:
    for seed in range(seeds(1, 100)):
        overlay = MovingOverlay("rgg:16:6", publications=3)
        faults = load_schedule(nemesis)
        outcome = must_heal(overlay, Spec(16, seed, "legitimate", faults=faults))
        assert outcome.metrics["acyclic"]


@pytest.mark.parametrize("orientation", ["heights", "edge-bits"])
def test_nobody_misses_anything_while_all_move(orientation: str, seeds: Seeds) -> None:
    for seed in range(seeds(3, 100)):
        overlay = oriented(orientation, "waypoint:20", publications=5, moving=40)
        outcome = must_heal(overlay, Spec(20, seed, "fresh"))
        assert outcome.metrics["acyclic"]
        assert outcome.metrics["delivered"] == 100
        assert outcome.metrics["missed"] == outcome.metrics["duplicated"] == 0


def test_network_that_moves_is_cut_in_parts_and_merges_again() -> None:
    """The motion of the test above does what it is there for."""
    parts = []
    for second in range(40):
        overlay = MovingOverlay("waypoint:20", moving=40)
        overlay.fresh(20, Random(0))
        overlay.world.now = second
        graph = overlay.reach(overlay.world.hosts)
        parts.append(len(component(graph, 0)))
    assert min(parts) < 20
    assert any(before < after for before, after in pairwise(parts))


def test_churn_while_all_move() -> None:
    churn = parse_schedule(
        "at 3 join count=3\nat 8 crash count=2\nat 12 restart count=2 state=none\n"
        "at 15 leave count=1\nat 20 restart count=2 state=stale\nat 25 corrupt count=3"
    )
    for seed in range(2):
        overlay = MovingOverlay("waypoint:20", publications=6, moving=40)
        spec = Spec(20, seed, "fresh", faults=churn)
        assert must_heal(overlay, spec).metrics["acyclic"]


def test_three_states_never_close_a_cycle_of_links(seeds: Seeds) -> None:
    """Nodes that ask for links while they are asked (found by test: complete:9, seed 7)."""
    for seed in range(seeds(12, 1000)):
        overlay = oriented("three-state", "complete:9", publications=1)
        faults = parse_schedule("at 9 join count=2\nat 20 crash count=3\nat 24 restart count=2")
        (scheduler,) = combination(seed, SCHEDULERS)
        trial = Trial(overlay, Spec(9, seed, "fresh", scheduler=scheduler, faults=faults))
        outcome = trial.run()
        assert outcome.failure is None
        figures = outcome.metrics
        assert figures["links"] == figures["nodes"] - figures["parts"]


def test_three_states_leave_a_broken_tree_in_parts_and_heights_do_not() -> None:
    """Whether a peer in reach is in another part or in one's own no node can tell."""
    parts: dict[str, list[int]] = {"three-state": [], "heights": []}
    for orientation, found in parts.items():
        for seed in range(5):
            spec = Spec(9, seed, "fresh", faults=parse_schedule("at 20 crash count=3"))
            figures = must_heal(oriented(orientation, "complete:9"), spec).metrics
            reported = (
                figures.get("orientation", "heights"),
                "stays in parts" in figures.get("safe_on", ""),
            )
            assert reported == (orientation, orientation == "three-state")
            found.append(figures["parts"])
    assert max(parts["three-state"]) > 1
    assert max(parts["heights"]) == 1


def test_layers_are_independent() -> None:
    """Theorem 1: hosts check after every message that no other layer moved."""
    overlay = MovingOverlay("grid:3x3", publications=4, layers=3)
    must_heal(overlay, Spec(9, 1, "corrupt"))


def test_nobody_starves_and_turns_are_fair() -> None:
    """On a level graph a wait is at most the longest way down to a sink, an interval a step."""
    for graph in GRAPHS:
        overlay = MovingOverlay(graph)
        trial = Trial(overlay, Spec(9, 2, "legitimate"))
        trial.simulator.run(20_000)
        measures = overlay.world.measures
        graph_now = overlay.reach(trial.simulator.nodes)
        assert measures.longest_wait <= len(graph_now) + 2
        for id, peers in graph_now.items():
            assert all(abs(measures.turns[id] - measures.turns[peer]) <= 1 for peer in peers)


def test_identifiers_in_order_leave_a_ring_one_sink_that_wanders() -> None:
    speaking = []
    for ordered in (True, False):
        overlay = MovingOverlay("ring:16")
        trial = Trial(overlay, Spec(16, 1, "legitimate"))
        for id, node in trial.simulator.nodes.items() if ordered else ():
            orientation = unwrap(node).layers["layer/0"].orientation
            assert isinstance(orientation, Heights)
            orientation.lid, orientation.views = id, {p: (0, p) for p in orientation.peers()}
        trial.simulator.run(6000)
        speaking.append(overlay.metrics(trial.simulator.states())["concurrency"])
    assert speaking[0] < 2 < 5 < speaking[1]


def test_waypoint_stands_still_connected_and_repeats_itself() -> None:
    one, two = (Waypoint(15, 0.3, 7, 20) for _ in range(2))
    assert one.until >= 20
    for id in range(15):
        assert [one.place(id, s) for s in (0, 5, 400)] == [two.place(id, s) for s in (0, 5, 400)]
        assert one.place(id, one.until) == one.place(id, one.until + 50)
        x, y = one.place(id, 9)
        u, v = one.place(id, 10)
        assert (x - u) ** 2 + (y - v) ** 2 <= 0.05**2 + 1e-12


def test_trace_moves_along_straight_lines() -> None:
    trace = Trace("range,0.3\n0,0,0.0,0.0  # start\n0,10,1.0,0.0\n1,0,0.5,0.0\n")
    assert trace.place(0, 5) == (0.5, 0.0)
    assert trace.place(0, 99) == (1.0, 0.0)
    assert [trace.reaches(0, 1, second) for second in (0, 5, 10)] == [False, True, False]
    wrongs = ["0,zero,1,1", "0,0,1", "1,0,0,0", "", "0,0,nan,0", "0,0,2,0", "0,-1,0,0", "range,inf"]
    for wrong in [*wrongs, "range,-1\n0,0,0,0", f"0,{10**9},0,0"]:
        with pytest.raises(UsageError, match="trace"):
            Trace(wrong)


@pytest.mark.parametrize(
    "graph",
    "foo grid:0x3 grid:3 grid:3x3x3 grid:3x3:1 ring:x ring:9:2 path:-1 path:0 cube:8 rgg:9:0 "
    "rgg:9:-1 rgg:9:nan rgg:9:inf rgg:9:8:7 star:999 complete:100000 path:100001 waypoint:0 "
    "waypoint:-1 waypoint:x waypoint:9:-3 waypoint:9:nan waypoint:9:6:5 waypoint:2000 "
    "trace:/nowhere trace: :".split(),
)
def test_graph_that_is_none_is_refused(graph: str) -> None:
    with pytest.raises(UsageError, match="graph"):
        MovingOverlay(graph).fresh(9, Random(0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("publications", -1),
        ("layers", 0),
        ("layers", 65),
        ("moving", -1),
        ("moving", 10**6),
        ("connection_points", -1),
        ("padding", -1),
        ("walk", -1),
        ("walk", 17),
    ],
)
def test_option_out_of_range_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"{name.replace('_', '-')} {value}: "):
        MovingOverlay("path:2", **{name: value})  # type: ignore[arg-type]


def test_nobody_alive_publishes_nothing() -> None:
    for faults in ("at 1 crash share=1\nat 2 publish count=2", "at 1 leave share=1\nat 70 publish"):
        spec = Spec(2, 1, "legitimate", faults=parse_schedule(faults))
        outcome = Trial(MovingOverlay("path:2"), spec).run()
        assert outcome.failure is None
        assert outcome.metrics["publications"] == 0


def test_same_seed_gives_the_same_run_under_every_hash_seed() -> None:
    command = [sys.executable, "-m", "planaria", "sim", "mobile", "--graph", "waypoint:12:8"]
    command += ["--publications", "3", "--moving", "15", "--seed", "4", "--json"]
    outputs = [
        subprocess.run(
            command, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "7")
    ]
    assert outputs[0] == outputs[1] == outputs[2]
    assert '"acyclic": true' in outputs[0]


@pytest.mark.parametrize("scheduler", ["priority", "constant"])
def test_bound_leaves_time_for_what_waits_to_be_sent(scheduler: str) -> None:
    """A link takes 64 publications at a time; the next ones go once these are acknowledged."""
    faults = parse_schedule("at 1 publish count=2000")
    must_heal(MovingOverlay(), Spec(2, 1, "legitimate", faults, scheduler))
