"""Messages to bytes and back. The one place where bytes of a peer can be an error."""

from typing import Any, Union

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from planaria.core.errors import CapacityExceeded, MalformedMessage
from planaria.core.message import Message, registry

FRAME_BYTES_MAX = 1 << 20  # a peer cannot make us hold more than this for one message


class Codec:
    """Encodes and decodes every message class that was imported when it was made."""

    def __init__(self) -> None:
        classes = tuple(registry().values())
        self._encoder = Encoder()
        self._decoder: Decoder[Any] = Decoder(Union[classes])  # noqa: UP007 - a run-time union

    def encode(self, message: Message) -> bytes:
        """The bytes of `message`; refuses what no peer would accept."""
        data = self._encoder.encode(message)
        if len(data) > FRAME_BYTES_MAX:
            raise CapacityExceeded(
                f"message of {len(data)} bytes: at most {FRAME_BYTES_MAX}, split the payload"
            )
        return data

    def decode(self, data: bytes) -> Message:
        """The message in `data`, or `MalformedMessage`: never another error."""
        if len(data) > FRAME_BYTES_MAX:
            raise MalformedMessage(f"frame of {len(data)} bytes: at most {FRAME_BYTES_MAX}")
        try:
            message: Message = self._decoder.decode(data)
        except (MsgspecError, RecursionError, UnicodeDecodeError, ValueError) as error:
            raise MalformedMessage(str(error)) from None
        return message
