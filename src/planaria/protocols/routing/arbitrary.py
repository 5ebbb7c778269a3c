"""Arbitrary states of brokers and arbitrary messages between them: where healing starts."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.routing.broker import Broker, client_destination
from planaria.protocols.routing.filters import Filter, filter_id
from planaria.protocols.routing.leases import Lease
from planaria.protocols.routing.messages import STAMPS, Notify, Update
from planaria.protocols.routing.recent import Recent
from planaria.protocols.routing.workload import random_attributes, random_filter

ABSURD = (-(1 << 70), -1, 0, 1, 1 << 40, 1 << 70)  # clocks and counters after a fault


def scramble(broker: Broker, ids: Sequence[NodeId], rng: Random) -> None:
    """Entries, flags, clocks, ids, filters and memory at arbitrary values."""
    true = [pair for it in broker.clients.values() for pair in it.items()]
    true += [pair for told in broker.announcer.told.values() for pair in told.items()]
    destinations = [*ids, *broker.links, *(client_destination(it) for it in range(4))]
    entries: dict[int, dict[int, Lease]] = {}
    for leases in list(broker.table.entries.items()):
        if rng.random() < 0.5:  # half of what is right stays, with any flag
            entries[leases[0]] = dict(leases[1])
    for _ in range(rng.randrange(12)):
        id, filter = _pair(true, rng)
        lease = Lease(filter, rng.choice([0, 1, 1, 7]), rng.randrange(STAMPS))
        entries.setdefault(rng.choice(destinations), {})[id] = lease
    broker.table.entries = entries
    for kept in entries.values():
        for lease in kept.values():
            lease.flag = rng.choice([0, 1, lease.flag])
    broker.table.canceled = {
        (rng.choice(destinations), _pair(true, rng)[0]): (
            rng.randrange(STAMPS),
            rng.choice([*ABSURD, broker.table.late]),
        )
        for _ in range(rng.randrange(6))
    }
    broker.table.clock = rng.choice([*ABSURD, rng.randrange(broker.timing.pi)])
    broker.table.clocks = {link: rng.choice(ABSURD) for link in broker.table.pis}
    broker.table.reindex()
    broker.announcer.told = {
        rng.choice([*ids, *broker.links]): dict(_pair(true, rng) for _ in range(rng.randrange(6)))
        for _ in range(rng.randrange(4))
    }
    broker.announcer.stamp = rng.choice([*ABSURD, rng.randrange(STAMPS)])
    broker.round = rng.choice([*ABSURD, rng.randrange(broker.timing.rho)])
    broker.memory.age = rng.choice([*ABSURD, rng.randrange(broker.memory.period)])
    forged = [_notify(ids, rng) for _ in range(rng.randrange(4))]
    broker.memory.recent[rng.randrange(2)] = {
        it.id: Recent(it, [], rng.choice(ABSURD)) for it in forged
    }


def forge(ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
    """A message that no broker sent: false leases, cancels, greetings, notifications."""
    target = rng.choice(ids)
    if rng.random() < 0.3:
        return target, _notify(ids, rng)
    leases = tuple(_pair([], rng) for _ in range(rng.randrange(4)))
    cancels = tuple(_pair([], rng)[0] for _ in range(rng.randrange(3)))
    sender, stamp = rng.choice(ids), rng.randrange(STAMPS)
    return target, Update(sender, stamp, leases, cancels, rng.random() < 0.2)


def _pair(true: Sequence[tuple[int, Filter]], rng: Random) -> tuple[int, Filter]:
    """An id and a filter: a true pair, a right id with another filter, or all invented."""
    filter = random_filter(rng)
    if not true or rng.random() < 0.4:
        return filter_id(filter), filter
    pair = rng.choice(list(true))
    return pair if rng.random() < 0.3 else (pair[0], filter)


def _notify(ids: Sequence[NodeId], rng: Random) -> Notify:
    id = rng.getrandbits(128).to_bytes(16, "big")
    return Notify(rng.choice(ids), id, random_attributes(rng), b"forged")
