"""A broker whose links are those of the tree over the DHT: three layers that heal in one node.

Each layer heals by itself once the one below is right. The seam is one comparison: after every
input the broker's links are made those of its place in the tree.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effect, Effects, LinkDown, Send
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.member import is_for_dht
from planaria.protocols.dht.node import Leave, Lookup
from planaria.protocols.routing.broker import Broker
from planaria.protocols.routing.timing import Timing
from planaria.protocols.tree.host import TreeHost
from planaria.protocols.tree.messages import TreeMessage
from planaria.protocols.tree.reference_tree import ReferenceTree


class ContentBroker(Broker):
    """DHT, tree and routing in one node."""

    __slots__ = ("host",)

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
        if isinstance(command, Leave):
            handed = self._hand_over()
            self.clients = {}
            return [*handed, *self._on_tree(self.host.on_command(command))]
        if isinstance(command, Lookup | LinkDown):
            return self._on_tree(self.host.on_command(command))
        return super().on_command(command)

    def _hand_over(self) -> list[Effect]:
        """Give recent notifications to all who stay beside me: some may be nowhere else."""
        dht = self.host.dht
        beside = [id for id in (dht.predecessor, dht.successor, *self.links) if id is not None]
        return [
            Send(id, message)
            for id in dict.fromkeys(beside)
            for message in self.memory.replayed(id)
        ]

    def _on_tree(self, effects: Sequence[Effect]) -> list[Effect]:
        """Let the links follow the tree."""
        place = self.host.place
        return [*effects, *self.set_links(place.neighbours, place.parent)]

    def snapshot(self) -> dict[str, Any]:
        """The state of all layers."""
        return {"host": self.host.snapshot(), **super().snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state, however old."""
        self.host.restore(snapshot["host"])
        super().restore(snapshot)


def content_broker(
    id: NodeId,
    space: KeySpace,
    tree: ReferenceTree,
    contacts: tuple[NodeId, ...],
    timing: Timing,
    rng: Random,
    **options: Any,
) -> ContentBroker:
    """A broker that joins through any of `contacts`."""
    return ContentBroker(id, TreeHost(id, space, tree, contacts), timing, rng, **options)
