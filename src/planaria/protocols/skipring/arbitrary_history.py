"""Arbitrary states of a topic's history: false exchanges, clocks, tables, marks and numbers.

A fault knows no privacy: this module writes into what only its owner may touch, raw, and whatever
memory can hold: negative and huge numbers, caches that contradict each other, tables overfull.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from planaria.core.chance import any_integer
from planaria.core.forgetting import Forgetful
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import (
    PLACE_BYTES,
    Compare,
    Difference,
    Done,
    Estimate,
    Inventory,
    More,
    Push,
    Refused,
    Region,
    Root,
    Sketch,
)
from planaria.protocols.publications.exchange import COMING_MAX, Coming, Exchange
from planaria.protocols.publications.exchanges import EXCHANGES_MAX
from planaria.protocols.publications.publisher import Publisher
from planaria.protocols.publications.push import PUSH_FRAMES_MAX
from planaria.protocols.publications.reader import Reader
from planaria.protocols.publications.retention import SLOTS, Horizon, Rejected
from planaria.protocols.publications.sketch import CELL_BYTES, TUG_OF_WAR_BYTES
from planaria.protocols.skipring.arbitrary import aside
from planaria.protocols.skipring.arbitrary_holdings import (
    any_body,
    any_record,
    any_stream,
    corrupt_derived,
    corrupt_holdings,
    invent,
)
from planaria.protocols.skipring.arcs import Share
from planaria.protocols.skipring.batch_messages import Review, Reviewed, Settle
from planaria.protocols.skipring.broadcast import HOPS_MAX, Broadcast, Handed, Seen, View
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.skipring.deposit_messages import Deposit, Held, NotHeld
from planaria.protocols.skipring.deposits import REASONS
from planaria.protocols.skipring.history import History
from planaria.protocols.skipring.labels import CIRCLE, LABEL_MAX, position
from planaria.protocols.skipring.membership import Membership
from planaria.records.manifest import (
    Manifest,
    Part,
    Portion,
    row_incarnation,
    seal_manifest,
    stage_incarnation,
)
from planaria.records.positions import Mark
from planaria.records.record import (
    INCARNATION_BYTES,
    RECORD_KEY_BYTES,
    SEQUENCE_MAX,
    TIME_MAX,
    Draft,
    seal,
)

INVENTORS = 16  # about so many members of a network invent: all of a small one, a few of a large


def corrupt_history(history: History, ids: Sequence[NodeId], rng: Random) -> None:
    """Lose some records, invent others, and falsify everything derived or remembered."""
    if rng.random() * len(ids) < INVENTORS:
        invent(history.holdings, ids, rng)
    corrupt_holdings(history.holdings, ids, rng)
    corrupt_exchanges(history.antientropy, ids, rng)
    corrupt_horizon(history.horizon, ids, rng)
    corrupt_broadcast(history.broadcast, ids, rng)
    corrupt_reader(history.reader, ids, rng)
    corrupt_publisher(history.publisher, ids, rng)
    if rng.random() * len(ids) < INVENTORS:
        corrupt_staging(history, ids, rng)


def corrupt_staging(history: History, ids: Sequence[NodeId], rng: Random) -> None:
    """Stage what nobody staged, manifests of it and of nothing, and falsify what is derived."""
    staged = history.staging.holdings
    manifest = any_manifest(history.topic, ids, rng)
    for part in manifest.portions[history.topic].parts:
        if rng.random() < 0.7:
            drafts = [Draft(rng.randbytes(3)) for _ in range(part.count)]
            stream = (manifest.publisher, part.incarnation)
            staged.append([seal(stream, 0, drafts, time=manifest.record.time)])
    invent(staged, ids, rng)
    if rng.random() < 0.7:
        staged.append([manifest.record])
    if rng.random() < 0.5:
        corrupt_holdings(staged, ids, rng)
    history.staging.turn = -manifest.record.time


def any_manifest(topic: str, ids: Sequence[NodeId], rng: Random) -> Manifest:
    """A manifest of one of few queries, batches and numbers."""
    query, batch = f"q{rng.randrange(2)}", rng.randrange(3)
    drawn = bytes([rng.randrange(2)]) * INCARNATION_BYTES
    parts, first = list[Part](), rng.randrange(3)
    for _ in range(rng.randrange(1, 4)):
        count = rng.randrange(1, 4)
        incarnation = stage_incarnation(bytes([rng.randrange(4)]) * INCARNATION_BYTES)
        parts.append(Part(incarnation, count, first))
        first += rng.choice([count, count, 0])
    portions = {topic: Portion(row_incarnation(query, drawn), parts)}
    if rng.random() < 0.2:
        portions["elsewhere"] = portions[topic]
    time = rng.choice([0, 0, rng.randrange(100), rng.randrange(1 << 33)])
    return seal_manifest(rng.choice(ids), query, batch, portions, time=time, staged=time)


def corrupt_caches(antientropy: AntiEntropy, ids: Sequence[NodeId], rng: Random) -> None:
    """Overwrite what is derived, and what is remembered of peers; lose no record."""
    corrupt_derived(antientropy.holdings, ids, rng)
    corrupt_exchanges(antientropy, ids, rng)


def corrupt_exchanges(antientropy: AntiEntropy, ids: Sequence[NodeId], rng: Random) -> None:
    """Exchanges that nobody began, and false memories of those that ended."""
    antientropy.number = any_integer(rng, 0, 10)
    version = antientropy.holdings.version
    for id in rng.sample(list(ids), min(3, len(ids))):
        antientropy.peers[id] = (rng.choice([version, any_integer(rng)]), any_integer(rng))
        antientropy.agreed[id] = antientropy.peers[id][1]
    for id in rng.sample(list(ids), min(EXCHANGES_MAX + 1, len(ids))):
        if rng.random() < 0.5:
            antientropy.exchanges[id] = any_exchange(rng)
    corrupt_coming(antientropy, ids, aside(rng, "coming"))


def corrupt_coming(antientropy: AntiEntropy, ids: Sequence[NodeId], rng: Random) -> None:
    """Frames that never came, of exchanges that are open and of others; at times of too many."""
    peers = rng.sample(list(ids), min(3, len(ids)))
    if rng.random() < 0.1:
        peers += range(COMING_MAX + 2)
    for id in peers:
        of = antientropy.exchanges.get(id) if rng.random() < 0.5 else None
        of = of or any_exchange(rng)
        frames = any_integer(rng, 0, PUSH_FRAMES_MAX)
        want = [any_integer(rng, 0, 1 << 32) for _ in range(rng.choice([0, 0, 1, 5]))]
        held = rng.choice([antientropy.holdings.version, any_integer(rng)])
        antientropy.coming[id] = Coming(of.number, of.lo, of.cut, of.started, frames, want, held)
        if rng.random() < 0.5:
            antientropy.crossing[id] = rng.random() < 0.5


def any_exchange(rng: Random) -> Exchange:
    """An exchange that nobody began."""
    exchange = Exchange(
        any_integer(rng, 3), any_integer(rng, 0, 5), any_integer(rng, 0, 9), rng.random() < 0.5
    )
    exchange.age, exchange.life = any_integer(rng, 0, 10), any_integer(rng, 0, 64)
    exchange.more, exchange.sent = any_integer(rng, 0, 2), any_integer(rng, 0, 4)
    if rng.random() < 0.3:
        lo, cut, digest, count = (any_integer(rng, 3) for _ in range(4))
        exchange.inventory = (lo, cut, digest, count, b"")
        size = rng.randrange(9) * CELL_BYTES + rng.choice([0, 0, 1])
        exchange.cells = [rng.randbytes(size) for _ in range(rng.randrange(3))]
    return exchange


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


def corrupt_broadcast(broadcast: Broadcast, ids: Sequence[NodeId], rng: Random) -> None:
    """False tables of what is in flight."""
    tables: tuple[Forgetful[Any, Any], ...] = (broadcast.seen, broadcast.handed, broadcast.busy)
    for table in tables:
        table.age = any_integer(rng, 0, 32)
        if rng.random() < 0.2:
            kept = table.generations[: rng.randrange(3)]
            table.generations = [dict(it) for it in kept * 2]
    broadcast.handed_bytes, broadcast.refused = any_integer(rng, 0), any_integer(rng, 0)
    broadcast.busy.put(any_integer(rng, *ids), None)
    for _ in range(rng.randrange(3)):
        said, seen = any_record(ids, rng), Seen()
        seen.reroutes, seen.flooded = any_integer(rng, 0, 4), rng.random() < 0.5
        seen.arcs = ((any_integer(rng, CIRCLE), any_integer(rng), any_integer(rng, 1)),)
        broadcast.seen.put(said.key, seen)
        share = Share(rng.randrange(16), rng.choice(ids), rng.randrange(CIRCLE), 0, 0)
        name = (share.id, said.key, share.lo, share.hi, share.side)
        broadcast.handed.put(name, Handed(said.data, share, any_integer(rng, 0, HOPS_MAX)))


def corrupt_view(membership: Membership, ids: Sequence[NodeId], rng: Random) -> None:
    """A view of another place, or one that divides arcs falsely, taken for that of this place."""
    one = membership.subscriber
    here = min(max(one.label or 0, 0), LABEL_MAX)
    label = rng.choice([None, rng.randrange(2 * len(ids)), here, here])
    id = rng.choice([one.id, one.id, one.id, rng.choice(ids)])
    near = [(rng.randrange(2 * len(ids)), rng.choice(ids)) for _ in range(rng.randrange(4))]
    seen = View(label, id, near, one.alarmed != (rng.random() < 0.3))
    own = 0 if label is None else position(label)
    for lo, hi in ((own, own), (rng.randrange(CIRCLE), rng.randrange(CIRCLE))):
        share = Share(rng.randrange(16), rng.choice(ids), rng.randrange(CIRCLE), 0, 0)
        seen._splits[lo, hi, 0] = [share] * rng.randrange(3)
    membership._seen, membership._near = seen, [*near]
    membership.note_place()


def corrupt_reader(reader: Reader, ids: Sequence[NodeId], rng: Random) -> None:
    """False places in the publishers' streams, and holes where nothing is missing."""
    reader.quiet, reader.turn = any_integer(rng, 0, 10), any_integer(rng, 0, 64)
    streams = [*reader.marks, any_stream(ids, rng), any_stream(ids, rng)]
    for stream in rng.sample(streams, rng.randrange(3)):
        skipped = (any_integer(rng, 0, 5), any_integer(rng, 5))
        reader.marks[stream] = Mark(any_integer(rng, 0, SEQUENCE_MAX), (skipped,))
        reader.holes[stream] = (any_integer(rng, 0, 5), any_integer(rng, 0, 10))


