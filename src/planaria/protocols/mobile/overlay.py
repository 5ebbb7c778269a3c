"""How to break and judge a network of mobile nodes. Who is in reach of whom is the driver's."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import ClassVar

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Leave, Node, Publish, Subscribe
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.protocols.mobile.arbitrary import forged, scramble, scramble_heights
from planaria.protocols.mobile.layer import LayerState
from planaria.protocols.mobile.legitimacy import LayerJudge
from planaria.protocols.mobile.link import STALE_MAX
from planaria.protocols.mobile.messages import MESSAGES as MOBILE_MESSAGES
from planaria.protocols.mobile.node import LAYERS_MAX, MobileNode, MobileState
from planaria.protocols.mobile.orientation import Orientation

WALK_MAX = 16  # more would take longer than nodes wait for the flood


class MobileOverlay(Overlay):
    """Anonymous topics over link reversal; a driver adds places, hosts and who reaches whom."""

    name = "mobile"
    messages = MOBILE_MESSAGES
    # Beats of a link may overtake each other for as long as old ones are told from new ones.
    delay_max: ClassVar[float] = STALE_MAX - 1
    judge: ClassVar[LayerJudge] = LayerJudge()
    node_type: ClassVar[type[MobileNode]] = MobileNode

    def __init__(
        self,
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
        self.topics = [f"layer/{number}" for number in range(layers)]
        self.connection_points = connection_points
        self.echo = echo
        self.padding = padding
        self.walk = walk

    # Make

    def member(self, id: NodeId, rng: Random) -> MobileNode:
        """A node that is in all layers and has no link yet."""
        node = self.node_type(
            id,
            rng,
            connection_points=self.connection_points,
            echo=self.echo,
            padding=self.padding,
            walk=self.walk,
        )
        for topic in self.topics:
            node.on_command(Subscribe(topic))
        return node

    # Break

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary values for every variable of every layer, and others in reach."""
        inner = unwrap(node)
        inner.reach = dict.fromkeys(id for id in (*inner.reach, *ids[:2]) if rng.random() < 0.8)
        for layer in inner.layers.values():
            scramble(layer, ids, rng, self.scramble_orientation)

    def scramble_orientation(self, mine: Orientation, peers: list[NodeId], rng: Random) -> None:
        """Arbitrary values for one node's side of the orientation."""
        scramble_heights(mine, peers, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Any message of any layer."""
        return rng.choice(ids), forged(rng.choice(self.topics), ids, rng)

    # Judge

    @abstractmethod
    def reach(self, ids: Iterable[NodeId]) -> dict[NodeId, list[NodeId]]:
        """Who of `ids` can hear whom: those who should be linked if they are in the same layer."""

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """What is not legitimate, layer by layer."""
        flying, wanted = list(channel), self.reach(states)
        found = []
        for topic in self.topics:
            layers, points = members(states, topic), self.connection_points
            found += self.judge.violations(topic, layers, wanted, flying, points)
            found += self._departures(states, topic)
        return found

    def layer_graph(self, states: Mapping[NodeId, State], topic: str) -> dict[int, list[int]]:
        """Who is linked with whom in a layer, members only."""
        layers = members(states, topic)
        return {
            id: [peer for peer in self.judge.neighbours(layer) if peer in layers]
            for id, layer in layers.items()
        }

    def leave(self, node: Node) -> Command | None:
        """Leave all layers."""
        return Leave() if unwrap(node).layers else None

    def publication(self, id: NodeId, number: int) -> Command | None:
        """Layers take turns; a node that left one refuses."""
        return Publish(self.topics[number % len(self.topics)], b"publication %d" % number)

    def _departures(self, states: Mapping[NodeId, State], topic: str) -> list[Violation]:
        """Leavers that still wait for their turn to hand over what they hold: it will spread."""
        found = []
        for id, layer in sides(states, topic).items():
            waits = layer.leaving is not None and layer.leaving >= 0
            if waits and self.judge.neighbours(layer):
                found.append(Violation("departure", id, "waits for its turn to hand over"))
        return found


def unwrap(node: Node) -> MobileNode:
    """The protocol's node, also of a host that carries it around."""
    inner = getattr(node, "carried", node)
    assert isinstance(inner, MobileNode)
    return inner


def sides(states: Mapping[NodeId, State], topic: str) -> dict[NodeId, LayerState]:
    """Everybody's side of one layer."""
    found = {}
    for id, state in states.items():
        assert isinstance(state, MobileState)
        if topic in state.layers:
            found[id] = state.layers[topic]
    return found


def members(states: Mapping[NodeId, State], topic: str) -> dict[NodeId, LayerState]:
    """The members' sides of one layer; leavers are on their way out and no members."""
    return {id: layer for id, layer in sides(states, topic).items() if layer.leaving is None}
