"""When is the routing of a tree of brokers right? Judged by trying every notification there is.

Shares no code with filters, strategies or tables: a filter is read from its ranges in the plainest
way, and what must be known over a link is collected by walking the tree.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.overlay import Channel, Violation
from planaria.filters.filters import Filter
from planaria.protocols.routing.messages import STAMPS, Update
from planaria.protocols.routing.node import BrokerState

Tree = Mapping[NodeId, Sequence[NodeId]]  # every broker's neighbours
Mask = int  # one bit for each notification of the universe
Filters = tuple[Filter, ...]
Subscriptions = list[tuple[int, Filter]]

REMEMBERED = 4_096  # groups of filters whose meaning is known; a trial sees some hundreds
MASKS_MAX = 65_536  # filters of which it is known what they match, 0.1 kB each


class Meaning:
    """What some filters match: each by itself, and all together.

    The judge has one for equal filters, so two are the same only if they are one.
    """

    __slots__ = ("masks", "union")

    def __init__(self, masks: Iterable[Mask]) -> None:
        self.masks = dict.fromkeys(masks)
        self.union = _union(self.masks)

    def lacks(self, other: "Meaning") -> Mask | None:
        """The first mask of the other that none of mine covers; None: I mean as much."""
        for mask in other.masks:
            if mask not in self.masks and not _covered(mask, self.masks):
                return mask
        return None


class Expected:
    """What must be known over one direction of a link."""

    __slots__ = ("brokers", "filters", "meaning")

    def __init__(self, brokers: Sequence[BrokerState], filters: Filters, meaning: Meaning) -> None:
        """`brokers` are those behind the link, `filters` what their clients want."""
        self.brokers, self.filters, self.meaning = brokers, filters, meaning

    @property
    def subscriptions(self) -> Subscriptions:
        """Of all clients there."""
        wanted = [it for broker in self.brokers for it in broker.clients.values()]
        return [pair for it in wanted for pair in it.items()]


class Judge:
    """Compares every broker's entries with the clients behind each link.

    `universe` is every notification there is; the rest is how the brokers are configured. Interval
    after interval it is asked about the same filters, so what they mean is found out once.
    """

    def __init__(
        self, universe: Sequence[Mapping[str, Any]], *, strategy: str = "covering",
        hierarchical: bool = False, waste_max: float = 0.0,
    ) -> None:  # fmt: skip
        self.universe, self.strategy = universe, strategy
        self.hierarchical, self.waste_max = hierarchical, waste_max
        self._masks: dict[Filter, Mask] = {}  # what was tried before
        self._meanings: dict[Filters, Meaning] = {}
        self._lacking: dict[tuple[Meaning, Meaning], Mask | None] = {}

    def violations(
        self, brokers: Mapping[NodeId, BrokerState], parents: Mapping[NodeId, NodeId | None],
        channel: Channel,
    ) -> list[Violation]:  # fmt: skip
        """Every entry that is missing, stale or in flight without a reason."""
        tree = _neighbours(parents)
        found: list[Violation] = []
        expected: dict[tuple[NodeId, NodeId], Expected] = {}
        wanted = {id: _wanted(broker) for id, broker in brokers.items()}
        for id in brokers:
            for neighbour in tree[id]:
                silent = self.strategy == "flooding" or (
                    self.hierarchical and parents[id] == neighbour
                )
                behind = [] if silent else list(_behind(tree, neighbour, id))
                filters = tuple(chain.from_iterable([wanted[it] for it in behind]))
                meaning, there = self._meaning(filters), [brokers[it] for it in behind]
                expected[id, neighbour] = Expected(there, filters, meaning)
        for id, broker in brokers.items():
            found += self._links(id, broker, tree[id], expected)
            found += self._clients(id, broker)
            found += _cancelled(id, broker, brokers)
        for target, message in channel:
            if isinstance(message, Update) and target in brokers:
                found += self._in_flight(target, message, expected)
        return found or [it for id, broker in brokers.items() for it in self._index(id, broker)]

    def _index(self, id: NodeId, broker: BrokerState) -> Iterator[Violation]:
        """The broker finds what its entries say: else it would not forward what is wanted."""
        entries, indexed = broker.table.entries, broker.table.indexed
        if indexed == {(to, key): it.filter for to in entries for key, it in entries[to].items()}:
            return
        wanted = {
            destination: mask
            for destination, leases in entries.items()
            if (mask := _union(self.mask(lease.filter) for lease in leases.values()))
        }
        found: dict[int, Mask] = {}
        for (destination, _), filter in indexed.items():
            if mask := self.mask(filter):
                found[destination] = found.get(destination, 0) | mask
        if found != wanted:
            wrong = [it for it in {**found, **wanted} if found.get(it) != wanted.get(it)]
            yield Violation("index", id, f"finds others than the entries for {wrong}")

    def _links(
        self, id: NodeId, broker: BrokerState, near: Sequence[NodeId],
        expected: Mapping[tuple[NodeId, NodeId], Expected],
    ) -> Iterator[Violation]:  # fmt: skip
        if sorted(broker.links) != sorted(near):
            yield Violation("links", id, f"has {sorted(broker.links)}, should have {sorted(near)}")
        for destination, leases in broker.table.entries.items():
            if destination >= 0 and destination not in near and leases:
                yield Violation("stale", id, f"{len(leases)} entries for {destination}, no link")
        for neighbour in near:
            leases = broker.table.entries.get(neighbour, {})
            have = {key: it.filter for key, it in leases.items()}
            yield from self._same(id, f"behind {neighbour}", have, expected[id, neighbour])
            announced = broker.announcer.announced.get(neighbour, {})
            yield from self._same(id, f"told {neighbour}", announced, expected.get((neighbour, id)))

    def _same(
        self, id: NodeId, where: str, have: Mapping[int, Filter], expected: Expected | None
    ) -> Iterator[Violation]:  # fmt: skip
        if expected is None:
            return
        if self.strategy == "simple":
            if have != dict(expected.subscriptions):
                yield Violation("entries", id, f"{where}: other subscriptions than are")
            return
        if self.strategy == "identity":
            ids = {it for it, _ in expected.subscriptions}
            if sorted(have) != sorted(ids):
                yield Violation("entries", id, f"{where}: other filters than are subscribed")
        known, meant = self._meaning(tuple(have.values())), expected.meaning
        lacking = self._lacks(known, meant)
        if lacking is not None:
            filter = next(it for it in expected.filters if self.mask(it) == lacking)
            yield Violation("missing", id, f"{where}: nothing covers {filter}")
        surplus = known.union & ~meant.union
        if surplus and self.waste_max == 0:
            yield Violation("stale", id, f"{where}: {surplus.bit_count()} wanted by nobody")

    def _clients(self, id: NodeId, broker: BrokerState) -> Iterator[Violation]:
        wanted = {-1 - client: it for client, it in broker.clients.items() if it}
        entries = broker.table.entries
        for destination in sorted({*wanted, *(it for it in entries if it < 0)}):
            have = {key: it.filter for key, it in entries.get(destination, {}).items()}
            if have != wanted.get(destination, {}):
                detail = f"entries of client {-1 - destination} are not what it wants"
                yield Violation("clients", id, detail)

    def _in_flight(
        self, target: NodeId, message: Update, expected: Mapping[tuple[NodeId, NodeId], Expected]
    ) -> Iterator[Violation]:  # fmt: skip
        wanted = expected.get((target, message.sender))
        if wanted is None:
            if message.leases:
                yield Violation("channel", target, f"leases from {message.sender}, no neighbour")
            return
        leased = self._meaning(tuple(filter for _, filter in message.leases)).union
        if leased & ~wanted.meaning.union and self.waste_max == 0:
            yield Violation("channel", target, "a lease in flight that nobody wants")
        ids = {id for id, _ in wanted.subscriptions} if message.cancels else {}
        if any(id in ids for id in message.cancels):
            yield Violation("channel", target, "a cancel in flight of what somebody wants")

    def _meaning(self, filters: Filters) -> Meaning:
        """What these filters mean, found out once."""
        found = self._meanings.get(filters)
        if found is None:
            if len(self._meanings) >= REMEMBERED:
                self._meanings.clear()
                self._lacking.clear()
            found = self._meanings[filters] = Meaning(map(self.mask, filters))
        return found

    def _lacks(self, known: Meaning, meant: Meaning) -> Mask | None:
        """What is meant and not known, found out once."""
        if (known, meant) not in self._lacking:
            self._lacking[known, meant] = known.lacks(meant)
        return self._lacking[known, meant]

    def mask(self, filter: Filter) -> Mask:
        """Which notifications of the universe `filter` matches."""
        found = self._masks.get(filter)
        if found is None:
            if len(self._masks) >= MASKS_MAX:
                self._masks.clear()
            found = self._masks[filter] = self._try(filter)
        return found

    def _try(self, filter: Filter) -> Mask:
        found = 0
        for place, attributes in enumerate(self.universe):
            if all(_allowed(values, attributes.get(name)) for name, values in filter.constraints):
                found |= 1 << place
        return found


def _wanted(broker: BrokerState) -> Filters:
    """What the clients of one broker want."""
    return tuple(chain.from_iterable([it.values() for it in broker.clients.values()]))


def _cancelled(
    id: NodeId, broker: BrokerState, brokers: Mapping[NodeId, BrokerState]
) -> Iterator[Violation]:
    """No cancel is remembered that was not sent yet: it would end a lease to come."""
    for (destination, lease), (stamp, _) in broker.table.cancelled.items():
        if destination in brokers:
            ahead = (stamp - brokers[destination].announcer.stamp) % STAMPS
            if 0 < ahead < STAMPS // 2:
                detail = f"a cancel of {lease} by {destination} that is still to come"
                yield Violation("cancelled", id, detail)


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


def _covered(mask: Mask, masks: Iterable[Mask]) -> bool:
    """Is all of it in one of the others?"""
    for it in masks:  # noqa: SIM110 - tried millions of times: a generator costs twice as much
        if mask & it == mask:
            return True
    return False


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


def _behind(tree: Tree, start: NodeId, back: NodeId) -> Iterator[NodeId]:
    """All brokers on the far side of a link."""
    pending = [(start, back)]
    while pending:
        here, came = pending.pop()
        yield here
        pending += [(there, here) for there in tree[here] if there != came]
