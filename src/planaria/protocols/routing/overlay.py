"""Brokers on a tree that never changes: how to make, break and judge leased routing by itself."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from random import Random
from typing import Any

from msgspec import structs

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effect, Effects, Node, Publish
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.filters.filters import Filter
from planaria.protocols.routing.arbitrary import forge, scramble
from planaria.protocols.routing.leases import Lease
from planaria.protocols.routing.legitimacy import Judge
from planaria.protocols.routing.link import Link
from planaria.protocols.routing.messages import MESSAGES as ROUTING_MESSAGES
from planaria.protocols.routing.messages import SESSIONS
from planaria.protocols.routing.node import Broker, BrokerState
from planaria.protocols.routing.strategies import reduced
from planaria.protocols.routing.timing import Timing, timing
from planaria.protocols.routing.workload import TOPIC, UNIVERSE, random_attributes, random_filter

CLIENTS = 3  # at each broker, with refresh times of their own
INTERVALS = (0.0, 1.5)  # of a link: half an interval on the way, then up to one to the timeout


class TreeBroker(Broker):
    """A broker that keeps its links as they are in its read-only memory (paper 4, section 3)."""

    __slots__ = ("neighbours", "upwards")

    def __init__(
        self, id: NodeId, neighbours: Sequence[NodeId], upwards: NodeId | None, timing: Timing,
        rng: Random, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(id, timing, rng, **options)
        self.neighbours, self.upwards = list(neighbours), upwards

    def on_timeout(self) -> Effects:
        """Take the links from the tree, then do what a broker does."""
        effects: list[Effect] = list(self.set_links(self.neighbours, self.upwards))
        return [*effects, *super().on_timeout()]


class RoutingOverlay(Overlay):
    """Leased content-based routing on a complete tree of brokers."""

    name = "planaria.protocols.routing.overlay:RoutingOverlay"
    messages = ROUTING_MESSAGES
    delivers_once = False  # while it heals, twice is possible; at most once comes with legitimacy
    delay_max = 4.0  # pi >= 2 rho + 4 over two links or more: a renewal may be lost, the next late

    def __init__(
        self, strategy: str = "covering", hierarchical: bool = False, degree: int = 3,
        subscriptions: int = 30, rho: int = 2, waste: float = 0.0,
    ) -> None:  # fmt: skip
        self.options = {
            "strategy": strategy,
            "hierarchical": hierarchical,
            "waste_max": waste,
        }
        self.degree, self.subscription_count, self.rho = degree, subscriptions, rho
        self.n = 0
        self.timing = self._timing(1)
        self.wishes: dict[NodeId, list[tuple[int, Filter]]] = {}
        self._judge = Judge(UNIVERSE, strategy=strategy, hierarchical=hierarchical, waste_max=waste)

    @property
    def calm(self) -> int:  # type: ignore[override]
        """A leasing period: only then no flag that a fault left can end a lease."""
        return self.timing.pi + 1

    def parent(self, id: NodeId) -> NodeId | None:
        """The broker above `id` in the complete tree."""
        return None if id == 0 else (id - 1) // self.degree

    def neighbours(self, id: NodeId) -> list[NodeId]:
        """The parent and the children of `id`."""
        first = self.degree * id + 1
        children = range(first, min(first + self.degree, self.n))
        above = self.parent(id)
        return [*([] if above is None else [above]), *children]

    def spawn(self, id: NodeId, rng: Random) -> TreeBroker:
        """A broker with its clients and an empty table."""
        above = self.parent(id)
        broker = TreeBroker(id, self.neighbours(id), above, self.timing, rng, **self.options)
        for client, filter in self.wishes.get(id, []):
            broker.subscribe(client, [filter])
        return broker

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """All brokers and clients start at once."""
        self._prepare(n, rng)
        return [self.spawn(id, rng) for id in range(n)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Every table as it is when nothing has changed for long."""
        brokers = [node for node in self.fresh(n, rng) if isinstance(node, TreeBroker)]
        for broker in brokers:
            broker.table.clock = rng.randrange(self.timing.pi)
            broker.round = rng.randrange(self.timing.rho)
            broker.links = {id: Link(rng.randrange(SESSIONS)) for id in broker.neighbours}
            broker.parent = broker.upwards
        acquaint({broker.id: broker for broker in brokers})
        announced: dict[tuple[NodeId, NodeId], dict[int, Filter]] = {}
        for id in reversed(range(1, n)):
            self._agree(brokers, announced, id, (id - 1) // self.degree)
        for id in range(1, n):
            self._agree(brokers, announced, (id - 1) // self.degree, id)
        for broker in brokers:
            broker.table.reindex()
        return list(brokers)

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary table, flags, clocks, ids, filters and memory; links and clients are given."""
        assert isinstance(node, Broker)
        scramble(node, ids, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An arbitrary message between brokers."""
        return forge(ids, rng)

    def speaker(self, message: Message) -> NodeId | None:
        """In whose name a message speaks, whoever sent it."""
        return routing_speaker(message)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Entries that are missing or stale, judged by trying every notification."""
        brokers = {id: it for id, it in states.items() if isinstance(it, BrokerState)}
        parents = {id: self.parent(id) for id in brokers}
        return self._judge.violations(brokers, parents, channel)

    def may_crash(self, node: Node) -> bool:
        """The tree of this overlay cannot change."""
        return False

    def publication(self, id: NodeId, number: int) -> Command | None:
        """One of the notifications of the small world, numbered."""
        return Publish(TOPIC, b"%d" % number, random_attributes(Random(number)))

    def bound(self, n: int, delay: float) -> int:
        """2 pi + d*dmax of section 3.3, for links that take `delay` and up to one interval more."""
        found = self._timing(n)
        return found.delta + ceil(max(0.0, delay + 1 - INTERVALS[1]) * self._diameter(n))

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """Table sizes and traffic so far."""
        brokers = [it for it in states.values() if isinstance(it, BrokerState)]
        return {
            "nodes": len(brokers),
            **traffic(brokers),
            "bound_intervals": self.timing.delta,
        }

    def _prepare(self, n: int, rng: Random) -> None:
        self.n, self.wishes, self.timing = n, {}, self._timing(n)
        for _ in range(self.subscription_count):
            wish = (rng.randrange(CLIENTS), random_filter(rng))
            self.wishes.setdefault(rng.randrange(n), []).append(wish)

    def _diameter(self, n: int) -> int:
        depth, last = 0, n - 1
        while last > 0:
            last, depth = (last - 1) // self.degree, depth + 1
        return max(1, 2 * depth)

    def _timing(self, n: int) -> Timing:
        flooding = self.options["strategy"] == "flooding"
        found = timing(self.rho, INTERVALS, self._diameter(n), flooding=flooding)
        return bearing(found, self.delay_max)

    def _agree(
        self,
        brokers: Sequence[TreeBroker],
        announced: dict[tuple[NodeId, NodeId], dict[int, Filter]],
        source: NodeId,
        target: NodeId,
    ) -> None:
        """Let `target` know what it has to know of what is behind `source`."""
        broker = brokers[source]
        known = {
            id: lease.filter
            for destination, leases in broker.table.entries.items()
            if destination != target
            for id, lease in leases.items()
        }
        if self.options["hierarchical"] and target != broker.upwards:
            known = {}
        strategy = str(self.options["strategy"])
        found = reduced(strategy, known)
        broker.announcer.announced[target] = found
        if found:
            brokers[target].table.entries[source] = {id: Lease(it) for id, it in found.items()}


def bearing(found: Timing, delay: float) -> Timing:
    """Let cancels be remembered for as long as the slowest message that they can overtake.

    Leases and memories are made for links as they usually are: made for the slowest, what a fault
    left would live so much longer. To remember a cancel for longer costs next to nothing.
    """
    return structs.replace(found, late=1 + ceil(delay))


def routing_speaker(message: Message) -> NodeId | None:
    """In whose name a message between brokers speaks."""
    return getattr(message, "sender", None) if isinstance(message, ROUTING_MESSAGES) else None


def acquaint(brokers: Mapping[NodeId, Broker]) -> None:
    """Let both ends of every link know the other's session."""
    for id, broker in brokers.items():
        for neighbour, link in broker.links.items():
            link.theirs = brokers[neighbour].links[id].session


def traffic(brokers: Iterable[BrokerState]) -> dict[str, int]:
    """How much brokers have in their tables, and have sent."""
    found = list(brokers)
    return {
        "table_entries": sum(len(it) for b in found for it in b.table.entries.values()),
        "control_messages": sum(broker.announcer.sent for broker in found),
        "notification_messages": sum(broker.notifications_sent for broker in found),
    }
