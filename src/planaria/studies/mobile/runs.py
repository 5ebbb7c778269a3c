"""Runs of the mobile overlay, and what is read from them: turns, spreading, healing, observers."""

from collections.abc import Mapping
from itertools import combinations
from random import Random
from typing import Any

from planaria.core.chance import stream
from planaria.core.errors import InvariantViolation
from planaria.core.ids import NodeId
from planaria.core.node import Unsubscribe
from planaria.lab.mobile import figures as figures
from planaria.lab.mobile.anonymity import best_guess, first_sender, watched
from planaria.lab.mobile.figures import TOPIC, legitimate, publish
from planaria.lab.mobile.variants import EdgeBitsOverlay, oriented
from planaria.protocols.mobile.layer import LayerState
from planaria.protocols.mobile.overlay import sides
from planaria.simulator.checkers import DeliveredOnce
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.graphs import Edge, Graph, complete, grid, parse_graph
from planaria.simulator.worlds.mobile import MovingOverlay
from planaria.simulator.worlds.motion import Motion, Standing
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result

SPREADS = 5  # publications of one run, one after the other
SPREAD = ("links", "rounds", "rounds_max", "sends", "later", "spoken", "delivered", "duplicated")
WATCHED_TIMES = 6  # each honest node publishes


class Scripted(Standing):
    """A graph with links that come up at a given second."""

    def __init__(self, graph: Graph, later: Mapping[Edge, int]) -> None:
        super().__init__(graph, 0)
        self.later = later

    def reaches(self, a: NodeId, b: NodeId, second: int) -> bool:
        """An edge of the graph, or one that has come up by now."""
        appears = self.later.get((min(a, b), max(a, b)))
        return super().reaches(a, b, second) or (appears is not None and appears <= second)

    def near(self, id: NodeId, others: Mapping[NodeId, object], second: int) -> list[NodeId]:
        """All in reach."""
        return Motion.near(self, id, others, second)


class ScriptedOverlay(MovingOverlay):
    """Nodes on a scripted graph."""

    def __init__(self, graph: Graph, later: Mapping[Edge, int], **options: Any) -> None:
        super().__init__(**options)
        self.scripted, self.later = graph, later

    def motion(self, n: int, rng: Random) -> tuple[Motion, int]:
        """The script."""
        return Scripted(self.scripted, self.later), self.scripted.n


def layers(trial: Trial, topic: str = TOPIC) -> dict[NodeId, LayerState]:
    """Everybody's side of one layer."""
    return sides(trial.simulator.states(), topic)


class ScriptedEdgeBits(ScriptedOverlay, EdgeBitsOverlay):
    """Edge bits on a scripted graph."""


SCRIPTED: Mapping[str, type[ScriptedOverlay]] = {
    "heights": ScriptedOverlay,
    "edge-bits": ScriptedEdgeBits,
}


# Section 3.3: whose turn it is


def fairness(cell: Cell) -> Result:
    """Turns over 200 intervals from a legitimate start."""
    graph, orientation = str(cell.parameters["graph"]), str(cell.parameters["orientation"])
    return Result(figures.fairness(graph, orientation, cell.seed))


# Section 4: how news spread


def spread(cell: Cell) -> Result:
    """Publications one after the other, each until all have it; then silence?"""
    asked = cell.parameters
    graph, orientation, echo = str(asked["graph"]), str(asked["orientation"]), bool(asked["echo"])
    found = figures.spread(graph, orientation, cell.seed, publications=SPREADS, echo=echo)
    n = parse_graph(graph, figures.N, Random(0)).n
    return Result({name: found[name] for name in SPREAD} | figures.printed(graph, n))


def relay(cell: Cell) -> Result:
    """p - q - r: q has the news and leaves before its turn, later r links to p."""
    line = Graph(((0, 0), (0.5, 0), (1, 0)), ((0, 1), (1, 2)))
    trial = legitimate(overlay := ScriptedOverlay(line, {(0, 2): 12}), cell.seed)
    publish(trial, 0, b"m")
    book = overlay.world.book
    publication = book.find(b"m")
    while 1 not in book.holders(publication):
        trial.simulator.run(1)
    before = 2 in book.holders(publication)
    trial.simulator.remove(1)
    trial.simulator.run(60 * INTERVAL)
    return Result({"before": before, "got": 2 in book.holders(publication)})


# Notes 2 and 4, Lemma 4: joins, motion, faults, partition and merge


def healing(cell: Cell) -> Result:
    """A trial from any first state, with publications."""
    asked = cell.parameters
    overlay = oriented(str(asked["orientation"]), str(asked["graph"]), publications=4)
    spec = Spec(64, cell.seed, str(asked["start"]), intervals=500)
    outcome = Trial(overlay, spec, [DeliveredOnce()]).run()
    return Result(
        {
            "intervals": outcome.intervals,
            "healed": outcome.failure is None,
            "missed": outcome.metrics["missed"],
            "duplicated": outcome.metrics["duplicated"],
            "longest_wait": outcome.metrics["longest_wait"],
            "silent": int(outcome.metrics["executions_min"] == 0),
            "cyclic": int(not outcome.metrics["acyclic"]),
        }
    )


