"""Arbitrary states of a topic's history: lost and invented publications, false caches and tables.

A fault knows no privacy: this module writes into what only its owner may touch, raw, and whatever
memory can hold: negative and huge numbers, caches that contradict each other, tables overfull.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from planaria.core.chance import any_integer
from planaria.core.forgetting import Forgetful
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.publications.antientropy import EXCHANGES_MAX, AntiEntropy
from planaria.protocols.publications.antientropy_messages import (
    Difference,
    Done,
    More,
    Push,
)
from planaria.protocols.publications.exchange import Exchange
from planaria.protocols.publications.publication import RANK_BITS, TIME_MAX, Publication, key
from planaria.protocols.publications.retention import SLOTS, Horizon, Rejected
from planaria.protocols.publications.sketch import CELL_BYTES, Cells
from planaria.protocols.publications.store import PublicationStore
from planaria.protocols.publications.streams import SEQUENCE_MAX, Publisher, Stream, Streams
from planaria.protocols.publications.trie import Inner
from planaria.protocols.publications.window import Window
from planaria.protocols.skipring.arcs import Share
from planaria.protocols.skipring.broadcast import HOPS_MAX, Broadcast, Handed, Seen
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.skipring.history import History
from planaria.protocols.skipring.labels import CIRCLE

INVENTORS = 16  # about so many members of a network invent: all of a small one, a few of a large


def any_publication(ids: Sequence[NodeId], rng: Random) -> Publication:
    """Something that somebody might have said."""
    payload = rng.randbytes(rng.randrange(4))
    time = rng.choice([0, 0, 0, rng.randrange(100), rng.randrange(1 << 33), TIME_MAX])
    return Publication(rng.choice(ids), rng.randrange(3), rng.randrange(5), 0, time, payload)


def impossible_publication(rng: Random) -> Publication:
    """Something that only memory can hold."""
    who, incarnation, number, low, time = (
        any_integer(rng, 0, SEQUENCE_MAX, TIME_MAX) for _ in range(5)
    )
    return Publication(who, incarnation, number, low, time, rng.randbytes(rng.randrange(4)))


def corrupt_history(history: History, ids: Sequence[NodeId], rng: Random) -> None:
    """Lose some publications, invent others, and falsify everything derived or remembered."""
    shown = history.store.shown
    for place in sorted(shown):
        draw = rng.random()
        if draw < 0.5:
            del shown[place]
        elif draw < 0.6:
            history.store.hidden[place] = shown[place]
        elif draw < 0.65:
            shown[place] = impossible_publication(rng)
    if rng.random() * len(ids) < INVENTORS:
        for _ in range(rng.randrange(4)):
            history.store.insert(any_publication(ids, rng))
        if rng.random() < 0.2:
            place = any_integer(rng, 0, 1 << RANK_BITS)
            log = rng.choice([shown, history.store.hidden])
            log[place] = rng.choice([any_publication(ids, rng), impossible_publication(rng)])
    corrupt_caches(history.antientropy, ids, rng)
    if rng.random() < 0.3:
        window = Window(any_integer(rng, 0), any_integer(rng, 1), any_integer(rng, 1))
        history.store.window, history.store.windows = window, [window] * rng.randrange(3)
    corrupt_horizon(history.horizon, ids, rng)
    corrupt_broadcast(history.broadcast, ids, rng)
    corrupt_streams(history.streams, ids, rng)
    corrupt_publisher(history.publisher, ids, rng)


def corrupt_caches(antientropy: AntiEntropy, ids: Sequence[NodeId], rng: Random) -> None:
    """Overwrite what is derived: hashes, counts, children, sketches, quotas, digests, exchanges."""
    store = antientropy.store
    corrupt_store(store, rng)
    antientropy.number = any_integer(rng, 0, 10)
    store.audit_due = any_integer(rng, 0, 10**6)
    for id in rng.sample(list(ids), min(3, len(ids))):
        antientropy.peers[id] = (rng.choice([store.version, any_integer(rng)]), any_integer(rng))
    for id in rng.sample(list(ids), min(EXCHANGES_MAX + 1, len(ids))):
        if rng.random() < 0.5:
            antientropy.exchanges[id] = any_exchange(rng)


def any_exchange(rng: Random) -> Exchange:
    """An exchange that nobody began."""
    exchange = Exchange(any_integer(rng, 3), any_integer(rng, 0, 5), started=rng.random() < 0.5)
    exchange.age, exchange.life = any_integer(rng, 0, 10), any_integer(rng, 0, 64)
    exchange.more, exchange.sent = any_integer(rng, 0, 2), any_integer(rng, 0, 4)
    if rng.random() < 0.3:
        exchange.inventory = (any_integer(rng), any_integer(rng), any_integer(rng, 3), b"")
        size = rng.randrange(9) * CELL_BYTES + rng.choice([0, 0, 1])
        exchange.cells = [rng.randbytes(size) for _ in range(rng.randrange(3))]
    return exchange


def corrupt_store(store: PublicationStore, rng: Random) -> None:
    """Falsify all that is derived from the publications."""
    if rng.random() < 0.5:
        store.sketch(0, 64)
        assert store._sketch is not None  # it was asked for just now
        store._sketch.cells.ids[rng.randrange(64)] ^= np.uint64(rng.getrandbits(63) | 1)
        store._sketch.sums[rng.randrange(32)] += rng.randrange(1000)
        store._sketch._added.append(any_integer(rng))
        if rng.random() < 0.3:
            store._sketch.cells = _any_cells(rng)
    corrupt_trie(store._trie._root, rng)
    if rng.random() < 0.1:
        store._trie._root = any_integer(rng, 0, 1 << RANK_BITS)
    store._trie.cursor = any_integer(rng, 0, 1 << RANK_BITS)
    if store.window.per_publisher is not None:
        store._quota._ranks = {any_integer(rng): [any_integer(rng)] * rng.randrange(9)}
    store.version = rng.choice([store.version, any_integer(rng)])
    store._digest = (store.version, store.window.lo, rng.getrandbits(64))
    store._part = (store.version, any_integer(rng, 0, 9), store._trie)


CORRUPTED_MAX = 1_000  # inner nodes of a trie; one that was corrupted before may be a circle


def _any_cells(rng: Random) -> Cells:
    cells = Cells(rng.randrange(9))
    cells.checks = Cells(rng.randrange(9)).checks
    return cells


def corrupt_trie(root: Inner | int | None, rng: Random) -> None:
    """Give some inner nodes false hashes, counts, labels and children."""
    nodes: list[Inner] = []
    pending = [root]
    while pending and len(nodes) < CORRUPTED_MAX:
        top = pending.pop()
        if isinstance(top, Inner):
            nodes.append(top)
            pending += (top.zero, top.one)
    for inner in nodes:
        draw = rng.randrange(12)
        if draw == 0:
            inner.hash = rng.randbytes(rng.choice([0, 3, 16, 16]))
        elif draw == 1:
            inner.count = any_integer(rng, 0, 10)
        elif draw == 2:
            inner.zero = rng.choice(nodes)
        elif draw == 3:
            inner.one = rng.choice([rng.getrandbits(RANK_BITS), any_integer(rng)])
        elif draw == 4:
            inner.label = rng.choice([rng.getrandbits(rng.randrange(1, 200)), any_integer(rng)])


def corrupt_horizon(horizon: Horizon, ids: Sequence[NodeId], rng: Random) -> None:
    """False clocks, votes, windows and marks."""
    horizon.lo = rng.choice([0, any_integer(rng, 0, 10**6, TIME_MAX)])
    horizon.now = rng.choice([None, any_integer(rng, 0, TIME_MAX)])
    horizon.seconds = rng.choice([None, any_integer(rng, 0, TIME_MAX)])
    horizon.votes = {
        rng.choice(ids): (any_integer(rng, TIME_MAX), any_integer(rng), any_integer(rng, 8))
        for _ in range(rng.randrange(4))
    }
    horizon.elapsed = any_integer(rng, 0, horizon.retention.grace)
    limits = (any_integer(rng, 1), rng.choice([None, any_integer(rng, 1)]))
    horizon.slots = [{limits: any_integer(rng, 0)} for _ in range(rng.choice([0, 1, 3 * SLOTS]))]
    marks = horizon.delivered
    marks.size = any_integer(rng, 0, 1 << 20)
    marks.age = any_integer(rng, 0, 64)
    marks.marks[any_integer(rng, 0)] = {rng.randbytes(8): None}


def corrupt_broadcast(broadcast: Broadcast, ids: Sequence[NodeId], rng: Random) -> None:
    """False tables of what is in flight."""
    tables: tuple[Forgetful[Any, Any], ...] = (broadcast.seen, broadcast.handed, broadcast.busy)
    for table in tables:
        table.age = any_integer(rng, 0, 32)
        if rng.random() < 0.2:
            kept = table.generations[: rng.randrange(3)]
            table.generations = [dict(it) for it in kept * 2]
    broadcast.busy.put(any_integer(rng, *ids), None)
    for _ in range(rng.randrange(3)):
        said, seen = any_publication(ids, rng), Seen()
        seen.reroutes, seen.flooded = any_integer(rng, 0, 4), rng.random() < 0.5
        seen.arcs = [(any_integer(rng, CIRCLE), any_integer(rng), any_integer(rng, 1))]
        broadcast.seen.put(key(said), seen)
        share = Share(rng.randrange(16), rng.choice(ids), rng.randrange(CIRCLE), 0, 0)
        name = (share.id, key(said), share.lo, share.hi, share.side)
        broadcast.handed.put(name, Handed(said, share, any_integer(rng, 0, HOPS_MAX)))


def corrupt_streams(streams: Streams, ids: Sequence[NodeId], rng: Random) -> None:
    """False places in the publishers' streams, and deadlines that are not."""
    streams.clock = any_integer(rng, 0, 64)
    for _ in range(rng.randrange(3)):
        name = (rng.choice(ids), rng.randrange(3))
        stream = streams.streams.setdefault(name, Stream(0))
        stream.next, stream.newest = any_integer(rng, 0, SEQUENCE_MAX), any_integer(rng, TIME_MAX)
        stream.armed = rng.random() < 0.5
        if rng.random() < 0.5:
            said = rng.choice([None, any_publication(ids, rng)])
            stream.waiting[any_integer(rng, 0, 5)] = (any_integer(rng, streams.clock), said)
        streams.deadlines.append((any_integer(rng, streams.clock), (any_integer(rng), 0)))
    if rng.random() < 0.5:
        streams.said[(rng.choice(ids), rng.randrange(3), rng.randrange(5))] = rng.randbytes(8)


