"""A publication, and the key that names it on every machine."""

from hashlib import blake2b
from struct import Struct as Struct64
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.msgpack import Encoder

from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.ids import is_node_id

KEY_BITS = 128
TIME_BITS = 40  # seconds since 1970, for 34,000 years
TIME_MAX = (1 << TIME_BITS) - 1
RANK_BITS = TIME_BITS + KEY_BITS
HEADER_BYTES_MAX = 64  # five integers of at most 9 bytes, and the lengths of array and payload
# A message around one publication needs at most a topic of 1024 bytes and some integers.
PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - 4096

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Unsigned = Annotated[int, Meta(ge=0)]  # 64 bits: the encoding itself ends there
Time = Annotated[int, Meta(ge=0, le=TIME_MAX)]

Rank = int  # where a publication stands in the order of retention: its time, then its key

Named = tuple[bytes, "Publication"]  # a publication and its key, computed where it came in

_WORD = (1 << 64) - 1
_position = Struct64(">QQQ")
_encoder = Encoder()  # stateless; its arrays and integers have one encoding each


class Publication(Struct, frozen=True, array_like=True, gc=False):
    """What a publisher said once (erratum T4: the paper's (id, p) cannot be said twice).

    `low` is the lowest sequence number of this incarnation that the publisher still vouches for,
    `time` the second it was published in: what that means depends on no setting. Messages and
    memory hold any numbers; only what is `sound` is taken.
    """

    publisher: int
    incarnation: int
    sequence: int
    low: int
    time: int
    payload: bytes


def key(publication: Publication) -> bytes:
    """The 128-bit key: two publications have one key only if all their fields are equal."""
    try:
        encoded = _encoder.encode(publication)
    except OverflowError:  # only memory can hold such numbers; `sound` is False of them
        encoded = repr(publication).encode()
    return blake2b(encoded, digest_size=KEY_BITS // 8, person=b"publication").digest()


def rank_of(publication: Publication, name: bytes | None = None) -> Rank:
    """Where a publication stands in the order of retention, (time, key), as one integer.

    `name` is its key, where it is known already.
    """
    name = key(publication) if name is None else name
    return publication.time << KEY_BITS | int.from_bytes(name, "big")


def position_id(publication: Publication) -> bytes:
    """The id by which applications know a publication: publisher, incarnation, number.

    Published again with another time it is still the same one.
    """
    return _position.pack(
        publication.publisher & _WORD, publication.incarnation & _WORD, publication.sequence & _WORD
    )


def sound(publication: Publication) -> bool:
    """Could a publisher have said this? Memory, and a liar's message, can hold anything."""
    return (
        0 <= publication.time <= TIME_MAX
        and is_node_id(publication.publisher)
        and 0 <= publication.incarnation < 1 << 64
        and 0 <= publication.sequence < 1 << 63
        and 0 <= publication.low < 1 << 63
        and len(publication.payload) <= PAYLOAD_BYTES_MAX
    )
