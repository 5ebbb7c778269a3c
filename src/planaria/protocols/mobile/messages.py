"""What mobile nodes say to each other. A sender is the next hop, never the publisher."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Annotated

from msgspec import Meta, Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.core.topics import TOPIC_BYTES_MAX

ITEM_ID_BYTES = 16  # random: two publications of a lifetime never collide, and none names anybody
GENERATIONS_MAX = 15  # how often a publication may be replayed from link to new link
STEM = GENERATIONS_MAX + 1  # the generation of a copy that is handed over, before the flood begins
PAYLOAD_BYTES_MAX = 1 << 18
MARK = b"\x80"  # where a payload ends and its padding begins
# Of one turn and link; the rest waits for the next turn. A node has a turn at most at every second
# timeout, so what one link brings fits into the store for as long as it is kept there.
ITEMS_MAX = 64
RECEIPT_MAX = 2**32 - 1
WORD_MAX = 8  # integers an orientation says to one neighbour

LayerName = Annotated[str, Meta(max_length=TOPIC_BYTES_MAX)]
Byte = Annotated[int, Meta(ge=0, le=255)]
Receipt = Annotated[int, Meta(ge=0, le=RECEIPT_MAX)]
Value = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Word = Annotated[tuple[Value, ...], Meta(max_length=WORD_MAX)]


class Item(Struct, frozen=True, array_like=True, gc=False):
    """A publication on its way; `body` is its payload, a mark, and padding.

    The mark is inside: a length beside it would be longer for a longer payload.
    """

    id: Annotated[bytes, Meta(min_length=ITEM_ID_BYTES, max_length=ITEM_ID_BYTES)]
    generation: Annotated[int, Meta(ge=0, le=STEM)]
    body: Annotated[bytes, Meta(max_length=PAYLOAD_BYTES_MAX + 1)]

    @property
    def payload(self) -> bytes:
        """What was published; garbage without a mark is taken as it is."""
        return self.body.rstrip(b"\0").removesuffix(MARK)


def padded(payload: bytes, multiple: int) -> bytes:
    """The body of a payload, as long as any other of up to that many bytes, or of no padding."""
    size = len(payload) + 1
    if multiple:
        size = min(-(-size // multiple) * multiple, PAYLOAD_BYTES_MAX + 1)
    return (payload + MARK).ljust(size, b"\0")


def receipt(serial: int, ids: Iterable[bytes]) -> int:
    """What acknowledges the items of one beat: it names them and the beat, so that no other beat
    is taken for acknowledged, whenever its serial comes round again."""
    digest = blake2b(b"".join(ids), digest_size=4, salt=serial.to_bytes(1, "big"))
    return int.from_bytes(digest.digest(), "big")


class MobileMessage(Message, frozen=True):
    """Belongs to one layer and comes from a node one hop away."""

    layer: LayerName
    sender: NodeId


class RequestLinkUp(MobileMessage, frozen=True, tag="mobile.request_link_up"):
    """Will you be my neighbour? `word` is what my orientation tells a newcomer (3.1)."""

    word: Word


class LinkUpOk(MobileMessage, frozen=True, tag="mobile.link_up_ok"):
    """Yes, and here is my orientation's word."""

    word: Word


class LinkUpKo(MobileMessage, frozen=True, tag="mobile.link_up_ko"):
    """No: not in this layer, or no room."""


class RequestLinkDown(MobileMessage, frozen=True, tag="mobile.request_link_down"):
    """I am no neighbour of yours any more."""


class LinkDownOk(MobileMessage, frozen=True, tag="mobile.link_down_ok"):
    """I have forgotten you."""


class Beat(MobileMessage, frozen=True, tag="mobile.beat"):
    """Sent once per timeout and link: I am here, this is my side of the link's orientation.

    `items` come with a turn only. `ack` is the receipt for the last items that came from you.
    `serial` puts beats in order on a link that does not; `heard` is yours that I heard last.
    """

    serial: Byte
    ack: Receipt | None
    word: Word
    items: Annotated[tuple[Item, ...], Meta(max_length=ITEMS_MAX)]
    heard: Byte | None = None


MESSAGES = defined_in(globals())
