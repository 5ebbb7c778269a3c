"""Nodes that move: hosts that sense who is in radio range, and the overlay that they form.

A host is the simulated device around a node: at each timeout it looks who is in range, tells the
node by LinkUp and LinkDown, and loses what is sent to somebody out of range. The world is what all
hosts share: where everybody is, what time it is, and the books of the run.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Clock,
    Command,
    Deliver,
    Effect,
    Effects,
    LinkDown,
    LinkUp,
    Node,
    Publish,
    Send,
)
from planaria.core.overlay import Channel, Start, Violation
from planaria.protocols.mobile.graphs import Graph, Point, parse_graph, radio_range, size_and_degree
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.messages import MobileMessage
from planaria.protocols.mobile.node import ORIENTATIONS, MobileNode
from planaria.protocols.mobile.overlay import MobileOverlay, members, unwrap
from planaria.simulator.checkers import SafetyBroken
from planaria.simulator.pictures.mobile import animation
from planaria.simulator.trial import Trial
from planaria.simulator.worlds.mobile_books import Books
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
SKEW_MAX = 10  # a clock further ahead than this is wrong, and does not move the world


class World:
    """Time, places, hosts, and the books."""

    def __init__(self, motion: Motion) -> None:
        self.motion = motion
        self.now = 0
        self.hosts: dict[NodeId, Host] = {}
        self.books = Books()

    def hear_clock(self, seconds: int) -> None:
        """The first right clock to reach a new second moves the world there."""
        if self.now < seconds <= self.now + SKEW_MAX:
            self.now = seconds
            self.books.picture(
                self.now, self.places(), {i: h.carried for i, h in self.hosts.items()}
            )

    def places(self) -> dict[NodeId, Point]:
        """Where every host is now."""
        return {id: self.motion.place(id, self.now) for id in self.hosts}

    def near(self, id: NodeId) -> list[NodeId]:
        """Who is heard in range of `id`: a radio notices a death as silence, after a while."""
        near = self.motion.near(id, self.hosts, self.now)
        return [peer for peer in near if self.now - self.hosts[peer].awake <= SILENT_MAX]

    def graph(self, alive: Mapping[NodeId, Node]) -> dict[NodeId, list[NodeId]]:
        """Who is in range of whom among those that live."""
        near = self.motion.near
        return {id: sorted(near(id, alive, self.now)) for id in sorted(alive)}


class Host(Node):
    """The device that carries a node: its radio, its clock, and our eye on it."""

    __slots__ = ("awake", "carried", "world")
    reads_clock: ClassVar[bool] = True

    def __init__(self, carried: MobileNode, world: World) -> None:
        super().__init__(carried.id)
        self.carried, self.world = carried, world
        self.awake = world.now  # when it last had a timeout
        world.hosts[self.id] = self
        world.books.appear(self.id, world.now)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Hand it on; with several layers, see that it moves no other (Theorem 1)."""
        if len(self.carried.layers) > 1 and isinstance(message, MobileMessage):
            before = self._others(message.layer)
            effects = self.carried.on_message(message)
            if before != self._others(message.layer):
                detail = f"{type(message).__name__} of {message.layer} moved another layer"
                raise SafetyBroken("independent-layers", self.world.now, detail)
        else:
            effects = self.carried.on_message(message)
        return self._transmit(effects)

    def on_timeout(self) -> Effects:
        """Look around, then let the node act."""
        self.awake = self.world.now
        near = dict.fromkeys(self.world.near(self.id))
        effects: list[Effect] = []
        for peer in [peer for peer in self.carried.reach if peer not in near]:
            effects += self.carried.on_command(LinkDown(peer))
        for peer in [peer for peer in near if peer not in self.carried.reach]:
            effects += self.carried.on_command(LinkUp(peer))
        before = self._turns()
        effects += self.carried.on_timeout()
        linked = any(layer.neighbours() for layer in self.carried.layers.values())
        self.world.books.timeout(self.id, self.world.now, self._turns() - before, linked=linked)
        return self._transmit(effects)

    def on_command(self, command: Command) -> Effects:
        """The clock is the world's; the rest is for the node."""
        if isinstance(command, Clock):
            self.world.hear_clock(command.seconds)
            return NOTHING
        effects = self.carried.on_command(command)
        if isinstance(command, Publish):
            self.world.books.published(self.id, command.payload, self.world.now)
        return self._transmit(effects)

    def snapshot(self) -> dict[str, Any]:
        """The state is the node's."""
        return self.carried.snapshot()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """The state is the node's."""
        self.carried.restore(snapshot)

    def _transmit(self, effects: Effects) -> Effects:
        """Nothing sent out of range arrives anywhere."""
        heard: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send):
                if not self.world.motion.reaches(self.id, effect.target, self.world.now):
                    continue
                self.world.books.sent(effect.message)
            elif isinstance(effect, Deliver):
                self.world.books.delivered(self.id, effect.payload, self.world.now)
            heard.append(effect)
        return heard

    def _turns(self) -> int:
        return sum(layer.turns for layer in self.carried.layers.values())

    def _others(self, topic: str) -> str:
        """All there is to see of all layers but one."""
        others = [layer for name, layer in self.carried.layers.items() if name != topic]
        return repr(
            [
                (it.links, it.turns, it.refused, it.leaving, vars(it.orientation), it.news.input)
                for it in others
            ]
            + [(it.news.local, len(it.news.seen), len(it.news.store)) for it in others]
        )


