"""A host that is nothing but a member of the DHT."""

from typing import Any

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import NOTHING, Command, Effects, LinkDown, Node
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.member import DhtMember


class Lookup(Command, frozen=True, gc=False):
    """Ask the DHT who owns `key`; `Located` or `Unlocated` tells."""

    key: int


class Leave(Command, frozen=True, gc=False):
    """Stop being a member; the others are told."""


class DhtNode(Node):
    """A member of the DHT for its application."""

    __slots__ = ("dht",)

    def __init__(self, id: NodeId, space: KeySpace, contacts: tuple[NodeId, ...] = ()) -> None:
        super().__init__(id)
        self.dht = DhtMember(id, space, contacts)

    def snapshot(self) -> dict[str, Any]:
        """The state of the member."""
        return {"dht": self.dht.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state, however old."""
        self.dht.restore(snapshot.get("dht", {}))

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Messages of the DHT and of its ring."""
        return self.dht.on_message(message)

    def on_timeout(self) -> Effects:
        """Time passed."""
        return self.dht.on_timeout()

    def on_command(self, command: Command) -> Effects:
        """Look something up, leave, or hear that a connection is lost."""
        if isinstance(command, Lookup):
            return self.dht.lookup(command.key)
        if isinstance(command, Leave):
            return self.dht.leave()
        if isinstance(command, LinkDown):
            return self.dht.on_link_down(command.peer)
        return NOTHING
