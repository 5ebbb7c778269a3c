"""Nodes that move: hosts that sense who is in radio range, and the overlay that they form.

A host is the simulated device around a node: at each timeout it looks who is in range, tells the
node by LinkUp and LinkDown, and loses what is sent to somebody out of range. The world is what all
hosts share: where everybody is and what time it is, as the driver's clock has it.
"""

from collections.abc import Iterable, Mapping
from math import ceil
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Effect,
    Effects,
    LinkDown,
    LinkUp,
    Node,
    Send,
    Subscribe,
)
from planaria.core.overlay import Channel, Start, Violation
from planaria.core.state import State
from planaria.protocols.mobile.dissemination import EMBARGO
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.layer import ASK_MAX, REFUSED, SILENCE_MAX, Layer
from planaria.protocols.mobile.link import Link
from planaria.protocols.mobile.messages import ITEMS_MAX, MobileMessage
from planaria.protocols.mobile.node import MobileNode, MobileState
from planaria.protocols.mobile.overlay import MobileOverlay, members, unwrap
from planaria.protocols.registry import PRODUCTS
from planaria.simulator.checkers import SafetyBroken
from planaria.simulator.engine import TICKS_PER_SECOND, Entry
from planaria.simulator.pictures.mobile import animation
from planaria.simulator.trial import Trial
from planaria.simulator.worlds.graphs import (
    Graph,
    Point,
    diameter,
    parse_graph,
    parts,
    radio_range,
    size_and_degree,
)
from planaria.simulator.worlds.mobile_book import ReachBook
from planaria.simulator.worlds.mobile_measures import Measures, Picture
from planaria.simulator.worlds.motion import (
    SECONDS_MAX,
    WALKERS_MAX,
    Motion,
    Standing,
    Trace,
    Waypoint,
)
from planaria.simulator.worlds.registry import Kind, Option, Output

SILENT_MAX = 20  # seconds without a sign until a device counts as gone
# Intervals until a device notices that another one is gone, a layer that a neighbour is, and that
# one who was asked will not answer, one after the other, and until that one is asked again.
PATIENCE = 24 + SILENCE_MAX + ASK_MAX + REFUSED


class World:
    """Time, places, hosts. Watches the run: its clock is the driver's."""

    kinds = ("start", "stop", "timeout")

    def __init__(self, overlay: "MovingOverlay", motion: Motion) -> None:
        self.overlay, self.motion = overlay, motion
        self.now = 0
        self.hosts: dict[NodeId, Host] = {}
        self.alive: dict[NodeId, None] = {}
        self.awake: dict[NodeId, int] = {}  # when each was switched on, or last had a timeout
        self.book = ReachBook(self.layer_graph)
        self.measures = Measures()

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """A device is switched on or off, or time passes for it."""
        if kind == "stop":
            del self.alive[node]
        elif kind == "start":
            self.alive[node] = None
            self.awake[node] = self.now
            self.measures.start(node, self.now)
        else:
            self._tick(tick // TICKS_PER_SECOND)
            self.awake[node] = self.now

    def places(self) -> dict[NodeId, Point]:
        """Where every host is now."""
        return {id: self.motion.place(id, self.now) for id in self.hosts}

    def near(self, id: NodeId) -> list[NodeId]:
        """Who is heard in range of `id`: a radio notices a death as silence, after a while."""
        near = self.motion.near(id, self.hosts, self.now)
        return [peer for peer in near if self.now - self.awake.get(peer, 0) <= SILENT_MAX]

    def states(self) -> dict[NodeId, State]:
        """The states of all that live."""
        return {id: self.hosts[id].state() for id in self.alive}

    def layer_graph(self, topic: str) -> dict[NodeId, list[NodeId]]:
        """Who is linked with whom in a layer."""
        return self.overlay.layer_graph(self.states(), topic)

    def _tick(self, second: int) -> None:
        """At each new second see whether links form a cycle, and keep a picture of one layer."""
        if second <= self.now:
            return
        self.now = second
        judge, states = self.overlay.judge, self.states()
        layers = [members(states, topic) for topic in self.overlay.topics]
        self.measures.cyclic |= any(judge.cyclic(layer) for layer in layers)
        if self.measures.wants_picture(len(self.hosts)):
            picture = Picture(second, self.places(), judge.directions(layers[0]))
            self.measures.pictures.append(picture)


class Host(Node):
    """The device that carries a node: its radio, and our eye on it."""

    __slots__ = ("carried", "world")
    state_type: ClassVar[type[State]] = MobileState

    def __init__(self, carried: MobileNode, world: World) -> None:
        super().__init__(carried.id)
        self.carried, self.world = carried, world
        world.hosts[self.id] = self

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Hand it on; with several layers, see that it moves no other (Theorem 1)."""
        if len(self.carried.layers) > 1 and isinstance(message, MobileMessage):
            before = self._others(message.layer)
            effects = self.carried.on_message(message, sender)
            if before != self._others(message.layer):
                detail = f"{type(message).__name__} of {message.layer} moved another layer"
                raise SafetyBroken("independent-layers", self.world.now, detail)
        else:
            effects = self.carried.on_message(message, sender)
        return self.transmit(effects)

    def on_timeout(self) -> Effects:
        """Look around, then let the node act."""
        near = dict.fromkeys(self.world.near(self.id))
        effects: list[Effect] = []
        for peer in [peer for peer in self.carried.reach if peer not in near]:
            effects += self.carried.on_command(LinkDown(peer))
        for peer in [peer for peer in near if peer not in self.carried.reach]:
            effects += self.carried.on_command(LinkUp(peer))
        before = self._turns()
        effects += self.carried.on_timeout()
        linked = any(layer.neighbours() for layer in self.carried.layers.values())
        turns = self._turns() - before
        self.world.measures.timeout(self.id, self.world.now, turns, linked=linked)
        return self.transmit(effects)

    def on_command(self, command: Command) -> Effects:
        """What the application asks for is for the node."""
        return self.transmit(self.carried.on_command(command))

    def state(self) -> State:
        """The state is the node's."""
        return self.carried.state()

    def load(self, state: State) -> None:
        """The state is the node's."""
        self.carried.load(state)

    def snapshot(self) -> bytes:
        """The state is the node's."""
        return self.carried.snapshot()

    def restore(self, data: bytes) -> Effects:
        """The state is the node's."""
        return self.carried.restore(data)

    def transmit(self, effects: Effects) -> Effects:
        """Nothing sent out of range arrives anywhere."""
        heard: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send):
                if not self.world.motion.reaches(self.id, effect.target, self.world.now):
                    continue
                self.world.measures.sent(effect.message, self.world.book.published)
            heard.append(effect)
        return heard

    def _turns(self) -> int:
        return sum(layer.turns for layer in self.carried.layers.values())

    def _others(self, topic: str) -> list[bytes]:
        """All layers but one."""
        layers = self.carried.layers.items()
        return [layer.snapshot() for name, layer in layers if name != topic]


