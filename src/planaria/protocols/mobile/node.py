"""A node of the mobile overlay: one layer per topic it is a member of, and the peers in reach."""

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from planaria.core.errors import CapacityExceeded, UsageError, unknown
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Command,
    Deliver,
    Effect,
    Effects,
    LinkDown,
    LinkUp,
    Node,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.topics import check_topic
from planaria.protocols.mobile.dissemination import Dissemination
from planaria.protocols.mobile.edge_bits import EdgeBits
from planaria.protocols.mobile.graphs import NEIGHBOURS_MAX
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.layer import Layer
from planaria.protocols.mobile.messages import (
    Beat,
    LinkDownOk,
    LinkUpKo,
    LinkUpOk,
    MobileMessage,
    RequestLinkDown,
    RequestLinkUp,
)
from planaria.protocols.mobile.orientation import Orientation
from planaria.protocols.mobile.three_state import ThreeState

LAYERS_MAX = 64  # topics of one node; each costs a beat per link and timeout
REACH_MAX = 2 * NEIGHBOURS_MAX  # peers in reach that are worth asking

ORIENTATIONS: Mapping[str, type[Heights] | type[ThreeState] | type[EdgeBits]] = {
    kind.name: kind for kind in (Heights, ThreeState, EdgeBits)
}


class MobileNode(Node):
    """Publisher and subscriber in any number of layers; the default orientation heals itself."""

    __slots__ = (
        "connection_points",
        "echo",
        "layers",
        "orientation",
        "padding",
        "reach",
        "rng",
        "walk",
    )
    variables: ClassVar[tuple[str, ...]] = ("reach",)

    def __init__(
        self,
        id: NodeId,
        rng: Random,
        *,
        orientation: str = Heights.name,
        connection_points: int = 0,
        echo: bool = False,
        padding: int = 0,
        walk: int = 0,
    ) -> None:
        super().__init__(id)
        if orientation not in ORIENTATIONS:
            raise unknown("orientation", orientation, ORIENTATIONS)
        self.rng = rng
        self.orientation = orientation
        self.connection_points = connection_points
        self.echo = echo
        self.padding = padding
        self.walk = walk
        self.layers: dict[str, Layer] = {}
        self.reach: dict[NodeId, None] = {}

    def snapshot(self) -> dict[str, Any]:
        """The peers in reach, and every layer."""
        layers = {topic: layer.snapshot() for topic, layer in self.layers.items()}
        return {**super().snapshot(), "layers": layers}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state: its layers, and no others."""
        super().restore(snapshot)
        self.layers = {}
        for topic, layer in snapshot.get("layers", {}).items():
            self._subscribe(topic)
            self.layers[topic].restore(layer)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A message of one layer reaches that layer only (Theorem 1).

        A sender out of reach is garbage, or a driver that will soon report it in reach: it asks
        again.
        """
        if not isinstance(message, MobileMessage) or message.sender not in self.reach:
            return NOTHING
        layer = self.layers.get(message.layer)
        return self._stranger(message) if layer is None else layer.on_message(message)

    def on_timeout(self) -> Effects:
        """Every layer in turn; a layer that everybody let go of is forgotten."""
        effects: list[Effect] = []
        for layer in self.layers.values():
            effects += layer.on_timeout(self.reach, self.rng)
        for topic in [topic for topic, layer in self.layers.items() if layer.closed()]:
            del self.layers[topic]
        return effects

    def on_command(self, command: Command) -> Effects:
        """The application joins, leaves and publishes; the driver reports who is in reach."""
        match command:
            case Subscribe():
                self._subscribe(check_topic(command.pattern))
            case Unsubscribe():
                if command.pattern in self.layers:
                    self.layers[command.pattern].leave()
            case Publish():
                return self._publish(command)
            case LinkUp():
                if len(self.reach) < REACH_MAX and command.peer != self.id:
                    self.reach[command.peer] = None
            case LinkDown():
                self.reach.pop(command.peer, None)
                for layer in self.layers.values():
                    layer.lose(command.peer)
        return NOTHING

    def new_orientation(self) -> Orientation:
        """A layer's own orientation: identifiers and values are never shared (erratum 12)."""
        return ORIENTATIONS[self.orientation](self.id, self.rng)

    def _subscribe(self, topic: str) -> None:
        layer = self.layers.get(topic)
        if layer is not None and layer.leaving is None:
            return
        if layer is None and len(self.layers) >= LAYERS_MAX:
            raise CapacityExceeded(f"{LAYERS_MAX} layers: leave one first")
        news = Dissemination(echo=self.echo, padding=self.padding, walk=self.walk)
        self.layers[topic] = Layer(
            topic, self.id, self.new_orientation(), news, self.connection_points
        )

    def _publish(self, command: Publish) -> list[Effect]:
        layer = self.layers.get(command.topic)
        if layer is None or layer.leaving is not None:
            raise UsageError(f"subscribe to {command.topic!r} first: only members of a layer speak")
        item = layer.publish(command.payload, self.rng)
        return [Deliver(command.topic, item.id, command.payload)]

    def _stranger(self, message: MobileMessage) -> list[Effect]:
        """Somebody takes this node for a member of a layer that it is not in."""
        answer: MobileMessage
        match message:
            case RequestLinkUp():
                answer = LinkUpKo(message.layer, self.id)
            case Beat() | LinkUpOk():
                answer = RequestLinkDown(message.layer, self.id)
            case RequestLinkDown():
                answer = LinkDownOk(message.layer, self.id)
            case _:
                return []
        return [Send(message.sender, answer)]