class MovingOverlay(MobileOverlay):
    """Anonymous topics among nodes that move: sinks of an acyclic orientation speak, then turn."""

    def __init__(
        self,
        graph: str = "grid",
        orientation: str = Heights.name,
        publications: int = 0,
        layers: int = 1,
        moving: int = 60,
        connection_points: int = 0,
        echo: bool = False,
        padding: int = 0,
        walk: int = 0,
    ) -> None:
        super().__init__(orientation, layers, connection_points, echo, padding, walk)
        if publications < 0:
            raise UsageError(f"publications {publications}: at least 0")
        if not 0 <= moving <= SECONDS_MAX // 2:
            raise UsageError(f"moving {moving}: from 0 to {SECONDS_MAX // 2}")
        self.graph = graph
        self.publications, self.moving = publications, moving
        self.world = World(Standing(Graph((), ()), 0))

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A host with its node, at its old place or as a newcomer."""
        world = self.world
        if id not in world.hosts:
            world.motion.join(id, list(world.hosts))
        return Host(self.member(id, rng), world)

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """All hosts where they are at second 0; no links yet."""
        motion, count = self.motion(n, rng)
        self.world = World(motion)
        return [Host(self.member(id, rng), self.world) for id in range(count)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """All links of second 0 up, all heights or values equal."""
        nodes = self.fresh(n, rng)
        self.neighbours = self.world.graph({node.id: node for node in nodes})
        for node in nodes:
            for peer in self.neighbours[node.id]:
                unwrap(node).on_command(LinkUp(peer))
        return self.join_up(nodes)

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """The named first state, with publications spread over the motion, or over a while."""
        start = super().start(name, n, rng, protocol)
        gap = max(1, self.moving // max(1, self.publications)) if self._moves() else 3
        lines = [f"at {2 + gap * number} publish count=1" for number in range(self.publications)]
        start.schedule = "\n".join(lines)
        return start

    def violations(self, nodes: Mapping[NodeId, Node], channel: Channel) -> list[Violation]:
        """The layers', that some node still moves, and who misses what it should have."""
        self.neighbours = self.world.graph(nodes)
        found = super().violations(nodes, channel)
        self.world.books.cyclic |= any(violation.invariant == "acyclic" for violation in found)
        if not found:
            missed = self.world.books.missed(self._layer_graph(nodes))
            found += [Violation("agreement", id, f"lacks {payload!r}") for payload, id in missed]
        motion = self.world.motion
        if nodes and self.world.now <= motion.until:  # where nobody is left, nobody moves
            found.append(Violation("moving", None, f"until second {motion.until}"))
        return found

    def damaged(self, nodes: Mapping[NodeId, Node]) -> None:
        """Nobody is owed what was under way: its last copy may be gone."""
        self.world.books.damaged(nodes)

    def bound(self, n: int, delay: float) -> int:
        """The layers', on the graph that the nodes will stand still on, once they do."""
        motion, now = self.world.motion, self.world.now
        alive, still = self.neighbours, max(now, motion.until)
        graph = {id: motion.near(id, alive, still) for id in alive}
        layers = [it for id in alive for it in self.world.hosts[id].carried.layers.values()]
        backlog = len({(it.topic, item) for it in layers for item in it.news.store})
        return self.bound_on(graph, n, delay, backlog) + still - now

    def metrics(self, nodes: Mapping[NodeId, Node]) -> dict[str, Any]:
        """Where the orientation is safe, and the books of the run."""
        told = {"orientation": self.orientation, "safe_on": ORIENTATIONS[self.orientation].safe}
        return told | self.world.books.metrics(self._layer_graph(nodes))

    def _layer_graph(self, nodes: Mapping[NodeId, Node]) -> dict[NodeId, list[NodeId]]:
        """Who is linked with whom in the first layer, members only."""
        layers = members(nodes, self.topics[0])
        return {
            id: [peer for peer in layer.neighbours() if peer in layers]
            for id, layer in layers.items()
        }

    def _moves(self) -> bool:
        return self.graph.startswith(("waypoint", "trace"))

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


def _animation(trial: Trial) -> str:
    assert isinstance(trial.overlay, MovingOverlay)
    return animation(trial.overlay.world.books)


MOBILE = Kind(
    make=MovingOverlay,
    options=(
        Option(
            "graph",
            "grid",
            "path:N, ring:N, star:N, complete:N, tree:N, grid:RxC, rgg:N[:D], "
            "waypoint:N[:D] or trace:FILE; without a size, --n nodes.",
        ),
        Option("orientation", Heights.name, "Who may speak.", tuple(ORIENTATIONS)),
        Option("publications", 0, "How many publications, by nodes drawn at random."),
        Option("layers", 1, "How many topics; every node is in all of them."),
        Option("moving", 60, "Seconds (intervals) of motion before the nodes stand still."),
        Option("connection-points", 0, "Links a node asks for; 0: all in range."),
        Option("echo", False, "Send a publication back to whom it came from, as Table 4 does."),
        Option("padding", 0, "Pad payloads to a multiple of this many bytes."),
        Option("walk", 0, "Hand a publication over so many times, on average, then flood it."),
    ),
    outputs=(Output("html", "An animation of the run, in one file.", _animation),),
)
