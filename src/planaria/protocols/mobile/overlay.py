"""How to break and judge a network of mobile nodes. Who is in reach of whom is the driver's."""

from collections.abc import Mapping, Sequence
from math import ceil
from random import Random
from typing import ClassVar

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import Command, Node, Publish, Subscribe, Unsubscribe
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.protocols.mobile import arbitrary, legitimacy
from planaria.protocols.mobile.dissemination import EMBARGO
from planaria.protocols.mobile.edge_bits import EdgeBits
from planaria.protocols.mobile.graphs import diameter
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.layer import ASK_MAX, REFUSED, SILENCE_MAX, Layer
from planaria.protocols.mobile.link import STALE_MAX, Link
from planaria.protocols.mobile.messages import ITEMS_MAX
from planaria.protocols.mobile.node import LAYERS_MAX, MobileNode
from planaria.protocols.mobile.three_state import ThreeState

WALK_MAX = 16  # more would take longer than nodes wait for the flood
# Intervals until a device notices that another one is gone, a layer that a neighbour is, and that
# one who was asked will not answer, one after the other, and until that one is asked again.
PATIENCE = 24 + SILENCE_MAX + ASK_MAX + REFUSED


class MobileOverlay(Overlay):
    """Anonymous topics over link reversal; a driver adds places, hosts and who reaches whom."""

    name = "mobile"
    # Beats of a link may overtake each other for as long as old ones are told from new ones.
    delay_max: ClassVar[float] = STALE_MAX - 1

    def __init__(
        self,
        orientation: str = Heights.name,
        layers: int = 1,
        connection_points: int = 0,
        echo: bool = False,
        padding: int = 0,
        walk: int = 0,
    ) -> None:
        if not 1 <= layers <= LAYERS_MAX:
            raise UsageError(f"layers {layers}: from 1 to {LAYERS_MAX}")
        for name, value in (("connection-points", connection_points), ("padding", padding)):
            if value < 0:
                raise UsageError(f"{name} {value}: at least 0")
        if not 0 <= walk <= WALK_MAX:
            raise UsageError(f"walk {walk}: from 0 to {WALK_MAX}")
        self.orientation = orientation
        self.topics = [f"layer/{number}" for number in range(layers)]
        self.connection_points = connection_points
        self.echo = echo
        self.padding = padding
        self.walk = walk
        self.neighbours: dict[NodeId, list[NodeId]] = {}  # who can reach whom
        MobileNode(0, Random(0), orientation=orientation)  # a wrong name is an error now

    # Make

    def member(self, id: NodeId, rng: Random) -> MobileNode:
        """A node that is in all layers and has no link yet."""
        node = MobileNode(
            id,
            rng,
            orientation=self.orientation,
            connection_points=self.connection_points,
            echo=self.echo,
            padding=self.padding,
            walk=self.walk,
        )
        for topic in self.topics:
            node.on_command(Subscribe(topic))
        return node

    def join_up(self, nodes: Sequence[Node]) -> list[Node]:
        """Let the nodes begin with all links up between those that can reach each other."""
        by_id = {node.id: node for node in nodes}
        for node in nodes:
            for peer in self.neighbours[node.id]:
                for topic in self.topics:
                    _join(unwrap(node).layers[topic], unwrap(by_id[peer]).layers[topic])
        return list(nodes)

    # Break

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary values for every variable of every layer, and others in reach."""
        inner = unwrap(node)
        inner.reach = dict.fromkeys(id for id in (*inner.reach, *ids[:2]) if rng.random() < 0.8)
        for layer in inner.layers.values():
            arbitrary.scramble(layer, ids, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Any message of any layer."""
        return rng.choice(ids), arbitrary.forged(rng.choice(self.topics), ids, rng)

    # Judge

    def bound(self, n: int, delay: float) -> int:
        """Some patience, and four times the way of a turn through the network.

        A turn waits for those of all neighbours and goes one hop, each a delay and a timeout, so
        the way is the diameter and the largest degree of the graph; level heights take it twice at
        most, the flood of a publication once. A walk that was cut short adds its embargo.
        """
        return self.bound_on(self.neighbours, n, delay)

    def bound_on(
        self, graph: Mapping[NodeId, list[NodeId]], n: int, delay: float, backlog: int = 0
    ) -> int:
        """The same for any graph; of an unknown one all that is certain is its size.

        A link takes one beat of `backlog` publications after the other, each once the last is
        acknowledged: a beat, the acknowledgement, and a timeout for each.
        """
        way = diameter(graph) + max(map(len, graph.values())) if graph else n
        beats = 4 * way + 2 * (backlog // ITEMS_MAX)
        return ceil(PATIENCE + beats * (1 + delay) + (2 * EMBARGO if self.walk else 0))

    def violations(self, nodes: Mapping[NodeId, Node], channel: Channel) -> list[Violation]:
        """What is not legitimate, layer by layer."""
        flying = list(channel)
        found = []
        for topic in self.topics:
            layers = members(nodes, topic)
            found += legitimacy.violations(layers, self.neighbours, flying)
            found += _departures(nodes, topic)
        return found

    def leave(self, node: Node) -> Command | None:
        """Leave the first layer."""
        return Unsubscribe(self.topics[0]) if self.topics[0] in unwrap(node).layers else None

    def publication(self, id: NodeId, number: int) -> Command | None:
        """Layers take turns; a node that left one refuses."""
        return Publish(self.topics[number % len(self.topics)], b"publication %d" % number)


def unwrap(node: Node) -> MobileNode:
    """The protocol's node, also of a host that carries it around."""
    inner = getattr(node, "carried", node)
    assert isinstance(inner, MobileNode)
    return inner


def members(nodes: Mapping[NodeId, Node], topic: str) -> dict[NodeId, Layer]:
    """Everybody's side of one layer; leavers are on their way out and no members."""
    layers = {id: unwrap(node).layers.get(topic) for id, node in nodes.items()}
    return {id: layer for id, layer in layers.items() if layer and layer.leaving is None}


def _departures(nodes: Mapping[NodeId, Node], topic: str) -> list[Violation]:
    """Leavers that still wait for their turn to hand over what they hold: then it will spread."""
    found = []
    for id, node in nodes.items():
        layer = unwrap(node).layers.get(topic)
        waits = layer is not None and layer.leaving is not None and layer.leaving >= 0
        if layer is not None and waits and layer.neighbours():
            found.append(Violation("departure", id, "waits for its turn to hand over"))
    return found


def _join(mine: Layer, other: Layer) -> None:
    """My side of a link that begins up: equal heights or values, tokens in a random order.

    Random, because tokens in the order of ids leave a ring with one sink that wanders round it.
    """
    orientation, theirs = mine.orientation, other.orientation
    if isinstance(orientation, Heights) and isinstance(theirs, Heights):
        orientation.views[other.id] = (theirs.height, theirs.lid)
        orientation.settled = True
    elif isinstance(orientation, ThreeState) and isinstance(theirs, ThreeState):
        orientation.views[other.id] = (theirs.val, theirs.lid)
    elif isinstance(orientation, EdgeBits):
        orientation.settle(other.id, mine=_rank(mine) < _rank(other))
    mine.said = (orientation.greet(), 0)
    mine.connect(other.id, Link(informed=True, replayed=True))


def _rank(layer: Layer) -> tuple[int, NodeId]:
    return stable_hash(layer.topic, layer.id, bits=64), layer.id
