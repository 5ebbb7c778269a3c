"""Arbitrary states and messages of the mobile overlay: 'any state can be the first state'."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.mobile.dissemination import Outbox
from planaria.protocols.mobile.edge_bits import EdgeBits
from planaria.protocols.mobile.heights import GAP_MAX, HEIGHT_MAX, Heights
from planaria.protocols.mobile.layer import ASKED, CLOSING, SERIALS, UP, Layer, Link
from planaria.protocols.mobile.messages import (
    ITEM_ID_BYTES,
    STEM,
    Beat,
    Item,
    LinkDownOk,
    LinkUpKo,
    LinkUpOk,
    RequestLinkDown,
    RequestLinkUp,
    Word,
)
from planaria.protocols.mobile.orientation import LID_MAX
from planaria.protocols.mobile.three_state import ThreeState


def height(rng: Random) -> int:
    """Any height: like others, scattered, huge, at the ceiling, out of range."""
    ranges = [(0, 3), (0, 999), (0, HEIGHT_MAX), (HEIGHT_MAX - 3, HEIGHT_MAX), (-5, -1)]
    ranges += [(HEIGHT_MAX, 2**63 - 1), (GAP_MAX - 2, GAP_MAX + 2)]
    return rng.randint(*rng.choice(ranges))


def item(rng: Random) -> Item:
    """A publication that nobody made."""
    payload = rng.randbytes(rng.randrange(8))
    id = rng.randbytes(ITEM_ID_BYTES)
    return Item(id, rng.randrange(STEM + 1), payload)


def word(rng: Random) -> Word:
    """What any orientation might say, or nobody would."""
    tall = abs(height(rng))
    small = tuple(rng.randrange(3) for _ in range(rng.randrange(6)))
    bits = (rng.randrange(2), rng.randrange(3), rng.randrange(3))
    return rng.choice(
        [
            (tall % 3, tall, rng.randrange(LID_MAX), rng.randrange(2)),
            (rng.randrange(4),),
            small,
            bits,
        ]
    )


def scramble(layer: Layer, ids: Sequence[NodeId], rng: Random) -> None:
    """Arbitrary values for the variables of one layer; `leaving` is a wish, not a variable."""
    for peer in rng.sample(list(ids), min(3, len(ids))):
        state, counter = rng.choice([ASKED, UP, UP, CLOSING]), rng.choice([*range(5), -(1 << 40)])
        layer.links[peer] = Link(
            state=state,
            quiet=counter,
            stale=counter,
            heard=rng.choice([None, rng.randrange(SERIALS)]),
            ack=rng.choice([None, rng.randrange(SERIALS)]),
            replayed=rng.random() < 0.5,
            outbox=Outbox({rng.randbytes(ITEM_ID_BYTES): 1}, {rng.randbytes(ITEM_ID_BYTES): 1}, 7),
        )
    for peer in [peer for peer in layer.links if rng.random() < 0.2]:
        del layer.links[peer]
    layer.serial = rng.randrange(SERIALS)
    layer.refused = {peer: rng.randrange(-2, 9) for peer in rng.sample(list(ids), 1)}
    _scramble_orientation(layer, ids, rng)
    _scramble_news(layer, ids, rng)


def _scramble_orientation(layer: Layer, ids: Sequence[NodeId], rng: Random) -> None:
    mine = layer.orientation
    peers = [*layer.links, *rng.sample(list(ids), 1)]
    if isinstance(mine, Heights):
        mine.height, mine.lid = height(rng), rng.randrange(-1, LID_MAX + 2)
        mine.views = {
            peer: (abs(height(rng)), rng.randrange(5)) for peer in peers if rng.random() < 0.8
        }
        mine.settled, mine.loud = rng.random() < 0.5, rng.randrange(3)
    elif isinstance(mine, ThreeState):
        mine.val = rng.randrange(-1, 5)
        mine.views = {peer: (rng.randrange(3), lid) for peer, (_, lid) in mine.views.items()}
    elif isinstance(mine, EdgeBits):
        for edge in mine.edges.values():
            edge.bit, edge.other = rng.randrange(2), rng.randrange(2)


def _scramble_news(layer: Layer, ids: Sequence[NodeId], rng: Random) -> None:
    news = layer.news
    for _ in range(rng.randrange(3)):
        garbage = item(rng)
        news.store[garbage.id] = (garbage, rng.randrange(-200, 200))
        news.seen[garbage.id] = rng.randrange(-10_000, 10_000)
        if rng.random() < 0.3:
            news.local[garbage.id] = None
        if rng.random() < 0.3:
            news.hidden[garbage.id] = rng.randrange(-5, 20)
            news.walking[garbage.id] = rng.random() < 0.5
        news.input[garbage.id] = [rng.choice(ids)]
    news.input[rng.randbytes(ITEM_ID_BYTES)] = []
    news.local[rng.randbytes(ITEM_ID_BYTES)] = None
    news.now = rng.randrange(200)


def forged(topic: str, ids: Sequence[NodeId], rng: Random) -> Message:
    """Any message of a layer, from anybody."""
    sender = rng.choice(ids)
    serial, items = rng.randrange(SERIALS), tuple(item(rng) for _ in range(rng.randrange(3)))
    return rng.choice(
        [
            RequestLinkUp(topic, sender, word(rng)),
            LinkUpOk(topic, sender, word(rng)),
            LinkUpKo(topic, sender),
            RequestLinkDown(topic, sender),
            LinkDownOk(topic, sender),
            Beat(topic, sender, serial, rng.choice([None, serial]), word(rng), items),
            Beat(topic, sender, serial, None, word(rng), ()),
        ]
    )
