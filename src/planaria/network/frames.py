"""Frames: how bytes on a connection become messages. Length first, many frames in one write.

    4 bytes   how many bytes follow
    1 byte    kind
    the rest  body

A peer that announces more than `FRAME_BYTES_MAX` is cut off before anything is held for it.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct as Layout

from planaria.core.codec import FRAME_BYTES_MAX as MESSAGE_BYTES_MAX
from planaria.core.errors import MalformedMessage

HEAD = Layout(">IB")
FRAME_BYTES_MAX = MESSAGE_BYTES_MAX + 1  # the largest message and its kind


class Kind(IntEnum):
    """What a frame is for; kinds that a version does not know are counted and ignored."""

    HELLO = 1  # who I am and which versions I speak: the first frame of each end
    REFUSE = 2  # why I hang up, in words
    CONTROL = 3  # one message of a protocol's upkeep
    BULK = 4  # one message that carries publications
    ACKNOWLEDGE = 5  # how many control and bulk frames were processed
    BEAT = 6  # I am alive
    WHERE = 7  # which contacts have these nodes?
    CONTACTS = 8  # so they can be reached


def frame(kind: int, body: bytes) -> bytes:
    """One frame."""
    return HEAD.pack(len(body) + 1, kind) + body


class Reader:
    """Cuts what arrives into frames."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The frames that are whole by now, as (kind, body).

        Raises MalformedMessage for a length that no frame has: nothing after it can be trusted.
        """
        held = self._data
        held += data
        start, end = 0, len(held)
        try:
            while end - start >= HEAD.size:
                length, kind = HEAD.unpack_from(held, start)
                if not 1 <= length <= FRAME_BYTES_MAX:
                    raise MalformedMessage(f"frame of {length} bytes: 1 to {FRAME_BYTES_MAX}")
                stop = start + HEAD.size - 1 + length
                if stop > end:
                    return
                body = bytes(memoryview(held)[start + HEAD.size : stop])
                start = stop
                yield kind, body
        finally:
            del held[:start]