def merging(cell: Cell) -> Result:
    """Two 4x4 grids apart for 40 intervals, then joined by some links."""
    left, links = grid(4, 4), int(cell.parameters["links"])
    right = [(a + 16, b + 16) for a, b in left.edges]
    places = tuple((x / 2 + side / 2, y) for side in (0, 1) for x, y in left.places)
    bridges = {(4 * row + 3, 16 + 4 * row): 40 for row in range(links)}
    kind = SCRIPTED[str(cell.parameters["orientation"])]
    overlay = kind(Graph(places, (*left.edges, *right)), bridges)
    trial = legitimate(overlay, cell.seed)
    trial.simulator.run(8 * INTERVAL)
    for id, payload in ((0, b"left"), (31, b"right")):
        publish(trial, id, payload)
    trial.simulator.run(31 * INTERVAL)
    silent = sum(not side.turns for side in layers(trial).values())
    book = overlay.world.book
    apart = [len(book.holders(it)) for it in book.published.values()]
    trial.simulator.run(3 * INTERVAL)
    publish(trial, 5, b"after")
    outcome = trial.run()
    return Result(
        {
            "nodes": len(layers(trial)),
            "silent": silent,
            "apart": sum(apart) / 32,
            "intervals": outcome.intervals,
            "healed": outcome.failure is None,
            "missed": 3 * 32 - outcome.metrics["delivered"],
            "duplicated": outcome.metrics["duplicated"],
        }
    )


# Section 2: layers; section 3.1: connection points


def independence(cell: Cell) -> Result:
    """Three layers of one network, from any state: does a message of one move another?"""
    overlay = MovingOverlay("rgg:12:5", publications=6, layers=3)
    trial = Trial(overlay, Spec(12, cell.seed, "corrupt"), [DeliveredOnce()])
    moved, good, starved, members = 0, 0.0, 0, 0
    try:
        outcome = trial.run()
    except InvariantViolation as broken:
        if broken.checker != "independent-layers":
            raise
        moved = 1
    else:
        sides = [layers(trial, topic) for topic in overlay.topics]
        starved = sum(not side.turns for layer in sides for side in layer.values())
        members = sum(map(len, sides))
        good = float(outcome.failure is None)
    return Result({"moved": moved, "specified": good, "starved": starved, "members": members})


def figure_2_1(cell: Cell) -> Result:
    """Processors 1 to 5 in reach of each other; 2 to 5 are in layer 1, 1 and 5 in layer 2."""
    overlay = ScriptedOverlay(complete(6), {}, layers=2)
    trial = Trial(overlay, Spec(6, cell.seed, "fresh"))
    trial.simulator.remove(0)
    member = {1: (1,), 2: (0,), 3: (0,), 4: (0,), 5: (0, 1)}
    for id, inside in member.items():
        for number, topic in enumerate(overlay.topics):
            if number not in inside:
                trial.simulator.command(id, Unsubscribe(topic))
    trial.simulator.run(60 * INTERVAL)
    first, second = (len(overlay.world.layer_graph(topic)[5]) for topic in overlay.topics)
    return Result({"first": first, "second": second})


def connections(cell: Cell) -> Result:
    """Newcomers with f links each: how many sets of `gone` nodes disconnect the rest?"""
    f = int(cell.parameters["f"])
    overlay = ScriptedOverlay(complete(f + 1), {}, connection_points=f)
    trial = legitimate(overlay, cell.seed)
    trial.simulator.run(5 * INTERVAL)
    motion = overlay.world.motion
    assert isinstance(motion, Scripted)
    for id in range(f + 1, 10):
        trial.simulator.add(overlay.spawn(id, trial.simulator.rng))
        motion.edges[id] = dict.fromkeys(range(id))  # in reach of all, not of the two it fell to
        for other in range(id):
            motion.edges[other][id] = None
        trial.simulator.run(10 * INTERVAL)
    graph = overlay.world.layer_graph(TOPIC)
    sets = list(combinations(sorted(graph), int(cell.parameters["gone"])))
    return Result({"sets": len(sets), "cutting": sum(not whole(graph, gone) for gone in sets)})


def whole(graph: Mapping[NodeId, list[NodeId]], gone: tuple[NodeId, ...]) -> bool:
    """Are the others still connected?"""
    left = [id for id in graph if id not in gone]
    reached, queue = {left[0]: None}, [left[0]]
    while queue:
        for peer in graph[queue.pop()]:
            if peer not in reached and peer not in gone:
                reached[peer] = None
                queue.append(peer)
    return len(reached) == len(left)


# Note 5: who published?


def anonymity(cell: Cell) -> Result:
    """How often some who watch name the publisher, having learnt from another run."""
    graph = str(cell.parameters["graph"])
    observers = [int(id) for id in str(cell.parameters["observers"]).split("+")]
    neighbours = parse_graph(graph, 64, Random(0)).neighbours()
    walk, honest = int(cell.parameters["walk"]), len(neighbours) - len(observers)
    seeds = [stream(cell.seed, "watch", half).getrandbits(32) for half in ("learnt", "judged")]
    learnt, judged = (
        figures.sightings(graph, walk, observers, seed, WATCHED_TIMES) for seed in seeds
    )
    return Result(
        {
            "nodes": len(neighbours),
            "blind": 1 / honest,
            "first_sender": first_sender(judged),
            "best_guess": best_guess(learnt, judged),
            "bound": min(1.0, len(watched(neighbours, observers)) / honest),
        }
    )
