"""The content overlay: how to make, break and judge brokers on a tree that heals."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, log2
from random import Random
from types import MappingProxyType
from typing import Any

from msgspec import structs

from planaria.core.chance import derive
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Leave, Node, Publish
from planaria.core.overlay import Channel, Overlay, Start, Violation
from planaria.core.state import State
from planaria.filters.filters import Filter
from planaria.protocols.content.node import ContentBroker, ContentBrokerState
from planaria.protocols.dht.arbitrary import wind
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.messages import MESSAGES as DHT_MESSAGES
from planaria.protocols.dht.overlay import CONTACTS
from planaria.protocols.ring.messages import MESSAGES as RING_MESSAGES
from planaria.protocols.ring.sorted_ring import SILENCE_MAX
from planaria.protocols.routing.arbitrary import forge as forge_for_routing
from planaria.protocols.routing.arbitrary import scramble
from planaria.protocols.routing.leases import Lease
from planaria.protocols.routing.legitimacy import Judge
from planaria.protocols.routing.link import Link
from planaria.protocols.routing.messages import MESSAGES as ROUTING_MESSAGES
from planaria.protocols.routing.messages import SESSIONS
from planaria.protocols.routing.overlay import (
    INTERVALS,
    acquaint,
    bearing,
    routing_speaker,
    traffic,
)
from planaria.protocols.routing.strategies import reduced
from planaria.protocols.routing.timing import Timing, timing
from planaria.protocols.routing.workload import TOPIC, UNIVERSE, random_attributes, random_filter
from planaria.protocols.tree.arbitrary import corrupt_host, forge_message
from planaria.protocols.tree.legitimacy import RightTree
from planaria.protocols.tree.legitimacy import violations as tree_violations
from planaria.protocols.tree.messages import MESSAGES as TREE_MESSAGES
from planaria.protocols.tree.node import TreeHost
from planaria.protocols.tree.node import speaker as tree_speaker
from planaria.protocols.tree.overlay import give_links, healing_bound, shape
from planaria.protocols.tree.reference_tree import BinaryTree

CLIENTS = 3  # at each broker, with refresh times of their own
RECONFIGURATION = 32  # timeouts in which the tree is whole again after a crash that was noticed


class ContentOverlay(Overlay):
    """Subscriptions by content over a tree of brokers that joins, crashes and heals."""

    name = "content"
    messages = (*RING_MESSAGES, *DHT_MESSAGES, *TREE_MESSAGES, *ROUTING_MESSAGES)
    delivers_once = False  # while it heals, twice is possible; at most once comes with legitimacy
    contacts = CONTACTS
    delay_max = SILENCE_MAX / 2  # as the tree below, and pi >= 2 rho + 8; memories bear less

    def __init__(
        self,
        brokers: int = 0,
        subscriptions: int = 100,
        strategy: str = "covering",
        hierarchical: bool = False,
        rho: int = 4,
    ) -> None:
        for name, number in (("brokers", brokers), ("subscriptions", subscriptions)):
            if number < 0:
                raise UsageError(f"{name} {number}: at least 0")
        self.brokers, self.subscription_count, self.rho = brokers, subscriptions, rho
        self.options = {"strategy": strategy, "hierarchical": hierarchical}
        self.space, self.tree = KeySpace(), BinaryTree(160)
        self.timing = self.timing_of(2)
        self.members = 1
        self.seed = 0
        self._judge = _judge_of_small_world(strategy, hierarchical=hierarchical)

    def judge(self, universe: Sequence[Mapping[str, Any]]) -> Judge:
        """Who says whether the routing is right, by trying every notification of `universe`."""
        strategy, up = str(self.options["strategy"]), bool(self.options["hierarchical"])
        return Judge(universe, strategy=strategy, hierarchical=up)

    @property
    def calm(self) -> int:  # type: ignore[override]
        """Long enough for late droppings of the ring, to see publications arrive, and for a
        leasing period: only then no flag that a fault left can end a lease."""
        return max(SILENCE_MAX + 2 + self.reach, self.timing.pi + 1)

    @property
    def reach(self) -> int:
        """Intervals in which a publication is everywhere, over links as they are assumed."""
        return self.timing.memory - RECONFIGURATION - self.rho

    def arrival(self, delay: float) -> float:
        """Intervals in which a publication is everywhere, if no message takes longer."""
        return max(self.reach, ceil(self._diameter(self.members) * (delay + 1)))

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """The first state called `name`, of `brokers` brokers if that was asked."""
        n = self.brokers or n
        self.members = n
        self.timing = self.timing_of(n)
        self.seed = protocol.getrandbits(64)
        found = super().start(name, n, rng, protocol)
        if name == "corrupt" and rng.random() < 0.25:  # beliefs that confirm each other
            brokers = [node for node in found.nodes if isinstance(node, ContentBroker)]
            wind([broker.host.dht for broker in brokers], rng)
        return found

    def wishes(self, id: NodeId) -> list[tuple[int, Filter]]:
        """What the clients of broker `id` want, the same after a restart."""
        each = ceil(self.subscription_count / self.members)
        rng = Random(derive(self.seed, "wishes", id))
        return [(rng.randrange(CLIENTS), random_filter(rng)) for _ in range(each)]

    def make(self, id: NodeId, rng: Random) -> ContentBroker:
        """A broker without clients."""
        host = TreeHost(id, self.space, self.tree, self.contacts)
        return ContentBroker(id, host, self.timing, rng, **self.options)

    def spawn(self, id: NodeId, rng: Random) -> ContentBroker:
        """A newcomer with its clients, that knows the contacts."""
        broker = self.make(id, rng)
        for client, filter in self.wishes(id):
            broker.subscribe(client, [filter])
        return broker

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Ring, tree and every table as they are when nothing has changed for long."""
        brokers = {id: self.spawn(id, rng) for id in range(n)}
        give_links([broker.host for broker in brokers.values()])
        for broker in brokers.values():
            place = broker.host.place
            broker.links = {id: Link(rng.randrange(SESSIONS)) for id in place.neighbours}
            broker.parent = place.parent
            broker.table.clock = rng.randrange(self.timing.pi)
            broker.round = rng.randrange(self.timing.rho)
        acquaint(brokers)
        right = RightTree(list(brokers), self.space, self.tree)
        down = sorted((id for id in brokers if right.parent[id] is not None), key=right.depth)
        for id in reversed(down):
            self._agree(brokers[id], brokers[right.parent[id] or 0])
        for id in down:
            self._agree(brokers[right.parent[id] or 0], brokers[id])
        for broker in brokers.values():
            broker.table.reindex()
        return list(brokers.values())

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary variables in all three layers; what clients want is given."""
        assert isinstance(node, ContentBroker)
        if not node.host.dht.leaving:
            corrupt_host(node.host, ids, rng)
            scramble(node, ids, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An arbitrary message of any layer."""
        if rng.random() < 0.5:
            return forge_for_routing(ids, rng)
        return rng.choice(ids), forge_message(ids, self.space, rng)

    def speaker(self, message: Message) -> NodeId | None:
        """In whose name a message of any layer speaks, whoever sent it."""
        named = routing_speaker(message)
        return tree_speaker(message) if named is None else named

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """The DHT and the tree first; only on the right tree can routing be judged."""
        flight = list(channel)
        return self.tree_violations(states, flight) or self._routing(states, flight)

    def tree_violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """What is wrong below the routing."""
        hosts = {id: broker.host for id, broker in _brokers(states).items()}
        return tree_violations(hosts, channel, self.space, self.tree)

    def _routing(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        present = {id: it for id, it in _brokers(states).items() if not it.host.dht.leaving}
        parents = {id: it.host.place.parent for id, it in present.items()}
        return self._judge.violations(present, parents, channel)

    def may_crash(self, node: Node) -> bool:
        """All but one contact: who joins after all contacts died has nobody to ask."""
        return node.id != CONTACTS[0]

    def leave(self, node: Node) -> Command | None:
        """Any broker but that contact may leave, and its clients with it."""
        assert isinstance(node, ContentBroker)
        return None if node.host.dht.leaving or node.id == CONTACTS[0] else Leave()

    def publication(self, id: NodeId, number: int) -> Command | None:
        """One of the notifications of the small world, numbered."""
        return Publish(TOPIC, b"%d" % number, dict(_numbered(number)))

    def bound(self, n: int, delay: float) -> int:
        """Intervals to heal in if no message takes longer than `delay`.

        When the tree is right false leases run out (2 pi) and true ones spread (d*dmax). What
        nobody published is replayed for two periods of the memory, then on its way (d*dmax).
        """
        members = self.brokers or n
        found, spread = self.timing_of(members), ceil(self._diameter(members) * (delay + 1))
        routed = healing_bound(members, delay) + 2 * found.pi + spread
        return max(routed, 2 * found.memory + spread)

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """The shape of the tree, table sizes, traffic."""
        brokers = _brokers(states)
        present = {id: it.host for id, it in brokers.items() if not it.host.dht.leaving}
        return {
            **shape(present, self.space),
            **traffic(brokers.values()),
            "bound_intervals": self.timing.delta,
        }

    def timing_of(self, n: int) -> Timing:
        """Leases for the longest path that is likely among `n` hashed brokers."""
        flooding = self.options["strategy"] == "flooding"
        found = timing(self.rho, INTERVALS, self._diameter(n), flooding=flooding)
        found = structs.replace(found, memory=found.memory + RECONFIGURATION)
        return bearing(found, self.delay_max)

    def _diameter(self, n: int) -> int:
        """Longest of 300 random trees each: 10 links for 12 brokers, 16 for 60, 22 for 300."""
        return ceil(3 * log2(max(2, n))) + 2

    def _agree(self, source: ContentBroker, target: ContentBroker) -> None:
        """Let `target` know what it has to know of what is behind `source`."""
        known = {
            id: lease.filter
            for destination, leases in source.table.entries.items()
            if destination != target.id
            for id, lease in leases.items()
        }
        if source.hierarchical and target.id != source.parent:
            known = {}
        found = reduced(source.strategy, known, identify=source.announcer.filter_id)
        source.announcer.announced[target.id] = found
        if found:
            target.table.entries[source.id] = {id: Lease(it) for id, it in found.items()}


@lru_cache(maxsize=8)  # what filters mean in it is the same in every run
def _judge_of_small_world(strategy: str, *, hierarchical: bool) -> Judge:
    return Judge(UNIVERSE, strategy=strategy, hierarchical=hierarchical)


@lru_cache(maxsize=64)  # every broker is asked for the same one, and a generator costs much
def _numbered(number: int) -> Mapping[str, Any]:
    return MappingProxyType(random_attributes(Random(number)))


def _brokers(states: Mapping[NodeId, State]) -> dict[NodeId, ContentBrokerState]:
    return {id: it for id, it in states.items() if isinstance(it, ContentBrokerState)}
