"""The tree over a DHT that is right: hosts with any parent, any children, alive, dead or none."""

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Send
from planaria.core.state import State, decode_state
from planaria.protocols.dht.messages import AskFinger, Find, Finger
from planaria.protocols.dht.overlay import give_places
from planaria.protocols.ring.messages import Check, Introduce, RingMessage
from planaria.protocols.tree.node import TreeHost, TreeHostState
from planaria.protocols.tree.overlay import TreeOverlay
from planaria.verify.model import Constants
from planaria.verify.models.dht import DEAD, SMALL, HostsModel, plain_member

REFRESH = 3
FOREVER = 1 << 30  # a silence that never comes
NONCES = 4  # more than questions are under way: an answer is never taken for another's
SMALLER = {
    **SMALL,
    "dht.lookups:NONCES": NONCES,
    "dht.member:NONCES": NONCES,
    "dht.lookups:GAP_MAX": 2,
    "dht.lookups:HOP_MAX": 2,
    "tree.place:REFRESH_PERIOD": REFRESH,
    "tree.place:SUSPECT_AGE_MAX": 2,
}


class SpeakingHost(TreeHost):
    """A host that numbers its questions anew from a timeout when none is under way.

    Nothing is in flight then, and numbers of questions are compared with each other alone. It is
    as any other else.
    """

    __slots__ = ()

    def on_timeout(self) -> Effects:
        """As any host."""
        if not self.dht.lookups.pending:
            self.dht.lookups.nonce = 0
        return super().on_timeout()


class RestingHost(SpeakingHost):
    """A host of a DHT that is right and says nothing of itself, but answers questions.

    What it would say changes nothing there (lemma L6 of the DHT), and lets its hearer review its
    place; that is tried after every input, and must change nothing either.
    """

    __slots__ = ()

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """As any host, and then looks whether one more word of the DHT would do anything."""
        effects = super().on_message(message, sender)
        if self.place.review():
            raise AssertionError("a word of the DHT would have begun a search")
        return effects

    def on_timeout(self) -> Effects:
        """As any host, without the words of the ring and of the fingers."""
        effects = super().on_timeout()
        if self.place.review():
            raise AssertionError("a word of the DHT would have begun a search")
        return [it for it in effects if not (isinstance(it, Send) and _upkeep(it.message))]


KINDS: Mapping[str, type[TreeHost]] = {"resting": RestingHost, "speaking": SpeakingHost}


def _upkeep(message: Message) -> bool:
    return isinstance(message, (RingMessage, AskFinger))


class TreeModel(HostsModel):
    """Hosts 0 to n - 1 of a DHT that is right; parent and children of each are anybody.

    `links`: one child at most, no search under way. `searches`: and each believes that it searched
    for its keyset, or searches now although nothing is asked. `resting`: as `links`, of hosts whose
    DHT says nothing of itself; `speaking`: it does, but silence is not counted, and the contact is
    the host in the middle (both only where messages are heard before timeouts).
    """

    name = "tree"
    messages = TreeOverlay.messages
    starts = ("links", "searches", "resting", "speaking")
    passing = (Find, Check, Introduce, AskFinger, Finger)
    small = MappingProxyType({f"planaria.protocols.{name}": it for name, it in SMALLER.items()})

    overlay: ClassVar[TreeOverlay] = TreeOverlay()

    @property
    def constants(self) -> Constants:
        """Where silence is not counted it never comes."""
        if self.start not in KINDS:
            return self.small
        return {**self.small, "planaria.protocols.ring.sorted_ring:SILENCE_MAX": FOREVER}

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        more = {
            "links": "",
            "searches": ", its search done, under way or none",
            "resting": ", their DHT at rest",
            "speaking": ", their DHT speaking, silence not counted",
        }[self.start]
        return f"{self.n} hosts, parent and child of each any other, a dead one or none{more}"

    @property
    def contacts(self) -> tuple[NodeId, ...]:
        """A DHT whose contact is beside everybody hears nothing new from calls."""
        return (1,) if self.start == "speaking" and self.n == 3 else super().contacts

    def host(self, id: NodeId) -> TreeHost:
        """A host with a place in the tree."""
        made = KINDS.get(self.start, TreeHost)
        return made(id, self.overlay.space, self.overlay.tree, self.contacts)

    def choices(self) -> dict[NodeId, list[State]]:
        """Every choice of links and searches."""
        hosts = [self.host(id) for id in range(self.n)]
        give_places([it.dht for it in hosts], self.overlay.space)
        return {it.id: list(self._places(it)) for it in hosts}

    def _places(self, host: TreeHost) -> Iterator[State]:
        others: list[Any] = [None, DEAD, *(it for it in range(self.n) if it != host.id)]
        mine = host.dht.keyset
        searches: list[Any] = [(None, None)]
        if self.start == "searches":
            searches += [(mine, None), (None, mine), (mine, mine)]
        for parent, child, (searched, searching) in product(others, others, searches):
            place = host.place
            place.parent = parent
            place.children = () if child is None else (child,)
            place.searched, place.searching = searched, searching
            yield _copied(host)

    def plain(self, state: State) -> State:
        """As in the DHT; too old is too old; answers to a search count in whatever order."""
        assert isinstance(state, TreeHostState)
        nonce = state.dht.lookups.nonce
        plain_member(state.dht)
        state.dht.lookups.nonce = nonce
        if self.start in KINDS:
            state.dht.ring.silence = {}
        if self.start == "resting":
            state.dht.time = 0
        place = state.place
        place.age = min(place.age, REFRESH)
        place.answers.sort(key=lambda it: (it.owner, it.predecessor))
        place.asked.sort()
        return state


def _copied(host: TreeHost) -> State:
    """Its state as it is now: states share what they are made of with their node."""
    return decode_state(TreeHostState, host.snapshot())
