"""Figures of the mobile overlay, one run each: fairness, spreading, anonymity.

Pure functions of a seed. The benchmark and the study of the paper both make their tables of these.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Node, Publish
from planaria.core.workload import Ask
from planaria.lab.mobile.anonymity import Link, Sighting, walk_ends
from planaria.lab.mobile.attack import Log, Seen, Watch, by_link, by_turns, floods
from planaria.lab.mobile.variants import oriented
from planaria.literal.mobile import graph_of, table_4
from planaria.protocols.mobile.messages import STEM, Beat
from planaria.protocols.mobile.overlay import sides, unwrap
from planaria.simulator.checkers import DeliveredOnce
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.graphs import parse_graph
from planaria.simulator.worlds.mobile import MovingOverlay

N = 64  # nodes of a graph whose name has no size
TOPIC = "layer/0"
FAIR_INTERVALS = 200
SETTLE = 10  # intervals before something is published
SPREAD_INTERVALS_MAX = 2_000  # a publication that takes longer is one that never comes
SILENCE = 20  # intervals, at least, after everybody has it, in which nothing more may be sent
PRINTED_ROUNDS = 40  # of Table 4 as printed, which would go on for ever
PAST = 40  # intervals of turns before the first publication, and after the last
SIGHTED = 100  # intervals after which a publication has come to an observer, walk and all

Figures = dict[str, Any]


def legitimate(overlay: MovingOverlay, seed: int, *watchers: Any) -> Trial:
    """A trial from a legitimate start in which nothing may be delivered twice."""
    return Trial(overlay, Spec(N, seed, "legitimate"), [DeliveredOnce(), *watchers])


def publish(trial: Trial, node: NodeId, payload: bytes) -> None:
    """Let the application at `node` publish now."""
    trial.applications.plan([Ask(trial.time, Publish(TOPIC, payload), node)])
    trial.applications.run(0)


def fairness(graph: str, orientation: str = "heights", seed: int = 0) -> Figures:
    """Turns over 200 intervals from a legitimate start: how many, how long apart, who had none.

    `apart` is by how many turns two neighbours ever differed, `cyclic` in how many intervals links
    formed a cycle.
    """
    overlay = oriented(orientation, graph)
    trial = legitimate(overlay, seed)
    apart, cycles = 0, 0
    for _ in range(FAIR_INTERVALS):
        trial.simulator.run_interval()
        layer = sides(trial.simulator.states(), TOPIC)
        gaps = [
            abs(side.turns - layer[peer].turns)
            for side in layer.values()
            for peer in overlay.judge.neighbours(side)
        ]
        apart, cycles = max([apart, *gaps]), cycles + bool(overlay.judge.cyclic(layer))
    figures = overlay.metrics(trial.simulator.states())
    turns = [side.turns for side in layer.values()]
    return {
        "nodes": len(turns),
        "executions": figures["executions_per_round"],
        "ratio": max(turns) / max(1, min(turns)),
        "longest_wait": figures["longest_wait"],
        "concurrency": figures["concurrency"],
        "silent": sum(not count for count in turns),
        "apart": apart,
        "cyclic": cycles,
    }


def spread(
    graph: str,
    orientation: str = "heights",
    seed: int = 0,
    *,
    publications: int = 1,
    echo: bool = False,
    walk: int = 0,
) -> Figures:
    """Publications one after the other, each until all have it; then silence?

    `sends` are copies of one publication, `later` those sent when there should be silence, `spoken`
    the share of publications that left their publisher.
    """
    overlay = oriented(orientation, graph, echo=echo, walk=walk)
    trial = legitimate(overlay, seed)
    simulator, book, measures = trial.simulator, overlay.world.book, overlay.world.measures
    simulator.run(SETTLE * INTERVAL)
    rng, n, rounds = stream(seed, "publisher"), len(simulator.nodes), []
    for number in range(publications):
        publisher = rng.choice(sorted(simulator.nodes))
        publish(trial, publisher, b"%d" % number)
        publication, began = book.find(b"%d" % number), simulator.interval
        while len(book.holders(publication)) < n:
            if simulator.interval - began >= SPREAD_INTERVALS_MAX:
                break
            simulator.run_interval()
        rounds.append(book.rounds_of(publication))
    degrees = [len(peers) for peers in overlay.world.layer_graph(TOPIC).values()]
    turn = max(SILENCE, 1 + max(degrees)) * INTERVAL  # of neighbours one speaks at a time
    simulator.run(turn)
    copies = measures.copies
    simulator.run(turn)
    reached = [len(book.holders(it)) for it in book.published.values()]
    return {
        "links": sum(degrees) // 2,
        "rounds": sum(rounds) / publications,
        "rounds_max": max(rounds),
        "sends": copies / publications,
        "later": measures.copies - copies,
        "handed_over": measures.handed_over / publications,
        "spoken": sum(count > 1 for count in reached) / publications,
        "delivered": sum(reached) / (publications * n),
        "duplicated": sum(it.kind == "twice" for it in book.breaches),
    }


def printed(graph: str, n: int = N) -> Figures:
    """Copies of Table 4 as printed, with sets, in 40 rounds; and what plain flooding sends."""
    drawn = parse_graph(graph, n, Random(0))
    lids = tuple(Random(1).sample(range(drawn.n), drawn.n))
    copies = table_4(graph_of(drawn.n, drawn.edges), lids, 0, PRINTED_ROUNDS, lists=False)
    return {"table_4": sum(copies), "flooding": 2 * len(drawn.edges) - drawn.n + 1}


# Who published?


class Eyes:
    """What observers are sent of publications, as the attack sees it; and what is handed to them.

    Neighbours alternate, so when a beat arrives its sender has had no further turn.
    """

    kinds = ("deliver",)

    def __init__(self, observers: Sequence[NodeId], nodes: Mapping[NodeId, Node]) -> None:
        self.observers, self.nodes = observers, nodes
        self.first: dict[bytes, Link] = {}  # by payload, as all of these
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
            self.first.setdefault(item.payload, (beat.sender, node))
            if item.generation == STEM:
                self.handed.setdefault(item.payload, (beat.sender, node))
            else:
                before = self.seen.get(item.payload, ())
                self.seen[item.payload] = (*before, (beat.sender, turn, node))


def sightings(
    graph: str, walk: int, observers: Sequence[NodeId], seed: int, times: int
) -> list[Sighting]:
    """Every honest node publishes so many times, in random order: who brought each first?"""
    trial = legitimate(MovingOverlay(graph, walk=walk), seed)
    simulator, rng = trial.simulator, stream(seed, "publishers")
    eyes = Eyes(observers, simulator.nodes)
    simulator.watch(eyes)
    publishers = [id for id in sorted(simulator.nodes) if id not in observers] * times
    rng.shuffle(publishers)
    tick = simulator.tick
    for number, publisher in enumerate(publishers):
        ask = Ask(tick / INTERVAL, Publish(TOPIC, b"%d" % number), publisher)
        trial.applications.plan([ask])
        tick += rng.randrange(INTERVAL // 2, 3 * INTERVAL // 2)
    trial.applications.run(tick - simulator.tick + SIGHTED * INTERVAL)
    return [Sighting(eyes.first.get(b"%d" % it), id) for it, id in enumerate(publishers)]


def turns(graph: str, seed: int = 0, intervals: int = 200) -> Log:
    """Who had a turn, in order, from a legitimate start."""
    overlay = MovingOverlay(graph)
    legitimate(overlay, seed).simulator.run(intervals * INTERVAL)
    return log_of(overlay)


def log_of(overlay: MovingOverlay) -> Log:
    """Who had a turn so far, in order, and who is in reach of whom."""
    world = overlay.world
    turned = world.measures.turned
    order = [id for second in sorted(turned) for id in turned[second]]
    return Log(order, overlay.reach(world.alive))


def guesses(
    graph: str, observers: Sequence[NodeId], walk: int, seed: int, publications: int = 100
) -> list[bool]:
    """Was the publisher named, of publications by random nodes at random times, by observers that
    know everybody's turns?"""
    overlay = MovingOverlay(graph, walk=walk)
    trial = legitimate(overlay, seed)
    simulator, rng = trial.simulator, stream(seed, "publishers")
    eyes = Eyes(observers, simulator.nodes)
    simulator.watch(eyes)
    honest = [id for id in sorted(simulator.nodes) if id not in observers]
    publishers = {b"%d" % number: rng.choice(honest) for number in range(publications)}
    tick = PAST * INTERVAL
    for payload, publisher in publishers.items():
        trial.applications.plan([Ask(tick / INTERVAL, Publish(TOPIC, payload), publisher)])
        tick += rng.randrange(2 * INTERVAL)
    trial.applications.run(tick + PAST * INTERVAL)
    log = log_of(overlay)
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
