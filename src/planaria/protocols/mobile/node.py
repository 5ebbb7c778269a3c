"""A node of the mobile overlay: one layer per topic it is a member of, and the peers in reach."""

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Command,
    Deliver,
    Effect,
    Effects,
    Joined,
    Leave,
    LinkDown,
    LinkUp,
    Node,
    Publish,
    Published,
    Restarted,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.state import State
from planaria.core.topics import check_filter, check_topic, has_wildcard
from planaria.protocols.mobile.dissemination import Dissemination
from planaria.protocols.mobile.layer import DEGREE_MAX, Layer, LayerState
from planaria.protocols.mobile.messages import (
    Beat,
    LinkDownOk,
    LinkUpKo,
    LinkUpOk,
    MobileMessage,
    RequestLinkDown,
    RequestLinkUp,
)

LAYERS_MAX = 64  # topics of one node; each costs a beat per link and timeout
REACH_MAX = 2 * DEGREE_MAX  # peers in reach that are worth asking

# What other overlays do and this one does not: a field of a command, what it is if nobody asks for
# it, and what to do instead.
REFUSED: Mapping[str, tuple[object, str]] = {
    "ordered": (False, "mobile keeps no order: number your payloads, or use ring"),
    "where": (None, "mobile has no conditions: use a topic for each, or content"),
    "client": (0, "mobile serves one application: start a node for each"),
    "attributes": ({}, "mobile carries payloads alone: encode them there, or use content"),
    "key": (None, "mobile has no keys: put the key into the payload, or use ring"),
    "headers": ({}, "mobile has no headers, which may name a publisher: use the payload"),
    "timestamp": (None, "mobile has no timestamps, which may name a publisher: use the payload"),
}


class MobileState(State):
    """The peers in reach, and one layer for each topic."""

    reach: dict[int, None]
    layers: dict[str, LayerState]


class MobileNode(Node):
    """Publisher and subscriber in any number of layers; heights orient them."""

    __slots__ = ("connection_points", "echo", "layers", "padding", "reach", "rng", "walk")
    state_type: ClassVar[type[MobileState]] = MobileState
    layer_type: ClassVar[type[Layer]] = Layer

    def __init__(
        self,
        id: NodeId,
        rng: Random,
        *,
        connection_points: int = 0,
        echo: bool = False,
        padding: int = 0,
        walk: int = 0,
    ) -> None:
        super().__init__(id)
        self.rng = rng
        self.connection_points = connection_points
        self.echo = echo
        self.padding = padding
        self.walk = walk
        self.layers: dict[str, Layer] = {}
        self.reach: dict[NodeId, None] = {}

    def state(self) -> MobileState:
        """The peers in reach, and every layer."""
        layers: dict[str, Any] = {topic: layer.state() for topic, layer in self.layers.items()}
        return self.state_type(self.reach, layers)

    def load(self, state: State) -> None:
        """Take these layers and no others; one without a proper name, or too many, are left out."""
        assert isinstance(state, MobileState)
        self.reach, self.layers = state.reach, {}
        for topic, layer in state.layers.items():
            if len(self.layers) < LAYERS_MAX and _is_topic(topic):
                self.layers[topic] = self._layer(topic, Random(0))
                self.layers[topic].load(layer)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A message of one layer reaches that layer only (Theorem 1).

        A hop is who it says it is: no rule needs `sender`, and nothing of it is kept. One out of
        reach is garbage, or a driver that will soon report it in reach: it asks again.
        """
        if not isinstance(message, MobileMessage) or message.sender not in self.reach:
            return NOTHING
        layer = self.layers.get(message.layer)
        return self._stranger(message) if layer is None else layer.on_message(message)

    def on_timeout(self) -> Effects:
        """Every layer in turn; a layer that everybody let go of is forgotten."""
        self.reach.pop(self.id, None)  # nobody is a neighbour of its own
        effects: list[Effect] = []
        for layer in self.layers.values():
            effects += layer.on_timeout(self.reach, self.rng)
        for topic in [topic for topic, layer in self.layers.items() if layer.closed()]:
            del self.layers[topic]
        return effects

    def on_command(self, command: Command) -> Effects:
        """The application joins, leaves and publishes; the driver reports who is in reach."""
        if isinstance(command, Subscribe | Unsubscribe | Publish):
            _refuse(command)
        match command:
            case Subscribe():
                self._subscribe(check_topic(command.pattern))
                return [Joined(command.pattern)]
            case Unsubscribe():
                self._leave(command.pattern)
            case Leave():
                for topic in self.layers:
                    self._leave(topic)
            case Publish():
                return self._publish(command)
            case LinkUp():
                if len(self.reach) < REACH_MAX and command.peer != self.id:
                    self.reach[command.peer] = None
            case LinkDown():
                self.reach.pop(command.peer, None)
                for layer in self.layers.values():
                    layer.lose(command.peer)
            case Restarted():
                for layer in self.layers.values():
                    layer.begin_anew(self.rng)
        return NOTHING

    def _subscribe(self, topic: str) -> None:
        layer = self.layers.get(topic)
        if layer is not None and layer.leaving is None:
            return
        if layer is None and len(self.layers) >= LAYERS_MAX:
            raise CapacityExceeded(f"{LAYERS_MAX} layers: leave one first")
        self.layers[topic] = self._layer(topic, self.rng)

    def _layer(self, topic: str, rng: Random) -> Layer:
        """A new layer; identifiers and values are never shared between layers (erratum 12)."""
        news = Dissemination(echo=self.echo, padding=self.padding, walk=self.walk)
        return self.layer_type(topic, self.id, rng, news, self.connection_points)

    def _leave(self, topic: str) -> None:
        if topic in self.layers:
            self.layers[topic].leave()

    def _publish(self, command: Publish) -> list[Effect]:
        layer = self.layers.get(command.topic)
        if layer is None or layer.leaving is not None:
            raise UsageError(f"subscribe to {command.topic!r} first: only members of a layer speak")
        item = layer.publish(command.payload, self.rng)
        return [
            Published(command.topic, item.id),
            Deliver.one(command.topic, item.id, command.payload),
        ]

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


def _refuse(command: Subscribe | Unsubscribe | Publish) -> None:
    """Raise `UsageError` for what mobile cannot do, in one line that says what to do instead."""
    for name, (unset, instead) in REFUSED.items():
        if getattr(command, name, unset) != unset:
            raise UsageError(f"{name}: {instead}")
    pattern = check_topic(command.topic) if isinstance(command, Publish) else command.pattern
    if has_wildcard(check_filter(pattern)):
        raise UsageError(f"{pattern!r}: mobile has no wildcards: subscribe to each topic")


def _is_topic(name: str) -> bool:
    try:
        return check_topic(name) == name
    except UsageError:
        return False
