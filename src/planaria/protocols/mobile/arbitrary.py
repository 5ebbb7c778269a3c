"""Arbitrary states and messages of the mobile overlay: 'any state can be the first state'.

Whatever memory can hold, in every variable. Values come from small sets as often as not, so that
two corrupted nodes confirm each other.
"""

from collections.abc import Callable, Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.protocols.mobile.dissemination import EMBARGO, Dissemination, Kept, Outbox
from planaria.protocols.mobile.heights import GAP_MAX, HEIGHT_MAX, LOUD, Heights
from planaria.protocols.mobile.layer import DRAIN_MAX, REFUSED, SILENCE_MAX, Layer
from planaria.protocols.mobile.link import ACKS, ASKED, CLOSING, SERIALS, UP, Link
from planaria.protocols.mobile.messages import (
    GENERATIONS_MAX,
    ITEM_ID_BYTES,
    PAYLOAD_BYTES_MAX,
    RECEIPT_MAX,
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
from planaria.protocols.mobile.orientation import AUDIT, LID_MAX, Orientation

HEIGHTS = (0, 3, GAP_MAX, 2 * GAP_MAX + 1, HEIGHT_MAX)  # where rules for heights end
WORD_VALUE_MAX = 2**63 - 1


def height(rng: Random) -> int:
    """Any height: like others, scattered, huge, at the ceiling, out of range."""
    if rng.random() < 0.5:
        return any_integer(rng, *HEIGHTS)
    return rng.randint(*rng.choice([(0, 3), (0, 999), (0, HEIGHT_MAX)]))


def item_id(topic: str, rng: Random) -> bytes:
    """The id of a publication that nobody made; some are known to many in a layer."""
    if rng.random() < 0.3:
        number = stable_hash(topic, rng.randrange(4), bits=8 * ITEM_ID_BYTES)
        return number.to_bytes(ITEM_ID_BYTES, "big")
    return rng.randbytes(ITEM_ID_BYTES)


def item(topic: str, rng: Random) -> Item:
    """A publication that nobody made, as it may come over a link."""
    return Item(item_id(topic, rng), rng.randrange(STEM + 1), rng.randbytes(rng.randrange(8)))


def stored(topic: str, rng: Random) -> Item:
    """What memory holds for a publication: perhaps none that could be sent."""
    sound = item(topic, rng)
    kind = rng.random()
    if kind < 0.1:
        return Item(sound.id, sound.generation, bytes(PAYLOAD_BYTES_MAX + 2))
    if kind < 0.2:
        return Item(rng.randbytes(rng.randrange(30)), sound.generation, sound.body)
    if kind < 0.4:
        return Item(sound.id, any_integer(rng, 0, GENERATIONS_MAX, STEM), sound.body)
    return sound


def word(rng: Random) -> Word:
    """What any orientation might say, or nobody would."""
    tall = min(abs(height(rng)), WORD_VALUE_MAX)
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


def scramble_heights(mine: Orientation, peers: list[NodeId], rng: Random) -> None:
    """Arbitrary values for one's own height, and for what is believed of others."""
    assert isinstance(mine, Heights)
    mine.lid = rng.choice([mine.lid, any_integer(rng, 0, LID_MAX)])
    mine.audit = {peer: any_integer(rng, 0, AUDIT) for peer in peers}
    mine.height = height(rng)
    mine.views = {
        peer: (height(rng), mine.views.get(peer, (0, any_integer(rng, 0, LID_MAX)))[1])
        for peer in peers
        if rng.random() < 0.8
    }
    mine.settled, mine.loud = any_integer(rng, 0, 1), any_integer(rng, 0, LOUD)


def scramble(
    layer: Layer,
    ids: Sequence[NodeId],
    rng: Random,
    scramble_orientation: Callable[[Orientation, list[NodeId], Random], None],
) -> None:
    """Arbitrary values for all variables of one layer, but that a member does not leave and a
    leaver does: that is a wish of the application."""
    for peer in rng.sample(list(ids), min(3, len(ids))):
        layer.links[peer] = _link(layer.topic, rng)
    for link in layer.links.values():
        if rng.random() < 0.3:
            _scramble_link(link, rng)
    for peer in [peer for peer in layer.links if rng.random() < 0.2]:
        del layer.links[peer]
    layer.serial = any_integer(rng, 0, SERIALS - 1)
    layer.said = (rng.choice([layer.orientation.greet(), word(rng)]), any_integer(rng, 0, SERIALS))
    layer.refused = {peer: any_integer(rng, 0, REFUSED) for peer in rng.sample(list(ids), 1)}
    if layer.leaving is not None:
        layer.leaving = any_integer(rng, 0, DRAIN_MAX)
    peers = [*layer.links, *rng.sample(list(ids), 1)]
    scramble_orientation(layer.orientation, peers, rng)
    _scramble_news(layer.topic, layer.news, ids, rng)


def _link(topic: str, rng: Random) -> Link:
    link = Link(rng.choice([ASKED, UP, UP, CLOSING, "nonsense"]))
    _scramble_link(link, rng)
    link.replayed = rng.random() < 0.5
    link.outbox = Outbox(
        {item_id(topic, rng): any_integer(rng, 0, STEM)},
        {item_id(topic, rng): any_integer(rng, 0, STEM)},
        {any_integer(rng, 0, RECEIPT_MAX): [item_id(topic, rng)]},
    )
    return link


def _scramble_link(link: Link, rng: Random) -> None:
    link.quiet, link.stale = (any_integer(rng, 0, SILENCE_MAX) for _ in range(2))
    link.heard = rng.choice([None, rng.randrange(SERIALS), any_integer(rng, 0, SERIALS - 1)])
    link.ack, link.acks = any_integer(rng, 0, RECEIPT_MAX), any_integer(rng, 0, ACKS)


def _scramble_news(topic: str, news: Dissemination, ids: Sequence[NodeId], rng: Random) -> None:
    for _ in range(rng.randrange(3)):
        garbage = stored(topic, rng)
        since = any_integer(rng, 0, 200)
        news.store[garbage.id] = Kept(garbage.generation, garbage.body, since)
        news.seen[garbage.id] = any_integer(rng, 0, 10_000)
        if rng.random() < 0.3:
            news.local[garbage.id] = None
        if rng.random() < 0.3:
            news.hidden[garbage.id] = any_integer(rng, 0, EMBARGO)
        if rng.random() < 0.3:
            news.walking[garbage.id] = rng.random() < 0.5
        news.input[garbage.id] = [rng.choice(ids)]
    news.input[rng.randbytes(ITEM_ID_BYTES)] = []
    news.local[rng.randbytes(ITEM_ID_BYTES)] = None
    news.walking[rng.randbytes(ITEM_ID_BYTES)] = False
    news.hidden[rng.randbytes(ITEM_ID_BYTES)] = any_integer(rng, 0, EMBARGO)
    news.seen[item_id(topic, rng)] = any_integer(rng, 0, 10_000)
    news.now = any_integer(rng, 0, 200)


def forged(topic: str, ids: Sequence[NodeId], rng: Random) -> Message:
    """Any message of a layer that can be decoded, from anybody."""
    sender = rng.choice(ids)
    serial, items = rng.randrange(SERIALS), tuple(item(topic, rng) for _ in range(rng.randrange(3)))
    ack, heard = rng.randrange(RECEIPT_MAX + 1), rng.randrange(SERIALS)
    return rng.choice(
        [
            RequestLinkUp(topic, sender, word(rng)),
            LinkUpOk(topic, sender, word(rng)),
            LinkUpKo(topic, sender),
            RequestLinkDown(topic, sender),
            LinkDownOk(topic, sender),
            Beat(topic, sender, serial, rng.choice([None, ack]), word(rng), items, heard),
            Beat(topic, sender, serial, None, word(rng), (), rng.choice([None, heard])),
        ]
    )
