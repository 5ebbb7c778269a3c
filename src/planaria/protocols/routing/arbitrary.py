"""Arbitrary states of brokers and arbitrary messages between them: where healing starts."""

from collections.abc import Sequence
from math import inf, nan
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.filters.filters import Filter, filter_id
from planaria.filters.matching import MatchingIndex
from planaria.filters.values import Values, point
from planaria.protocols.routing.broker import Broker, client_destination
from planaria.protocols.routing.leases import Lease
from planaria.protocols.routing.messages import LEASE_ID_MAX, STAMPS, Notify, Update
from planaria.protocols.routing.recent import Memory, Recent
from planaria.protocols.routing.workload import random_attributes, random_filter

Pairs = Sequence[tuple[int, Filter]]
SHARE_OF_MALFORMED = 0.1  # of stored filters: what no condition means
MALFORMED = (
    Values(),
    Values(numbers=(((5, 0), (3, 1)),)),
    Values(numbers=(((nan, 0), (inf, 1)),)),
    Values(numbers=(((-(1 << 100), 0), (1 << 2000, 1)),)),
    Values(strings=(((1, ""), (0, "a")),)),
    Values(booleans=((-5, 1 << 40),)),
    Values(timestamps=((3, -(1 << 70)),)),
    Values(topics=("a/#/b", "", "+a")),
)


def scramble(broker: Broker, ids: Sequence[NodeId], rng: Random) -> None:
    """Any value in every variable and cache; what clients want is given."""
    true = [pair for it in broker.clients.values() for pair in it.items()]
    true += [pair for told in broker.announcer.told.values() for pair in told.items()]
    destinations = [*ids, *broker.links, *(client_destination(it) for it in range(4))]
    destinations.append(any_integer(rng))
    _scramble_table(broker, destinations, true, rng)
    _scramble_announcer(broker, ids, true, rng)
    _scramble_memory(broker.memory, ids, rng)
    broker.round = any_integer(rng, 0, broker.timing.rho)
    if rng.random() < 0.3:  # links and roles that the tree does not know
        broker.links = dict.fromkeys(rng.sample(ids, rng.randrange(len(ids) + 1)))
        broker.parent = rng.choice([None, *ids, any_integer(rng)])


def forge(ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
    """A message that no broker sent: false leases, cancels, greetings, notifications."""
    target = rng.choice(ids)
    if rng.random() < 0.3:
        return target, _notify(ids, rng)
    leases = tuple(_true_id(random_filter(rng)) for _ in range(rng.randrange(4)))
    cancels = tuple(_true_id(random_filter(rng))[0] for _ in range(rng.randrange(3)))
    sender, stamp = rng.choice(ids), rng.randrange(STAMPS)
    return target, Update(sender, stamp, leases, cancels, rng.random() < 0.2)


def _scramble_table(broker: Broker, destinations: Sequence[int], true: Pairs, rng: Random) -> None:
    table = broker.table
    entries: dict[int, dict[int, Lease]] = {}
    for leases in list(table.entries.items()):
        if rng.random() < 0.5:  # half of what is right stays, with any flag
            entries[leases[0]] = dict(leases[1])
    for _ in range(rng.randrange(12)):
        id, filter = _pair(true, rng)
        entries.setdefault(rng.choice(destinations), {})[id] = Lease(filter)
    for kept in entries.values():
        for lease in kept.values():
            lease.flag = any_integer(rng, 0, 1)
            lease.stamp = any_integer(rng, 0, lease.stamp, STAMPS)
    table.entries = entries
    table.cancelled = {
        (rng.choice(destinations), _pair(true, rng)[0]): (
            any_integer(rng, 0, STAMPS),
            any_integer(rng, 0, table.late),
        )
        for _ in range(rng.randrange(6))
    }
    table.clock = any_integer(rng, 0, table.pi)
    table.clocks = {link: any_integer(rng, 0, pi) for link, pi in table.pis.items()}
    if rng.random() < 0.5:  # an index of other entries than there are
        table._index = MatchingIndex()
        for id, filter in [*true][: rng.randrange(4)]:
            table._index.add((rng.choice(destinations), id), filter)


def _scramble_announcer(broker: Broker, ids: Sequence[NodeId], true: Pairs, rng: Random) -> None:
    announcer = broker.announcer

    def said() -> dict[NodeId, dict[int, Filter]]:
        return {
            rng.choice([*ids, *broker.links]): dict(
                _pair(true, rng) for _ in range(rng.randrange(6))
            )
            for _ in range(rng.randrange(4))
        }

    announcer.told, announcer.stamp = said(), any_integer(rng, 0, STAMPS)
    if rng.random() < 0.5:
        announcer._wanted = {
            link: {id: it for id, it in wanted.items() if 0 <= id <= LEASE_ID_MAX}
            for link, wanted in said().items()
        }
        announcer._stale = dict.fromkeys(rng.sample(ids, rng.randrange(len(ids) + 1)))
        announcer._ids |= {filter: rng.randrange(1 << 63) for _, filter in true}


def _scramble_memory(memory: Memory, ids: Sequence[NodeId], rng: Random) -> None:
    memory.age = any_integer(rng, 0, memory.period)
    memory.seen = [
        {rng.randbytes(16): None for _ in range(rng.randrange(3))}
        for _ in range(rng.choice([4, 9]))
    ][: rng.choice([4, 4, 9, 1])]
    for generation in range(rng.choice([2, 2, 1, 3])):
        forged = [_notify(ids, rng) for _ in range(rng.randrange(4))]
        kept = {
            it.id: Recent(_aged(it, memory.period, rng), [], any_integer(rng, 0, memory.period))
            for it in forged
        }
        memory.recent[generation : generation + 1] = [kept]


def _pair(true: Pairs, rng: Random) -> tuple[int, Filter]:
    """An id and a filter: a true pair, a right id with another filter, or all invented."""
    filter = random_filter(rng)
    if rng.random() < SHARE_OF_MALFORMED:
        filter = Filter((("kind", rng.choice(MALFORMED)), ("kind", point(1)))[: rng.randint(1, 2)])
        return rng.choice([filter_id(filter), any_integer(rng, 0, LEASE_ID_MAX)]), filter
    if not true or rng.random() < 0.4:
        return _true_id(filter)
    pair = rng.choice(list(true))
    return pair if rng.random() < 0.3 else (pair[0], filter)


def _true_id(filter: Filter) -> tuple[int, Filter]:
    return filter_id(filter), filter


def _notify(ids: Sequence[NodeId], rng: Random) -> Notify:
    return Notify(rng.choice(ids), rng.randbytes(16), random_attributes(rng), b"forged")


def _aged(message: Notify, period: int, rng: Random) -> Notify:
    """The same at any age; at times with a value that nobody can have published."""
    attributes = dict(message.attributes)
    if rng.random() < 0.1:
        attributes["level"] = any_integer(rng, 0, 1 << 64)
    age = any_integer(rng, 0, period, 2 * period)
    return Notify(message.sender, message.id, attributes, message.payload, age)
