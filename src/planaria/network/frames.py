"""Frames: how bytes on a connection become messages. Length first, many frames in one write.

    4 bytes   how many bytes follow
    1 byte    kind
    the rest  body

A peer that announces more than `FRAME_BYTES_MAX` is cut off before anything is held for it.
"""

from enum import IntEnum
from struct import Struct as Layout

from planaria.core.codec import FRAME_BYTES_MAX as MESSAGE_BYTES_MAX
from planaria.core.errors import MalformedMessage

HEAD = Layout(">IB")
_HEAD_BYTES = HEAD.size
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
    """Cuts what arrives into frames. What is whole is copied once, what is not waits in parts."""

    __slots__ = ("_held", "_needed", "_parts")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of an unfinished frame
        self._held = 0  # bytes in them
        self._needed = 0  # before anything more can be told

    def __len__(self) -> int:
        return self._held

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The frames that are whole by now, as (kind, body).

        Raises MalformedMessage for a length that no frame has: nothing around it can be trusted.
        """
        if self._parts:
            self._parts.append(data)
            self._held += len(data)
            if self._held < self._needed:
                return []
            data = b"".join(self._parts)
            self._parts, self._held = [], 0
        found: list[tuple[int, bytes]] = []
        start, end, needed = 0, len(data), _HEAD_BYTES
        while end - start >= _HEAD_BYTES:
            length, kind = HEAD.unpack_from(data, start)
            if not 1 <= length <= FRAME_BYTES_MAX:
                raise MalformedMessage(f"frame of {length} bytes: 1 to {FRAME_BYTES_MAX}")
            stop = start + _HEAD_BYTES - 1 + length
            if stop > end:
                needed = stop - start
                break
            found.append((kind, data[start + _HEAD_BYTES : stop]))
            start = stop
        if start < end:
            self._parts, self._held, self._needed = [data[start:]], end - start, needed
        return found