def corrupt_publisher(publisher: Publisher, ids: Sequence[NodeId], rng: Random) -> None:
    """Lost or false numbers, and records that were never published."""
    packer = publisher.packer
    if packer is not None:
        draw = rng.randrange(4)
        if draw == 0:
            publisher.packer = None
        elif draw == 1:
            packer.next = any_integer(rng, 0, SEQUENCE_MAX)
        elif draw == 2:
            packer.time = any_integer(rng, 0, TIME_MAX)
        else:
            publisher.check = any_integer(rng)
    said = any_record(ids, rng)
    body = rng.choice([said.data, any_body(ids, rng)])
    publisher.rejectable_bytes = any_integer(rng, 0)
    publisher.rejectable[said.key] = (body, any_integer(rng, 0, 3))


def any_batch_message(topic: str, ids: Sequence[NodeId], rng: Random) -> Message:
    """A message about batches with any content."""
    sender, manifest = rng.choice(ids), any_manifest(topic, ids, rng).record.data
    said = rng.choice([manifest, manifest, any_record(ids, rng).data, any_body(ids, rng)])
    parts, number = [rng.randrange(-1, 4)], rng.randrange(4)
    key = rng.randbytes(RECORD_KEY_BYTES)
    return rng.choice(
        [
            Deposit(topic, sender, said, number % 2 == 0, number > 1, stage=True),
            Review(topic, sender, said),
            Settle(topic, sender, said, parts),
            Reviewed(topic, sender, key, number, b"", said, parts, parts, [(number, 0, number)]),
        ]
    )


