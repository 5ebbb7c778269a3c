"""A publication, and the key that names it on every machine."""

from hashlib import blake2b
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.msgpack import Encoder

from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.ids import NodeId

KEY_BITS = 128
EPOCH_MAX = 2**63 - 1
HEADER_BYTES_MAX = 64  # five integers of at most 9 bytes, and the lengths of array and payload
# A message around one publication needs at most a topic of 1024 bytes and some integers.
PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - 4096

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Unsigned = Annotated[int, Meta(ge=0)]  # 64 bits: the encoding itself ends there
Epoch = Annotated[int, Meta(ge=0, le=EPOCH_MAX)]

_encoder = Encoder()  # stateless; its arrays and integers have one encoding each


class Publication(Struct, frozen=True, array_like=True, gc=False):
    """What a publisher said once (erratum T4: the paper's (id, p) cannot be said twice).

    `low` is the lowest sequence number of this incarnation that the publisher still vouches for.
    """

    publisher: NodeId
    incarnation: Unsigned
    sequence: Count
    low: Count
    epoch: Epoch
    payload: Annotated[bytes, Meta(max_length=PAYLOAD_BYTES_MAX)]


def key(publication: Publication) -> bytes:
    """The 128-bit key: two publications have one key only if all their fields are equal."""
    encoded = _encoder.encode(publication)
    return blake2b(encoded, digest_size=KEY_BITS // 8, person=b"publication").digest()
