"""Arbitrary stores: lost, invented and damaged records, and an index that contradicts them.

A fault knows no privacy: this module writes into what only its owner may touch, raw, and whatever
memory can hold.
"""

from collections.abc import Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.sketch import Cells
from planaria.protocols.publications.trie import Inner
from planaria.records.index import Index
from planaria.records.lanes import Entry, Lane
from planaria.records.memory import MemoryStore
from planaria.records.positions import Intervals
from planaria.records.record import (
    INCARNATION_BYTES,
    PLACE_BITS,
    SEQUENCE_MAX,
    TIME_MAX,
    Draft,
    Place,
    Record,
    Stream,
    seal,
)
from planaria.records.store import Store
from planaria.records.window import Window

CORRUPTED_MAX = 1_000  # inner nodes of a trie; one that was corrupted before may be a circle


def any_stream(ids: Sequence[NodeId], rng: Random) -> Stream:
    """Somebody, in one of few incarnations."""
    return rng.choice(ids), bytes([rng.randrange(3)]) * INCARNATION_BYTES


def any_record(ids: Sequence[NodeId], rng: Random) -> Record:
    """Something that somebody might have said."""
    drafts = [Draft(rng.randbytes(rng.randrange(4))) for _ in range(rng.randrange(1, 4))]
    time = rng.choice([0, 0, 0, rng.randrange(100), rng.randrange(1 << 33), TIME_MAX])
    first = rng.randrange(5)
    return seal(any_stream(ids, rng), first, drafts, time=time, low=rng.randrange(first + 1))


def any_body(ids: Sequence[NodeId], rng: Random) -> bytes:
    """What memory may hold where a record should be."""
    data = bytearray(any_record(ids, rng).data)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return rng.choice([bytes(data), bytes(data[: rng.randrange(len(data))]), rng.randbytes(3)])


def corrupt_holdings(holdings: Holdings, ids: Sequence[NodeId], rng: Random) -> None:
    """Lose some records, invent others, and falsify everything derived or remembered of them."""
    store = holdings.store
    _lose(store, ids, rng)
    if rng.random() < 0.3:
        window = Window(any_integer(rng, 0), any_integer(rng, 1), any_integer(rng, 1))
        store.index.window, store.index.windows = window, (window,) * rng.randrange(3)
    corrupt_derived(holdings, ids, rng)


def invent(holdings: Holdings, ids: Sequence[NodeId], rng: Random) -> None:
    """Records that nobody published, and bytes that are no records."""
    holdings.append([any_record(ids, rng) for _ in range(rng.randrange(4))])
    store = holdings.store
    if rng.random() < 0.2:
        place = any_integer(rng, 0, 1 << PLACE_BITS)
        _bodies(store)[place] = rng.choice([any_record(ids, rng).data, any_body(ids, rng)])
        log = rng.choice([store.index.shown, store.index.hidden, {}])
        log[place] = Entry.of(any_record(ids, rng))


def _bodies(store: Store) -> dict[Place, bytes]:
    """The bytes that memory holds; those of a store on disk are out of its reach."""
    return store._bodies if isinstance(store, MemoryStore) else {}


def _lose(store: Store, ids: Sequence[NodeId], rng: Random) -> None:
    index, bodies = store.index, _bodies(store)
    for place in sorted(index.shown):
        draw = rng.random()
        if draw < 0.4:
            bodies.pop(place, None)
            del index.shown[place]
        elif draw < 0.5:
            del index.shown[place]
        elif draw < 0.6:
            index.hidden[place] = index.shown[place]
        elif draw < 0.65:
            bodies[place] = any_body(ids, rng)