def corrupt_publisher(publisher: Publisher, ids: Sequence[NodeId], rng: Random) -> None:
    """A lost stamp, and publications that were never published."""
    if publisher.stamp is not None:
        publisher.stamp = rng.choice([None, publisher.stamp])
    said = any_publication(ids, rng)
    publisher.rejectable[key(said)] = (said, any_integer(rng, 0, 3))


def any_publication_message(topic: str, ids: Sequence[NodeId], rng: Random) -> Message:
    """A message about publications of any kind with any content."""
    sender, said = rng.choice(ids), any_publication(ids, rng)
    lo, hi, label = rng.randrange(CIRCLE), rng.randrange(CIRCLE), rng.randrange(2 * len(ids))
    side, number = rng.randrange(3), rng.randrange(20)
    return rng.choice(
        [
            Arc(topic, sender, said, label, lo, hi, side, rng.randrange(4)),
            Flood(topic, sender, said, rng.randrange(4)),
            Nack(topic, sender, rng.randbytes(16), lo, hi, side, rng.choice([None, label])),
            Rejected(topic, sender, rng.randbytes(16)),
            Push(topic, sender, number, [said], [rng.getrandbits(32)]),
            Difference(topic, sender, number, 0, [said], [rng.getrandbits(32)]),
            More(topic, sender, number, rng.randrange(100), rng.randrange(100)),
            Done(topic, sender, number),
        ]
    )
