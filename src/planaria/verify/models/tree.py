"""The tree over a DHT that is right: hosts with any parent, any children, alive, dead or none."""

from collections.abc import Iterator
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar

from planaria.core.ids import NodeId
from planaria.core.state import State, decode_state
from planaria.protocols.dht.overlay import give_places
from planaria.protocols.tree.node import TreeHost, TreeHostState
from planaria.protocols.tree.overlay import TreeOverlay
from planaria.verify.models.dht import DEAD, SMALL, HostsModel, plain_member

REFRESH = 3
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


class TreeModel(HostsModel):
    """Hosts 0 to n - 1 of a DHT that is right; parent and children of each are anybody.

    `links`: one child at most, no search under way. `searches`: and each believes that it searched
    for its keyset, or searches now although nothing is asked.
    """

    name = "tree"
    messages = TreeOverlay.messages
    starts = ("links", "searches")
    small = MappingProxyType({f"planaria.protocols.{name}": it for name, it in SMALLER.items()})

    overlay: ClassVar[TreeOverlay] = TreeOverlay()

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        more = "" if self.start == "links" else ", its search done, under way or none"
        return f"{self.n} hosts, parent and child of each any other, a dead one or none{more}"

    def host(self, id: NodeId) -> TreeHost:
        """A host with a place in the tree."""
        return TreeHost(id, self.overlay.space, self.overlay.tree, self.contacts)

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
        """As in the DHT; too old is too old."""
        assert isinstance(state, TreeHostState)
        nonce = state.dht.lookups.nonce
        plain_member(state.dht)
        state.dht.lookups.nonce = nonce
        state.place.age = min(state.place.age, REFRESH)
        return state


def _copied(host: TreeHost) -> State:
    """Its state as it is now: states share what they are made of with their node."""
    return decode_state(TreeHostState, host.snapshot())