def corrupt_derived(holdings: Holdings, ids: Sequence[NodeId], rng: Random) -> None:
    """Overwrite what follows from the records: entries, order, sums, lanes, tries, sketches."""
    store = holdings.store
    holdings.audit_due = any_integer(rng, 0, 10**6)
    _corrupt_index(store.index, rng)
    _corrupt_delivered(store, ids, rng)
    if rng.random() < 0.3:
        store._audit.stream = any_stream(ids, rng)
        store._audit.number, store._audit.hidden = any_integer(rng, 0), any_integer(rng, 0)
        store._audit.second = any_integer(rng, 0)
    name = (0, TIME_MAX, holdings.digest(0, TIME_MAX))
    if rng.random() < 0.5:
        sums, cells = holdings.sketch(0, TIME_MAX, 64)
        sums[rng.randrange(32)] += rng.randrange(1000)
        cells.ids[rng.randrange(64)] ^= cells.ids.dtype.type(rng.getrandbits(63) | 1)
        odd = Cells(64)
        odd.checks = odd.checks[: rng.randrange(64)]
        cells = rng.choice([cells, Cells(rng.randrange(9)), odd])
        holdings._sketch = (name, rng.choice([sums, sums, sums[:31]]), cells)
    corrupt_trie(holdings.trie(0, TIME_MAX)._root, rng)


def _corrupt_index(index: Index, rng: Random) -> None:
    for entry in list(index.shown.values()):
        draw = rng.randrange(40)
        if draw == 0:
            entry.first, entry.end = any_integer(rng, 0, 9), any_integer(rng, 0, SEQUENCE_MAX)
        elif draw == 1:
            entry.place = any_integer(rng, 0, 1 << PLACE_BITS)
        elif draw == 2:
            entry.stream = (any_integer(rng), rng.randbytes(INCARNATION_BYTES))
        elif draw == 3:
            entry.size = any_integer(rng, 0)
    if rng.random() < 0.3:
        index.order = rng.sample(index.order, rng.randrange(len(index.order) + 1))
    if rng.random() < 0.3:
        index.order.append(any_integer(rng, 0, 1 << PLACE_BITS))
    if rng.random() < 0.3:
        index.publications = any_integer(rng, 0, 9)
        index.capped = any_integer(rng, 0, 9)
    if rng.random() < 0.5:
        _corrupt_sums(index, rng)
    for lane in index.lanes.values():
        if rng.random() < 0.3:
            _corrupt_lane(lane, rng)
    if rng.random() < 0.2:
        index.names = index.names[: rng.randrange(3)]
    if index.window.per_publisher is not None and rng.random() < 0.5:
        index.quotas = {any_integer(rng): ([any_integer(rng)], any_integer(rng, 3))}


def _corrupt_sums(index: Index, rng: Random) -> None:
    sums = index.sums
    sums._total = (any_integer(rng, sums._total[0]), any_integer(rng, len(index.shown)))
    if rng.random() < 0.3:
        sums._times = [any_integer(rng, 0) for _ in range(rng.randrange(3))]
    if rng.random() < 0.3:
        sums._seconds[any_integer(rng, 0, 9)] = (any_integer(rng), any_integer(rng, 0, 2))


def _corrupt_lane(lane: Lane, rng: Random) -> None:
    for drops in (lane.gone, lane.hid):
        if rng.random() < 0.7:
            drops.firm, drops.time = any_integer(rng, 0, 5), any_integer(rng, 0, TIME_MAX)
            drops.last = Intervals([(any_integer(rng, 0), any_integer(rng, 5))])
    if rng.random() < 0.5:
        lane.covered = Intervals([(any_integer(rng, 0), any_integer(rng, 5))])
    if rng.random() < 0.5:
        lane.entries = lane.entries[: rng.randrange(3)]


def _corrupt_delivered(store: Store, ids: Sequence[NodeId], rng: Random) -> None:
    """False marks: of streams that are followed and of others, in the past and in the future."""
    streams = [*store.index.lanes, *(any_stream(ids, rng) for _ in range(2))]
    for stream in rng.sample(streams, rng.randrange(len(streams) + 1)):
        marks = Intervals([(any_integer(rng, 0, 5), any_integer(rng, 5, SEQUENCE_MAX))])
        store.delivered._streams[stream] = (marks, any_integer(rng, 0, TIME_MAX), any_integer(rng))
    store.delivered.given_up = any_integer(rng, 0)


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
            inner.one = rng.choice([rng.getrandbits(PLACE_BITS), any_integer(rng)])
        elif draw == 4:
            inner.label = rng.choice([rng.getrandbits(rng.randrange(1, 200)), any_integer(rng)])
