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
from planaria.protocols.routing.joining import Waiting
from planaria.protocols.routing.leases import Lease, client_destination
from planaria.protocols.routing.link import (
    EARLY_AGE_MAX,
    RESEND_MAX,
    WINDOW_BYTES,
    Early,
    Link,
    Sending,
)
from planaria.protocols.routing.messages import (
    ID_BYTES,
    LEASE_ID_MAX,
    SESSIONS,
    STAMPS,
    Acquainted,
    Beat,
    Notify,
    Received,
    Update,
)
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.notifications import Notification
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
    true += [
        pair for announced in broker.announcer.announced.values() for pair in announced.items()
    ]
    destinations = [*ids, *broker.links, *(client_destination(it) for it in range(4))]
    destinations.append(any_integer(rng))
    _scramble_table(broker, destinations, true, rng)
    _scramble_announcer(broker, ids, true, rng)
    _scramble_memory(broker.memory, ids, rng)
    _scramble_contact(broker, ids, rng)
    broker.round = any_integer(rng, 0, broker.timing.rho)
    if rng.random() < 0.3:  # links and roles that the tree does not know
        beside = rng.sample(ids, rng.randrange(len(ids) + 1))
        broker.links = {id: Link(any_integer(rng, 0, SESSIONS)) for id in beside}
        broker.parent = rng.choice([None, *ids, any_integer(rng)])
    for link in broker.links.values():
        _scramble_link(link, broker.memory, rng)


def forge(ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
    """A message that no broker sent: leases, cancels, notifications, acknowledgements, beats."""
    target, sender = rng.choice(ids), rng.choice(ids)
    kind = rng.random()
    if kind < 0.3:
        return target, _notify(sender, rng)
    if kind < 0.4:
        return target, _acknowledgement(sender, rng)
    leases = tuple(_true_id(random_filter(rng)) for _ in range(rng.randrange(4)))
    cancels = tuple(_true_id(random_filter(rng))[0] for _ in range(rng.randrange(3)))
    stamp, session = rng.randrange(STAMPS), rng.randrange(SESSIONS)
    return target, Update(sender, stamp, leases, cancels, session, rng.random() < 0.2)


def _acknowledgement(sender: NodeId, rng: Random) -> Message:
    ids = tuple(rng.randbytes(ID_BYTES) for _ in range(rng.randrange(3)))
    stamps = tuple(rng.randrange(STAMPS) for _ in range(rng.randrange(3)))
    beat = Beat(sender, rng.randbytes(ID_BYTES))
    return rng.choice(
        [
            Received(sender, rng.randrange(SESSIONS), ids, stamps),
            Acquainted(sender, ids, rng.random() < 0.5),
            beat,
        ]
    )


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

    announcer.announced, announcer.stamp = said(), any_integer(rng, 0, STAMPS)
    if rng.random() < 0.5:
        announcer.wanted = {
            link: {id: it for id, it in wanted.items() if 0 <= id <= LEASE_ID_MAX}
            for link, wanted in said().items()
        }
        announcer.stale = dict.fromkeys(rng.sample(ids, rng.randrange(len(ids) + 1)))
        announcer.ids |= {filter: rng.randrange(1 << 63) for _, filter in true}


def _scramble_memory(memory: Memory, ids: Sequence[NodeId], rng: Random) -> None:
    memory.age = any_integer(rng, 0, memory.period)
    memory.seen = [
        {rng.randbytes(16): None for _ in range(rng.randrange(3))}
        for _ in range(rng.choice([4, 9]))
    ][: rng.choice([4, 4, 9, 1])]
    for generation in range(rng.choice([2, 2, 1, 3])):
        forged = [_forged(memory.period, rng) for _ in range(rng.randrange(4))]
        kept = {
            it.id: Recent(it, rng.sample(ids, rng.randrange(3)) if len(ids) > 2 else [],
                          any_integer(rng, 0, memory.period))
            for it in forged
        }  # fmt: skip
        memory.recent[generation : generation + 1] = [kept]


def _scramble_link(link: Link, memory: Memory, rng: Random) -> None:
    """Any queue, window, acknowledgement and session at one end."""
    known = [id for kept in memory.recent for id in kept] + [
        rng.randbytes(ID_BYTES),
        b"",
        b"x" * 40,
    ]

    def some_ids() -> list[bytes]:
        return rng.sample(known, rng.randrange(len(known)))

    link.session, link.theirs = any_integer(rng, 0, SESSIONS), any_integer(rng, 0, link.theirs)
    link.outgoing = {
        id: Sending(
            any_integer(rng, 0, RESEND_MAX),
            any_integer(rng, 0),
            rng.choice(["", "a", "#"]),
            any_integer(rng, 0, WINDOW_BYTES),
        )
        for id in some_ids()
    }
    link.received, link.stamps = some_ids(), [any_integer(rng, 0, STAMPS)][: rng.randrange(2)]
    waiting = [_forged(memory.period, rng) for _ in range(rng.randrange(3))]
    link.early = {
        it.id: Early(it, rng.choice(known), any_integer(rng, 0, EARLY_AGE_MAX)) for it in waiting
    }


def _scramble_contact(broker: Broker, ids: Sequence[NodeId], rng: Random) -> None:
    contact, period = broker.contact, broker.contact.period
    drawn = [rng.randbytes(rng.choice([ID_BYTES, ID_BYTES, 3])) for _ in range(rng.randrange(4))]
    contact.beats = {id: any_integer(rng, 0, period, 2 * period) for id in drawn}
    contact.turn, contact.quiet = any_integer(rng, 0), any_integer(rng, 0, period)
    joining = broker.joining
    joining.asked = {any_integer(rng, 0): [any_integer(rng, 0)] for _ in range(rng.randrange(2))}
    neighbours = [dict.fromkeys([*ids][: rng.randrange(3)], any_integer(rng, 0, 1))]
    joining.waiting = [Waiting("#", any_integer(rng, 0), it) for it in neighbours]


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


def _notify(sender: NodeId, rng: Random) -> Notify:
    after = rng.choice([b"", b"", rng.randbytes(ID_BYTES), b"short"])
    gap = rng.choice([0, 0, 0, 7])
    body = random_attributes(rng)
    return Notify(sender, rng.randbytes(ID_BYTES), body, b"forged", 0, after, gap)


def _forged(period: int, rng: Random) -> Notification:
    """What nobody published, at any age; at times with a value that nobody can have published."""
    attributes = random_attributes(rng)
    if rng.random() < 0.1:
        attributes["level"] = any_integer(rng, 0, 1 << 64)
    age, gap = any_integer(rng, 0, period, 2 * period), rng.choice([0, 0, 0, any_integer(rng, 1)])
    return Notification(rng.randbytes(ID_BYTES), attributes, b"forged", age, gap)
