"""The tree over the DHT as an overlay: how to make, break and judge a network of `TreeHost`."""

from collections.abc import Mapping, Sequence
from math import ceil, log2
from random import Random
from typing import Any

from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import Command, Leave, Node
from planaria.core.overlay import Channel, Overlay, Start, Violation
from planaria.core.state import State
from planaria.protocols.dht.arbitrary import wind
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.lookups import GAP_MAX
from planaria.protocols.dht.messages import MESSAGES as DHT_MESSAGES
from planaria.protocols.dht.node import Lookup
from planaria.protocols.dht.overlay import CONTACTS, give_places, walk_lookups
from planaria.protocols.dht.overlay import healing_bound as dht_bound
from planaria.protocols.ring.messages import MESSAGES as RING_MESSAGES
from planaria.protocols.ring.sorted_ring import SILENCE_MAX
from planaria.protocols.tree.arbitrary import corrupt_host, forge_message
from planaria.protocols.tree.legitimacy import RightTree, is_tree, violations
from planaria.protocols.tree.messages import MESSAGES as TREE_MESSAGES
from planaria.protocols.tree.node import TreeHost, TreeHostState, speaker
from planaria.protocols.tree.place import REFRESH_PERIOD, neighbours_in
from planaria.protocols.tree.reference_tree import reference_tree


class TreeOverlay(Overlay):
    """A tree of hosts over a DHT: at most `degree` neighbours each, found by a few lookups.

    For a degree above three the bound is likely for each host, not certain.
    """

    name = "tree"
    messages = (*RING_MESSAGES, *DHT_MESSAGES, *TREE_MESSAGES)
    calm = SILENCE_MAX + 2  # a neighbour found late may still be dropped for its silence before
    delay_max = SILENCE_MAX / 2  # there and back within the silence that shows a neighbour gone

    def __init__(self, degree: int = 3, space: KeySpace | None = None) -> None:
        self.space = space or KeySpace()
        self.tree = reference_tree(degree, self.space.bits)

    def spawn(self, id: NodeId, rng: Random) -> TreeHost:
        """A newcomer knows the contacts."""
        return TreeHost(id, self.space, self.tree, CONTACTS)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Everybody beside whom the definitions put there."""
        hosts = [self.spawn(id, rng) for id in range(n)]
        give_links(hosts)
        return [*hosts]

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """The first state called `name`; one in four corrupt ones is a ring that winds."""
        found = super().start(name, n, rng, protocol)
        if name == "corrupt" and rng.random() < 0.25:
            wind([node.dht for node in found.nodes if isinstance(node, TreeHost)], rng)
        return found

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary variables in both layers."""
        assert isinstance(node, TreeHost)
        if not node.dht.leaving:
            corrupt_host(node, ids, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An arbitrary message to anybody."""
        return rng.choice(ids), forge_message(ids, self.space, rng)

    def speaker(self, message: Message) -> NodeId | None:
        """In whose name a message speaks, whoever sent it."""
        return speaker(message)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Compare with the one right ring and the one right tree."""
        return violations(_hosts(states), channel, self.space, self.tree)

    def may_crash(self, node: Node) -> bool:
        """All but one contact: who joins after all contacts died has nobody to ask."""
        return node.id != CONTACTS[0]

    def leave(self, node: Node) -> Command | None:
        """Any member but that contact may leave."""
        assert isinstance(node, TreeHost)
        return None if node.dht.leaving or node.id == CONTACTS[0] else Leave()

    def publication(self, id: NodeId, number: int) -> Command | None:
        """Look a key up."""
        return Lookup(stable_hash("publication", number) % self.space.size)

    def bound(self, n: int, delay: float) -> int:
        """Intervals to heal in if no message takes longer than `delay`; see `healing_bound`."""
        return healing_bound(n, delay)

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """The shape of the present tree."""
        present = {id: it for id, it in _hosts(states).items() if not it.dht.leaving}
        return shape(present, self.space)


def healing_bound(n: int, delay: float) -> int:
    """Intervals after the last fault within which `n` hosts are a legitimate tree.

    Once the DHT is: a lookup asked before is asked again, a search for no reason comes round, and
    its two rounds of lookups take the hops of a lookup and the way back.
    """
    hops = ceil(log2(max(2, n))) + 2
    return dht_bound(n, delay) + GAP_MAX + REFRESH_PERIOD + ceil(2 * hops * (delay + 1))


def give_links(hosts: Sequence[TreeHost]) -> None:
    """Make `hosts` a legitimate DHT with a legitimate tree over it."""
    space, tree = hosts[0].dht.space, hosts[0].place.tree
    give_places([host.dht for host in hosts], space)
    right = RightTree([host.id for host in hosts], space, tree)
    for host in hosts:
        host.place.parent = right.parent[host.id]
        host.place.children = tuple(sorted(right.children[host.id], key=right.topmost.__getitem__))
        host.place.searched = host.dht.keyset


def shape(hosts: Mapping[NodeId, TreeHostState], space: KeySpace) -> dict[str, Any]:
    """Figures of a tree of hosts, for people and programs."""
    links = {id: neighbours_in(host.place) for id, host in hosts.items()}
    hops = walk_lookups({id: host.dht for id, host in hosts.items()}, space)
    return {
        "hosts": len(hosts),
        "tree": is_tree(links),
        "degree_max": max((len(near) for near in links.values()), default=0),
        "lookup_hops_mean": sum(hops) / max(1, len(hops)),
        "lookup_hops_max": max(hops, default=0),
    }


def _hosts(states: Mapping[NodeId, State]) -> dict[NodeId, TreeHostState]:
    return {id: state for id, state in states.items() if isinstance(state, TreeHostState)}
