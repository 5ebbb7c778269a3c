"""A host of the tree: a member of the DHT with a place in the tree over it."""

from typing import Any

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import NOTHING, Command, Effect, Effects, LinkDown, Node
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.member import DhtMember, Located, Unlocated
from planaria.protocols.dht.node import Leave, Lookup
from planaria.protocols.tree.messages import TreeMessage
from planaria.protocols.tree.place import TreePlace
from planaria.protocols.tree.reference_tree import ReferenceTree


class TreeHost(Node):
    """DHT and tree in one node. `neighbours` is what the layer above stands on.

    Every change of a link is returned as a `TreeLink`, among the other effects.
    """

    __slots__ = ("dht", "place")

    def __init__(
        self,
        id: NodeId,
        space: KeySpace,
        tree: ReferenceTree,
        contacts: tuple[NodeId, ...] = (),
    ) -> None:
        super().__init__(id)
        self.dht = DhtMember(id, space, contacts)
        self.place = TreePlace(self.dht, tree)

    @property
    def neighbours(self) -> list[NodeId]:
        """The hosts beside this one in the tree."""
        return self.place.neighbours

    def snapshot(self) -> dict[str, Any]:
        """The state of both layers."""
        return {"dht": self.dht.snapshot(), "place": self.place.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state, however old."""
        self.dht.restore(snapshot.get("dht", {}))
        self.place.restore(snapshot.get("place", {}))

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Messages of the tree, of the DHT and of its ring."""
        if isinstance(message, TreeMessage):
            return self._settle(self.place.on_message(message))
        return self._settle(self.dht.on_message(message))

    def on_timeout(self) -> Effects:
        """Time passed, for both layers."""
        return self._settle([*self.dht.on_timeout(), *self.place.on_timeout()])

    def on_command(self, command: Command) -> Effects:
        """Look something up, leave, or hear that a connection is lost."""
        if isinstance(command, Lookup):
            return self._settle(self.dht.lookup(command.key))
        if isinstance(command, Leave):
            return [*self.dht.leave(), *self.place.leave()]
        if isinstance(command, LinkDown):
            peer = command.peer
            return self._settle([*self.dht.on_link_down(peer), *self.place.on_link_down(peer)])
        return NOTHING

    def _settle(self, effects: list[Effect]) -> list[Effect]:
        """Give the tree the answers to its lookups, and let it see whether its keyset changed."""
        settled: list[Effect] = []
        pending = [*effects, *self.place.review()]
        for effect in pending:  # grows while answers lead to more lookups: six for one search
            if isinstance(effect, Located | Unlocated) and effect.key in self.place.asked:
                pending += self.place.on_answer(effect)
            else:
                settled.append(effect)
        return settled
