"""Figures of the mobile overlay, one run each: fairness, cost, anonymity. Pure functions of a seed.

The benchmark makes its tables of these; the report has runs of its own, in `planaria.studies`.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Node, Publish
from planaria.lab.mobile.anonymity import Link, walk_ends
from planaria.lab.mobile.attack import Log, Seen, Watch, by_link, by_turns, floods
from planaria.protocols.mobile.graphs import parse_graph
from planaria.protocols.mobile.messages import STEM, Beat
from planaria.protocols.mobile.overlay import unwrap
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.mobile import MovingOverlay

N = 64  # nodes of a graph whose name has no size
SETTLE = 10  # intervals before something is published
PAST = 40  # intervals of turns before the first publication, and after the last
SILENCE = 20  # intervals after everybody has it, in which nothing more may be sent


def fairness(
    graph: str, orientation: str = "heights", seed: int = 0, intervals: int = 200
) -> dict[str, Any]:
    """Executions per node and round, longest wait, concurrency, from a legitimate start."""
    overlay, trial = _started(graph, orientation, seed)
    trial.simulator.run(intervals * INTERVAL)
    figures = overlay.metrics(trial.simulator.states())
    names = ("nodes", "links", "executions_per_round", "executions_max_min_ratio", "longest_wait")
    return {name: figures[name] for name in (*names, "concurrency")}


def cost(
    graph: str, orientation: str = "heights", seed: int = 0, *, echo: bool = False, walk: int = 0
) -> dict[str, Any]:
    """One publication by a random node: rounds until all have it, copies sent until silence."""
    overlay, trial = _started(graph, orientation, seed, echo=echo, walk=walk)
    simulator, books = trial.simulator, overlay.world.books
    simulator.run(SETTLE * INTERVAL)
    publisher = stream(seed, "publisher").choice(sorted(simulator.nodes))
    simulator.command(publisher, Publish(overlay.topics[0], b"x"))
    while len(books.publications[b"x"].arrivals) < len(simulator.nodes):
        simulator.run_interval()
    simulator.run(SILENCE * INTERVAL)
    figures = overlay.metrics(simulator.states())
    names = ("nodes", "links", "rounds", "sends", "handed_over", "duplicated")
    return {name: figures[name] for name in names}


def flooding(graph: str, seed: int = 0) -> int:
    """Copies that plain flooding sends: everybody to all neighbours but the one it came from."""
    drawn = parse_graph(graph, N, Random(seed))
    return 2 * len(drawn.edges) - drawn.n + 1


def turns(graph: str, orientation: str = "heights", seed: int = 0, intervals: int = 200) -> Log:
    """Who had a turn, in order, from a legitimate start."""
    overlay, trial = _started(graph, orientation, seed)
    trial.simulator.run(intervals * INTERVAL)
    return _log(overlay, trial)


class Eyes:
    """What observers are sent of publications, as the attack sees it; and what is handed to them.

    Neighbours alternate, so when a beat arrives its sender has had no further turn.
    """

    kinds = ("deliver",)

    def __init__(self, observers: Sequence[NodeId], nodes: Mapping[NodeId, Node]) -> None:
        self.observers, self.nodes = observers, nodes
        self.seen: dict[bytes, Seen] = {}
        self.handed: dict[bytes, Link] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Look at every item that comes to an observer from somebody else."""
        beat = entry.message
        if node not in self.observers or not isinstance(beat, Beat):
            return
        if beat.sender in self.observers:
            return
        turn = unwrap(self.nodes[beat.sender]).layers[beat.layer].turns
        for item in beat.items:
            if item.generation == STEM:
                self.handed.setdefault(item.payload, (beat.sender, node))
            else:
                before = self.seen.get(item.payload, ())
                self.seen[item.payload] = (*before, (beat.sender, turn, node))


def guesses(
    graph: str, observers: Sequence[NodeId], walk: int, seed: int, publications: int = 100
) -> list[bool]:
    """Was the publisher named, of publications by random nodes at random times, by observers that
    know everybody's turns?"""
    overlay, trial = _started(graph, "heights", seed, walk=walk)
    simulator, rng = trial.simulator, stream(seed, "publishers")
    eyes = Eyes(observers, simulator.nodes)
    simulator.watch(eyes)
    simulator.run(PAST * INTERVAL)
    honest = [id for id in sorted(simulator.nodes) if id not in observers]
    publishers = {b"%d" % number: rng.choice(honest) for number in range(publications)}
    for payload, publisher in publishers.items():
        simulator.command(publisher, Publish(overlay.topics[0], payload))
        simulator.run(rng.randrange(2 * INTERVAL))
    simulator.run(PAST * INTERVAL)
    log = _log(overlay, trial)
    ends = walk_ends(log.neighbours, observers, walk)
    known = floods(log, Watch(tuple(observers)), (0.0, 1.0))
    by_look, by_hand = by_turns(known, ends), by_link(ends)
    return [
        publisher
        == (
            by_hand[eyes.handed[payload]]
            if payload in eyes.handed
            else by_look(eyes.seen.get(payload, ()))
        )
        for payload, publisher in publishers.items()
    ]


def _log(overlay: MovingOverlay, trial: Trial) -> Log:
    turned = overlay.world.books.turned
    order = [id for second in sorted(turned) for id in turned[second]]
    return Log(order, overlay.world.graph(trial.simulator.nodes))


def _started(
    graph: str, orientation: str, seed: int, *, echo: bool = False, walk: int = 0
) -> tuple[MovingOverlay, Trial]:
    overlay = MovingOverlay(graph, orientation, echo=echo, walk=walk)
    return overlay, Trial(overlay, Spec(N, seed, "legitimate"))
