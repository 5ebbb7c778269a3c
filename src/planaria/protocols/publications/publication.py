"""A publication, and the key that names it on every machine."""

from hashlib import blake2b
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.msgpack import Encoder

from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.ids import NodeId, is_node_id

KEY_BITS = 128
TIME_BITS = 40  # seconds since 1970, for 34,000 years
TIME_MAX = (1 << TIME_BITS) - 1
PLACE_BITS = TIME_BITS + KEY_BITS
HEADER_BYTES_MAX = 64  # five integers of at most 9 bytes, and the lengths of array and payload
# A message around one publication needs at most a topic of 1024 bytes and some integers.
PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - 4096

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Unsigned = Annotated[int, Meta(ge=0)]  # 64 bits: the encoding itself ends there
Time = Annotated[int, Meta(ge=0, le=TIME_MAX)]

Place = int  # a publication's place in the order of retention: its time, then its key

_encoder = Encoder()  # stateless; its arrays and integers have one encoding each


class Publication(Struct, frozen=True, array_like=True, gc=False):
    """What a publisher said once (erratum T4: the paper's (id, p) cannot be said twice).

    `low` is the lowest sequence number of this incarnation that the publisher still vouches for,
    `time` the second it was published in: what that means depends on no setting.
    """

    publisher: NodeId
    incarnation: Unsigned
    sequence: Count
    low: Count
    time: Time
    payload: Annotated[bytes, Meta(max_length=PAYLOAD_BYTES_MAX)]


def key(publication: Publication) -> bytes:
    """The 128-bit key: two publications have one key only if all their fields are equal."""
    try:
        encoded = _encoder.encode(publication)
    except OverflowError:  # only memory can hold such numbers; `sound` is False of them
        encoded = repr(publication).encode()
    return blake2b(encoded, digest_size=KEY_BITS // 8, person=b"publication").digest()


def place_of(publication: Publication) -> Place:
    """Where a publication stands in the order of retention, (time, key), as one integer."""
    return publication.time << KEY_BITS | int.from_bytes(key(publication), "big")


def sound(publication: Publication) -> bool:
    """Could this have come over the wire? Memory can hold what no publisher could say."""
    return (
        0 <= publication.time <= TIME_MAX
        and is_node_id(publication.publisher)
        and 0 <= publication.incarnation < 1 << 64
        and 0 <= publication.sequence < 1 << 63
        and 0 <= publication.low < 1 << 63
        and len(publication.payload) <= PAYLOAD_BYTES_MAX
    )