class MovingOverlay(MobileOverlay):
    """Anonymous topics among nodes that move: sinks of an acyclic orientation speak, then turn."""

    def __init__(
        self,
        graph: str = "grid",
        publications: int = 0,
        layers: int = 1,
        moving: int = 60,
        connection_points: int = 0,
        echo: bool = False,
        padding: int = 0,
        walk: int = 0,
    ) -> None:
        super().__init__(layers, connection_points, echo, padding, walk)
        if publications < 0:
            raise UsageError(f"publications {publications}: at least 0")
        if not 0 <= moving <= SECONDS_MAX // 2:
            raise UsageError(f"moving {moving}: from 0 to {SECONDS_MAX // 2}")
        self.graph = graph
        self.publications, self.moving = publications, moving
        self.world = World(self, Standing(Graph((), ()), 0))

    # Make

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A host with its node, at its old place or as a newcomer."""
        world = self.world
        if id not in world.hosts:
            world.motion.join(id, list(world.hosts))
        return self.host(self.member(id, rng))

    def host(self, carried: MobileNode) -> Host:
        """The device for a node."""
        return Host(carried, self.world)

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """All hosts where they are at second 0; no links yet."""
        motion, count = self.motion(n, rng)
        self.world = World(self, motion)
        return [self.host(self.member(id, rng)) for id in range(count)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """All links of second 0 up, all heights or values equal."""
        nodes = self.fresh(n, rng)
        reach, carried = self.reach(self.world.hosts), {it.id: unwrap(it) for it in nodes}
        for id, node in carried.items():
            for peer in reach[id]:
                node.on_command(LinkUp(peer))
        for id, node in carried.items():
            for peer in reach[id]:
                for topic in self.topics:
                    self.link(node.layers[topic], carried[peer].layers[topic])
        return nodes

    def link(self, mine: Layer, other: Layer) -> None:
        """My side of a link that begins up, between nodes of equal heights."""
        orientation, theirs = mine.orientation, other.orientation
        assert isinstance(orientation, Heights)
        assert isinstance(theirs, Heights)
        orientation.views[other.id] = (theirs.height, theirs.lid)
        orientation.settled = True
        connect(mine, other)

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """The named first state, with publications spread over the motion, or over a while."""
        start = super().start(name, n, rng, protocol)
        gap = max(1, self.moving // max(1, self.publications)) if self._moves() else 3
        lines = [f"at {2 + gap * number} publish count=1" for number in range(self.publications)]
        start.schedule = "\n".join(lines)
        return start

    def subscriptions(self, id: NodeId) -> list[Subscribe]:
        """All topics."""
        return [Subscribe(topic) for topic in self.topics]

    def motion(self, n: int, rng: Random) -> tuple[Motion, int]:
        """What moves, and how many nodes: as the graph option says."""
        kind, *sizes = self.graph.split(":")
        seed = rng.getrandbits(64)
        if kind == "trace":
            try:
                text = Path(self.graph.partition(":")[2]).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"graph {self.graph!r}: {error}") from None
            trace = Trace(text, self.graph)
            return trace, len(trace.points)
        if kind == "waypoint":
            try:
                count, degree = size_and_degree(sizes, n, 6.0)
                if count > WALKERS_MAX:
                    raise ValueError
            except ValueError:
                raise UsageError(
                    f"graph {self.graph!r}: write waypoint:N[:DEGREE], N from 1 to {WALKERS_MAX}"
                ) from None
            return Waypoint(count, radio_range(count, degree), seed, self.moving), count
        graph = parse_graph(self.graph, n, rng)
        return Standing(graph, seed), graph.n

    def _moves(self) -> bool:
        return self.graph.startswith(("waypoint", "trace"))

    # Judge

    def whereabouts(self) -> Mapping[NodeId, Point]:
        """As the world has it."""
        return self.world.places()

    def observer(self) -> World:
        """The world sees who lives, and what time it is."""
        return self.world

    def book(self) -> ReachBook:
        """The world's."""
        return self.world.book

    def reach(self, ids: Iterable[NodeId]) -> dict[NodeId, list[NodeId]]:
        """Who is in range of whom."""
        near, among = self.world.motion.near, dict.fromkeys(ids)
        return {id: sorted(near(id, among, self.world.now)) for id in sorted(among)}

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """The layers', and that some node still moves."""
        found = super().violations(states, channel)
        motion = self.world.motion
        if states and self.world.now <= motion.until:  # where nobody is left, nobody moves
            found.append(Violation("moving", None, f"until second {motion.until}"))
        return found

    def bound(self, n: int, delay: float) -> int:
        """Some patience, and four times the way of a turn through the network, once it stands.

        A turn waits for those of all neighbours and goes one hop, each a delay and a timeout, so
        the way is the diameter and the largest degree of the graph; level heights take it twice at
        most, the flood of a publication once. A walk that was cut short adds its embargo. A link
        takes one beat of what is stored after the other, each once the last is acknowledged: a
        beat, the acknowledgement, and a timeout for each. Of an unknown graph all that is certain
        is its size.
        """
        world = self.world
        alive = world.alive if world.awake else world.hosts  # nobody watched it yet
        still = max(world.now, world.motion.until)
        graph = {id: world.motion.near(id, alive, still) for id in alive}
        layers = [it for id in alive for it in world.hosts[id].carried.layers.values()]
        backlog = len({(it.topic, item) for it in layers for item in it.news.store})
        way = diameter(graph) + max(map(len, graph.values())) if graph else n
        beats = 4 * way + 2 * (backlog // ITEMS_MAX)
        walks = 2 * EMBARGO if self.walk else 0
        return ceil(PATIENCE + beats * (1 + delay) + walks) + still - world.now

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """The first layer's graph, who got what, and what the world measured."""
        graph, book = self.layer_graph(states, self.topics[0]), self.world.book
        return {
            "nodes": len(graph),
            "links": sum(map(len, graph.values())) // 2,
            "parts": parts(graph),
            "publications": len(book.published),
            "delivered": book.given(),
            "duplicated": sum(it.kind == "twice" for it in book.breaches),
            "missed": len(book.missed(self.world.now)),
            "rounds": book.rounds(),
            **self.world.measures.metrics(list(graph)),
        }


def connect(mine: Layer, other: Layer) -> None:
    """The rest of a link that begins up: both ends have said who they are, and owe nothing."""
    mine.said = (mine.orientation.greet(), 0)
    mine.connect(other.id, Link(replayed=True))


def _animation(trial: Trial) -> str:
    assert isinstance(trial.overlay, MovingOverlay)
    return animation(trial.overlay.world)


OPTIONS = (
    Option(
        "graph",
        "grid",
        "path:N, ring:N, star:N, complete:N, tree:N, grid:RxC, rgg:N[:D], "
        "waypoint:N[:D] or trace:FILE; without a size, --n nodes.",
    ),
    Option("publications", 0, "How many publications, by nodes drawn at random."),
    Option("moving", 60, "Seconds (intervals) of motion before the nodes stand still."),
    *PRODUCTS["mobile"].options,
)
OUTPUTS = (Output("html", "An animation of the run, in one file.", _animation),)
MOBILE = Kind(make=MovingOverlay, options=OPTIONS, outputs=OUTPUTS)
