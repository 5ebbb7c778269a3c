"""When is the routing of a tree of brokers right? Judged by trying every notification there is.

Shares no code with filters, strategies or tables: a filter is read from its ranges in the plainest
way, and what must be known over a link is collected by walking the tree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.overlay import Channel, Violation
from planaria.filters.filters import Filter
from planaria.protocols.routing.broker import Broker
from planaria.protocols.routing.messages import STAMPS, Update

Tree = Mapping[NodeId, Sequence[NodeId]]  # every broker's neighbours
Mask = int  # one bit for each notification of the universe
Subscriptions = list[tuple[int, Filter]]


class Expected:
    """What must be known over one direction of a link."""

    __slots__ = ("masks", "subscriptions", "union")

    def __init__(self, subscriptions: Subscriptions, mask: Callable[[Filter], Mask]) -> None:
        self.subscriptions = subscriptions
        self.masks: dict[Mask, Filter] = {}  # each with one filter that means it
        for _, filter in subscriptions:
            self.masks.setdefault(mask(filter), filter)
        self.union = _union(self.masks)


class Judge:
    """Compares every broker's entries with the clients behind each link."""

    def __init__(self, universe: Sequence[Mapping[str, Any]]) -> None:
        self.universe = universe
        self._masks: dict[Filter, Mask] = {}

    def violations(
        self, brokers: Mapping[NodeId, Broker], parents: Mapping[NodeId, NodeId | None],
        channel: Channel,
    ) -> list[Violation]:  # fmt: skip
        """Every entry that is missing, stale or in flight without a reason."""
        tree = _neighbours(parents)
        found: list[Violation] = []
        expected: dict[tuple[NodeId, NodeId], Expected] = {}
        for id, broker in brokers.items():
            for neighbour in tree[id]:
                silent = broker.strategy == "flooding" or (
                    broker.hierarchical and parents[id] == neighbour
                )
                behind = [] if silent else list(_behind(brokers, tree, neighbour, id))
                expected[id, neighbour] = Expected(behind, self.mask)
        for id, broker in brokers.items():
            found += self._links(broker, tree[id], expected)
            found += self._clients(broker)
            found += _cancelled(broker, brokers)
        for target, message in channel:
            if isinstance(message, Update) and target in brokers:
                found += self._in_flight(target, message, expected)
        return found or [it for broker in brokers.values() for it in self._index(broker)]

    def _index(self, broker: Broker) -> Iterator[Violation]:
        """The broker finds what its entries say: else it would not forward what is wanted."""
        behind = {
            destination: _union(self.mask(lease.filter) for lease in leases.values())
            for destination, leases in broker.table.entries.items()
        }
        for place, attributes in enumerate(self.universe):
            wanted = [it for it, mask in behind.items() if mask >> place & 1]
            if sorted(broker.table.destinations(attributes)) != sorted(wanted):
                yield Violation("index", broker.id, f"finds others than {wanted}: {attributes}")
                return

    def _links(
        self, broker: Broker, near: Sequence[NodeId],
        expected: Mapping[tuple[NodeId, NodeId], Expected],
    ) -> Iterator[Violation]:  # fmt: skip
        id = broker.id
        if sorted(broker.links) != sorted(near):
            yield Violation("links", id, f"has {sorted(broker.links)}, should have {sorted(near)}")
        for destination, leases in broker.table.entries.items():
            if destination >= 0 and destination not in near and leases:
                yield Violation("stale", id, f"{len(leases)} entries for {destination}, no link")
        for neighbour in near:
            have = {key: it.filter for key, it in broker.table.of(neighbour).items()}
            yield from self._same(broker, f"behind {neighbour}", have, expected[id, neighbour])
            told = broker.announcer.told.get(neighbour, {})
            yield from self._same(broker, f"told {neighbour}", told, expected.get((neighbour, id)))

    def _same(
        self, broker: Broker, where: str, have: Mapping[int, Filter], expected: Expected | None
    ) -> Iterator[Violation]:  # fmt: skip
        if expected is None:
            return
        if broker.strategy == "simple":
            if have != dict(expected.subscriptions):
                yield Violation("entries", broker.id, f"{where}: other subscriptions than are")
            return
        ids = {id for id, _ in expected.subscriptions}
        if broker.strategy == "identity" and sorted(have) != sorted(ids):
            yield Violation("entries", broker.id, f"{where}: other filters than are subscribed")
        masks = dict.fromkeys(self.mask(filter) for filter in have.values())
        for mask, filter in expected.masks.items():
            if mask not in masks and not any(mask & ~it == 0 for it in masks):
                yield Violation("missing", broker.id, f"{where}: nothing covers {filter}")
                break
        surplus = _union(masks) & ~expected.union
        if surplus and broker.announcer.waste_max == 0:
            yield Violation("stale", broker.id, f"{where}: {surplus.bit_count()} wanted by nobody")

    def _clients(self, broker: Broker) -> Iterator[Violation]:
        wanted = {-1 - client: it for client, it in broker.clients.items() if it}
        for destination in sorted({*wanted, *(it for it in broker.table.entries if it < 0)}):
            have = {id: it.filter for id, it in broker.table.of(destination).items()}
            if have != wanted.get(destination, {}):
                detail = f"entries of client {-1 - destination} are not what it wants"
                yield Violation("clients", broker.id, detail)

    def _in_flight(
        self, target: NodeId, message: Update, expected: Mapping[tuple[NodeId, NodeId], Expected]
    ) -> Iterator[Violation]:  # fmt: skip
        wanted = expected.get((target, message.sender))
        if wanted is None:
            if message.leases:
                yield Violation("channel", target, f"leases from {message.sender}, no neighbour")
            return
        if any(self.mask(filter) & ~wanted.union for _, filter in message.leases):
            yield Violation("channel", target, "a lease in flight that nobody wants")
        ids = {id for id, _ in wanted.subscriptions} if message.cancels else {}
        if any(id in ids for id in message.cancels):
            yield Violation("channel", target, "a cancel in flight of what somebody wants")

    def mask(self, filter: Filter) -> Mask:
        """Which notifications of the universe `filter` matches."""
        found = self._masks.get(filter)
        if found is None:
            found = self._masks[filter] = self._try(filter)
        return found

    def _try(self, filter: Filter) -> Mask:
        found = 0
        for place, attributes in enumerate(self.universe):
            if all(_allowed(values, attributes.get(name)) for name, values in filter.constraints):
                found |= 1 << place
        return found


