"""A host that is nothing but a member of the DHT."""

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Command,
    Effects,
    Leave,
    LinkDown,
    Node,
    Publish,
    Subscribe,
    Unsubscribe,
)
from planaria.core.state import State
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.member import DhtMember, DhtMemberState


class Lookup(Command, frozen=True, gc=False):
    """Ask the DHT who owns `key`; `Located` or `Unlocated` tells."""

    key: int


class DhtNodeState(State):
    """The state of the member."""

    dht: DhtMemberState


class DhtNode(Node):
    """A member of the DHT for its application."""

    __slots__ = ("dht",)

    state_type = DhtNodeState

    def __init__(self, id: NodeId, space: KeySpace, contacts: tuple[NodeId, ...] = ()) -> None:
        super().__init__(id)
        self.dht = DhtMember(id, space, contacts)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Messages of the DHT and of its ring."""
        return self.dht.on_message(message, sender)

    def on_timeout(self) -> Effects:
        """Time passed."""
        return self.dht.on_timeout()

    def on_command(self, command: Command) -> Effects:
        """Look something up, leave, or hear that a connection is lost."""
        match command:
            case Lookup(key):
                return self.dht.lookup(key)
            case Leave():
                return self.dht.leave()
            case LinkDown(peer):
                return self.dht.on_link_down(peer)
            case Subscribe() | Unsubscribe() | Publish():
                raise no_publications("dht")
        return NOTHING


def no_publications(overlay: str) -> UsageError:
    """The error for an application that takes `overlay` for publish/subscribe."""
    return UsageError(f"{overlay} has lookups, no publications; use ring, gossip, content, mobile")
