"""A broker whose links are those of the tree over the DHT: three layers that heal in one node.

Each layer heals by itself once the one below is right. The seam is one comparison: after every
input the broker's links are made those of its place in the tree.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Effect,
    Effects,
    Leave,
    LinkDown,
    Publish,
    Send,
    Subscribe,
)
from planaria.protocols.dht.member import is_for_dht
from planaria.protocols.dht.node import Lookup
from planaria.protocols.routing.node import Broker, BrokerState
from planaria.protocols.routing.notifications import to_send
from planaria.protocols.routing.timing import Timing
from planaria.protocols.tree.messages import TreeMessage
from planaria.protocols.tree.node import TreeHost, TreeHostState


class ContentBrokerState(BrokerState):
    """The state of all layers."""

    host: TreeHostState


class ContentBroker(Broker):
    """DHT, tree and routing in one node."""

    __slots__ = ("host",)

    state_type = ContentBrokerState

    def __init__(
        self,
        id: NodeId,
        host: TreeHost,
        timing: Timing,
        rng: Random,
        **options: Any,
    ) -> None:
        super().__init__(id, timing, rng, **options)
        self.host = host

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Messages of all layers; whatever they change below shows in the links above."""
        if isinstance(message, TreeMessage) or is_for_dht(message):
            return self._on_tree(self.host.on_message(message, sender))
        return super().on_message(message, sender)

    def on_timeout(self) -> Effects:
        """Time passed, for the tree and then for the routing on it."""
        below = self._on_tree(self.host.on_timeout())
        return [*below, *super().on_timeout()]

    def on_command(self, command: Command) -> Effects:
        """Clients speak to the routing, the driver to the DHT."""
        match command:
            case Subscribe() | Publish() if self.host.dht.leaving:
                raise UsageError("this broker is leaving: ask another one")
            case Leave():
                handed = self._hand_over()
                self.clients = {}
                return [*handed, *self._on_tree(self.host.on_command(command))]
            case Lookup() | LinkDown():
                return self._on_tree(self.host.on_command(command))
        return super().on_command(command)

    def _hand_over(self) -> list[Effect]:
        """Give recent notifications to all who stay beside me: some may be nowhere else."""
        dht = self.host.dht
        beside = [id for id in (dht.predecessor, dht.successor, *self.links) if id is not None]
        return [
            Send(id, to_send(self.id, body, b""))
            for id in dict.fromkeys(beside)
            for body in self.memory.replayed(id)
        ]

    def _on_tree(self, effects: Sequence[Effect]) -> list[Effect]:
        """Let the links follow the tree."""
        place = self.host.place
        return [*effects, *self.set_links(place.neighbours, place.parent)]