def _cancelled(broker: Broker, brokers: Mapping[NodeId, Broker]) -> Iterator[Violation]:
    """No cancel is remembered that was not sent yet: it would end a lease to come."""
    for (destination, lease), (stamp, _) in broker.table.cancelled.items():
        if destination in brokers:
            ahead = (stamp - brokers[destination].announcer.stamp) % STAMPS
            if 0 < ahead < STAMPS // 2:
                detail = f"a cancel of {lease} by {destination} that is still to come"
                yield Violation("cancelled", broker.id, detail)


def _allowed(values: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return any(low <= value < high for low, high in values.booleans)
    if isinstance(value, str):
        return any(low[1] <= value and (high[0] or value < high[1]) for low, high in values.strings)
    if value is None:
        return False
    return any(
        (value > low if after else value >= low) and (value <= high if end else value < high)
        for (low, after), (high, end) in values.numbers
    )


def _union(masks: Iterable[Mask]) -> Mask:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _neighbours(parents: Mapping[NodeId, NodeId | None]) -> dict[NodeId, list[NodeId]]:
    found: dict[NodeId, list[NodeId]] = {id: [] for id in parents}
    for id, parent in parents.items():
        if parent is not None:
            found[id].append(parent)
            found[parent].append(id)
    return found


def _behind(
    brokers: Mapping[NodeId, Broker], tree: Tree, start: NodeId, back: NodeId
) -> Iterator[tuple[int, Filter]]:
    """All subscriptions of clients on the far side of a link."""
    pending = [(start, back)]
    while pending:
        here, came = pending.pop()
        for wanted in brokers[here].clients.values():
            yield from wanted.items()
        pending += [(there, here) for there in tree[here] if there != came]
