"""The DHT and the tree over it: hosts with any neighbours, alive, dead or none, and one contact."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar

from planaria.core.ids import NodeId
from planaria.core.node import Node
from planaria.core.overlay import Overlay, Violation
from planaria.core.state import State
from planaria.protocols.dht.member import DhtMember, DhtMemberState
from planaria.protocols.dht.node import DhtNode, DhtNodeState
from planaria.protocols.dht.overlay import DhtOverlay
from planaria.verify.coins import Coins
from planaria.verify.model import Flying, Model

DEAD = 9
SILENT = 2  # timeouts in a row while a neighbour has none
SMALL = {
    "ring.sorted_ring:SILENCE_MAX": SILENT,
    "ring.sorted_ring:LOST_MAX": 2,
    "ring.sorted_ring:LOST_AGE_MAX": 2,
    "dht.legitimacy:SILENCE_MAX": 2 * SILENT,  # half of it is legitimate
    "dht.member:CALL_PERIOD": 2,
    "dht.member:TIMES": 4,
}


class HostsModel(Model):
    """Hosts 0 to n - 1, judged as the product does; 0 is everybody's contact, and its own is 1."""

    overlay: ClassVar[Overlay]

    @property
    def contacts(self) -> tuple[NodeId, ...]:
        """Whom a host may ask who has no neighbours."""
        return (0, 1) if self.n > 1 else (0,)

    @abstractmethod
    def host(self, id: NodeId) -> Node:
        """A host as made."""

    def nodes(self, coins: Coins) -> list[Node]:
        """The hosts."""
        return [self.host(id) for id in range(self.n)]

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """As the product judges them."""
        flying = [(target, message) for _, target, message in channel]
        return self.overlay.violations(states, flying)


class DhtModel(HostsModel):
    """Hosts of a DHT.

    `living`: left, right and ring are any host or none, on any side, in one part or several.
    `dead`: or a host that died; and any host, alive or dead, is the finger of level 1.
    """

    name = "dht"
    messages = DhtOverlay.messages
    starts = ("living", "dead")
    small = MappingProxyType({f"planaria.protocols.{name}": it for name, it in SMALL.items()})

    overlay: ClassVar[DhtOverlay] = DhtOverlay()

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        named = "any host or none" if self.start == "living" else "any host, a dead one or none"
        more = "" if self.start == "living" else ", any of them the finger of level 1"
        return f"{self.n} hosts, left, right and ring of each {named}, connected or not{more}"

    def host(self, id: NodeId) -> DhtNode:
        """A host of the DHT alone."""
        return DhtNode(id, self.overlay.space, self.contacts)

    def choices(self) -> dict[NodeId, list[State]]:
        """Every choice of references."""
        return {id: list(self._places(id)) for id in range(self.n)}

    def _places(self, id: NodeId) -> Iterator[State]:
        others: list[Any] = [None, *(it for it in range(self.n) if it != id)]
        fingers: list[Any] = [None]
        if self.start == "dead":
            others.append(DEAD)
            fingers = others
        for place in product(others, others, others, fingers):
            host = self.host(id)
            set_place(host.dht, place)
            yield host.state()

    def plain(self, state: State) -> State:
        """Keys are computed anew; a silence that is too long is too long."""
        assert isinstance(state, DhtNodeState)
        plain_member(state.dht)
        return state


def set_place(member: DhtMember, place: Sequence[NodeId | None]) -> None:
    """Give a member these neighbours, under their right labels."""
    left, right, ring, finger = (None if it is None else member.host_keys.ref(it) for it in place)
    member.ring.left, member.ring.right, member.ring.ring = left, right, ring
    if finger is not None:
        member.fingers.known = {1: finger[1]}


def plain_member(state: DhtMemberState) -> None:
    """Take away what is only remembered to save work, and what counts for nothing."""
    state.host_keys.keys, state.host_keys.labels = {}, {}
    state.fingers.sound = (None, {})
    state.ring.silence = {id: min(it, SILENT + 1) for id, it in state.ring.silence.items()}
    state.lookups.nonce = 0
