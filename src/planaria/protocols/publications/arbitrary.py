"""Arbitrary states of a topic's history: lost and invented publications, false caches and tables.

A fault knows no privacy: this module writes into what only its owner may touch.
"""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.publications.antientropy import AntiEntropy, Exchange
from planaria.protocols.publications.antientropy_messages import Difference, Done, More, Push
from planaria.protocols.publications.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.publications.history import History
from planaria.protocols.publications.publication import Publication
from planaria.protocols.publications.retention import Rejected
from planaria.protocols.publications.store import place_of
from planaria.protocols.publications.trie import Inner
from planaria.protocols.skipring.labels import CIRCLE

INVENTORS = 16  # about so many members of a network invent: all of a small one, a few of a large


def any_publication(ids: Sequence[NodeId], rng: Random) -> Publication:
    """Something that somebody might have said."""
    payload = rng.randbytes(rng.randrange(4))
    return Publication(rng.choice(ids), rng.randrange(3), rng.randrange(5), 0, 0, payload)


def corrupt_history(history: History, ids: Sequence[NodeId], rng: Random) -> None:
    """Lose some publications, invent others, and falsify everything derived or remembered."""
    for publication in list(history.store.publications()):
        if rng.random() < 0.5:
            history.store.remove(place_of(publication))
    if rng.random() * len(ids) < INVENTORS:
        for _ in range(rng.randrange(4)):
            history.store.insert(any_publication(ids, rng))
    corrupt_caches(history.antientropy, ids, rng)
    horizon = history.horizon
    horizon.lo = rng.choice([0, 0, rng.randrange(10**6)])
    horizon.votes = {rng.choice(ids): (rng.randrange(10**6), rng.randrange(20))}
    horizon.elapsed = rng.randrange(-100, 10**6)
    if history.publisher.stamp is not None:
        history.publisher.stamp = rng.choice([None, history.publisher.stamp])


def corrupt_caches(antientropy: AntiEntropy, ids: Sequence[NodeId], rng: Random) -> None:
    """Overwrite what is derived: hashes, counts, children, sketches, sizes, digests, exchanges."""
    store = antientropy.store
    for epoch in sorted(store._buckets):
        bucket = store._buckets[epoch]
        if rng.random() < 0.5 and bucket.log:
            _, cells = bucket.read_sketch(64)
            cells.ids[rng.randrange(64)] ^= rng.getrandbits(63) | 1
            assert bucket.sketch is not None  # read_sketch made it
            bucket.sketch._sums[rng.randrange(32)] += rng.randrange(1000)
            bucket.sketch._added.append(rng.getrandbits(64))
        corrupt_trie(bucket.trie._root, rng)
    store._size = rng.randrange(1000)
    store._digest = (store.version, store.lo, rng.getrandbits(64))
    antientropy._number = rng.randrange(10)
    antientropy._audit_due = rng.randrange(-5, 10**6)
    for id in rng.sample(ids, min(3, len(ids))):
        antientropy._peers[id] = (store.version, rng.randrange(-3, 5))
        if rng.random() < 0.5:
            antientropy._exchanges[id] = Exchange(
                rng.randrange(20), rng.randrange(5), started=rng.random() < 0.5
            )


def corrupt_trie(root: Inner | int | None, rng: Random) -> None:
    """Give some inner nodes false hashes, counts, labels and children."""
    nodes = []
    pending = [root]
    while pending:
        top = pending.pop()
        if isinstance(top, Inner):
            nodes.append(top)
            pending += (top.zero, top.one)
    for inner in nodes:
        draw = rng.randrange(12)
        if draw == 0:
            inner.hash = rng.randbytes(16)
        elif draw == 1:
            inner.count = rng.randrange(-3, 10)
        elif draw == 2:
            inner.zero = rng.choice(nodes)
        elif draw == 3:
            inner.one = rng.getrandbits(128)
        elif draw == 4:
            inner.label = rng.getrandbits(rng.randrange(1, 140))


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
            Rejected(topic, sender, rng.randbytes(16), rng.randrange(100)),
            Push(topic, sender, number, [said], [rng.getrandbits(32)]),
            Difference(topic, sender, number, 0, [said], [rng.getrandbits(32)]),
            More(topic, sender, number, rng.randrange(100), rng.randrange(100)),
            Done(topic, sender, number),
        ]
    )