def any_publication_message(topic: str, ids: Sequence[NodeId], rng: Random) -> Message:
    """A message about publications of any kind with any content."""
    sender, said = rng.choice(ids), any_record(ids, rng).data
    lo, hi, label = rng.randrange(CIRCLE), rng.randrange(CIRCLE), rng.randrange(2 * len(ids))
    side, number = rng.randrange(3), rng.randrange(20)
    cells = rng.randbytes(number * CELL_BYTES)
    floor = rng.choice([b"", rng.randbytes(PLACE_BYTES)])
    state = Inventory(0, rng.choice([number, TIME_MAX]), rng.getrandbits(64), number, floor)
    part = Region(rng.randbytes(1 + number), [(b"\x80", lo)], [rng.randbytes(PLACE_BYTES)])
    return rng.choice(
        [
            Arc(topic, sender, said, label, lo, hi, side, rng.randrange(4)),
            Flood(topic, sender, said, rng.randrange(4)),
            Nack(
                topic,
                sender,
                rng.randbytes(RECORD_KEY_BYTES),
                lo,
                hi,
                side,
                rng.choice([None, label]),
            ),
            Rejected(topic, sender, rng.randbytes(RECORD_KEY_BYTES)),
            Push(topic, sender, number, [said], [rng.getrandbits(32)]),
            Difference(topic, sender, number, 0, number, [said], [rng.getrandbits(32)]),
            Estimate(topic, sender, number, state, rng.randbytes(TUG_OF_WAR_BYTES), cells),
            Sketch(topic, sender, number, state, rng.randrange(100), cells),
            Root(topic, sender, number, 0, state.cut, lo),
            Compare(topic, sender, number, 0, state.cut, [part] * side, [said]),
            More(topic, sender, number, rng.randrange(100), rng.randrange(100)),
            Done(topic, sender, number),
            Refused(topic, sender, number, [rng.randbytes(PLACE_BYTES)]),
            Deposit(topic, sender, said, number % 2 == 0, side > 0),
            any_batch_message(topic, ids, rng),
            any_batch_message(topic, ids, rng),
            Held(topic, sender, rng.randbytes(RECORD_KEY_BYTES)),
            NotHeld(topic, sender, rng.randbytes(RECORD_KEY_BYTES), rng.choice(REASONS)),
        ]
    )
