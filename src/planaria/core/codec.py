"""Messages to bytes and back. The one place where bytes of a peer can be an error."""

from collections.abc import Iterable
from typing import Any, Union

from msgspec import MsgspecError, Raw
from msgspec.msgpack import Decoder, Encoder, decode

from planaria.core.errors import CapacityExceeded, MalformedMessage, UnknownMessage, UsageError
from planaria.core.message import Message, tag_of

# A payload of a mebibyte and what stands round it; a peer cannot make us hold more for one message.
FRAME_BYTES_MAX = (1 << 20) + (1 << 16)


_ENCODER = Encoder()
_FIELDS: Decoder[list[Raw]] = Decoder(list[Raw])


def to_wire(message: Message) -> bytes:
    """The bytes of any message; refuses one that no frame can carry."""
    data = _ENCODER.encode(message)
    if len(data) > FRAME_BYTES_MAX:
        raise CapacityExceeded(
            f"message of {len(data)} bytes: at most {FRAME_BYTES_MAX}, split the payload"
        )
    return data


class Codec:
    """Encodes and decodes the message classes of an overlay (`Overlay.messages`), and no others."""

    def __init__(self, classes: Iterable[type[Message]]) -> None:
        self.classes = dict.fromkeys(classes)
        tags = [str(cls.__struct_config__.tag) for cls in self.classes]
        twice = sorted({tag for tag in tags if tags.count(tag) > 1})
        if twice or not tags:
            said = f"message tag {twice[0]!r} is used twice" if twice else "a codec needs messages"
            raise UsageError(said)
        union: Any = Union[tuple(self.classes)]  # noqa: UP007 - a run-time union
        self._decoder: Decoder[Any] = Decoder(union)
        self._tags = frozenset(tags)

    def encode(self, message: Message) -> bytes:
        """The bytes of `message`; refuses what no peer would accept."""
        if type(message) not in self.classes:
            raise UsageError(f"{tag_of(message)!r} is not a message of this overlay")
        return to_wire(message)

    def decode(self, data: bytes) -> Message:
        """The message in `data`, or `MalformedMessage`: never another error.

        It is an `UnknownMessage` if the tag is one that nobody here knows.
        """
        if len(data) > FRAME_BYTES_MAX:
            raise MalformedMessage(f"frame of {len(data)} bytes: at most {FRAME_BYTES_MAX}")
        try:
            message: Message = self._decoder.decode(data)
        except (MsgspecError, RecursionError, UnicodeDecodeError, ValueError) as error:
            unknown = UnknownMessage if self._is_unknown(data) else MalformedMessage
            raise unknown(" ".join(str(error).split())) from None  # tags of a peer may hold lines
        return message

    def _is_unknown(self, data: bytes) -> bool:
        """Is this a message, but of a tag that is not among ours?"""
        try:
            fields = _FIELDS.decode(data)
            tag = decode(fields[0], type=str)
        except (MsgspecError, LookupError, RecursionError, ValueError):
            return False
        return tag not in self._tags
