"""A host of the tree: a member of the DHT with a place in the tree over it."""

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Command,
    Effect,
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
from planaria.protocols.dht.member import DhtMember, DhtMemberState, Located, Unlocated
from planaria.protocols.dht.member import speaker as dht_speaker
from planaria.protocols.dht.node import Lookup, no_publications
from planaria.protocols.tree.messages import TreeMessage
from planaria.protocols.tree.place import TreePlace, TreePlaceState
from planaria.protocols.tree.reference_tree import ReferenceTree

_ANSWERS = (Located, Unlocated)  # a tuple: a union would be made anew for every effect


def speaker(message: Message) -> NodeId | None:
    """In whose name a message of either layer speaks: it counts only if it comes from there."""
    return message.sender if isinstance(message, TreeMessage) else dht_speaker(message)


class TreeHostState(State):
    """The state of both layers."""

    dht: DhtMemberState
    place: TreePlaceState


class TreeHost(Node):
    """DHT and tree in one node. `neighbours` is what the layer above stands on.

    Every change of a link is returned as a `TreeLink`, among the other effects.
    """

    __slots__ = ("dht", "place")

    state_type = TreeHostState

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

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Messages of the tree, of the DHT and of its ring."""
        if isinstance(message, TreeMessage):
            return self._answer_searches(self.place.on_message(message, sender))
        return self._answer_searches(self.dht.on_message(message, sender))

    def on_timeout(self) -> Effects:
        """Time passed, for both layers."""
        return self._answer_searches([*self.dht.on_timeout(), *self.place.on_timeout()])

    def on_command(self, command: Command) -> Effects:
        """Look something up, leave, or hear that a connection is lost."""
        match command:
            case Lookup(key):
                return self._answer_searches(self.dht.lookup(key))
            case Leave():
                return [*self.dht.leave(), *self.place.leave()]
            case LinkDown(peer):
                lost = [*self.dht.on_link_down(peer), *self.place.on_link_down(peer)]
                return self._answer_searches(lost)
            case Subscribe() | Unsubscribe() | Publish():
                raise no_publications("tree")
        return NOTHING

    def _answer_searches(self, effects: list[Effect]) -> list[Effect]:
        """Give the tree the answers to its lookups, and let it see whether its keyset changed."""
        outward: list[Effect] = []
        pending = [*effects, *self.place.review()]
        for effect in pending:  # grows while answers lead to more lookups: six for one search
            if isinstance(effect, _ANSWERS) and effect.key in self.place.asked:
                pending += self.place.on_answer(effect)
            else:
                outward.append(effect)
        return outward
