"""What can be published: attributes that every broker can match and every link can carry."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.topics import check_topic
from planaria.filters.filters import ATTRIBUTE_BYTES_MAX, TOPIC
from planaria.filters.timestamps import Timestamp
from planaria.filters.values import INTEGER_MAX, INTEGER_MIN, Value
from planaria.protocols.routing.messages import ID_BYTES, Notify

ATTRIBUTES_MAX = 64  # of one notification
NOTIFICATION_BYTES_MAX = FRAME_BYTES_MAX - 4096  # names, values and payload; the rest is its frame
GAP_MAX = (1 << 31) - 1  # more are reported as so many
_NUMBERS = (bool, int, float)  # a tuple: a union is made anew each time that it is asked for


class Notification(Struct):
    """A notification as a broker remembers it; `age` as of when it came."""

    id: bytes
    attributes: dict[str, Value]
    payload: bytes = b""
    age: int = 0
    gap: int = 0

    @property
    def topic(self) -> str:
        """What it was published on."""
        return str(self.attributes.get(TOPIC, ""))


def received(message: Notify) -> Notification:
    """What a message carries."""
    return Notification(message.id, message.attributes, message.payload, message.age, message.gap)


def to_send(sender: NodeId, it: Notification, after: bytes) -> Notify:
    """The message that carries a notification, `after` the one before it on the same link."""
    return Notify(sender, it.id, it.attributes, it.payload, it.age, after, it.gap)


def check_notification(attributes: Mapping[str, Any], payload: bytes) -> None:
    """Raises UsageError, in one line, if this cannot be published."""
    if len(attributes) > ATTRIBUTES_MAX:
        raise UsageError(f"{len(attributes)} attributes: at most {ATTRIBUTES_MAX}")
    if not isinstance(payload, bytes):
        raise UsageError(f"a payload of type {type(payload).__name__}: publish bytes")
    size = len(payload)
    for name, value in attributes.items():
        if not isinstance(name, str) or not 0 < len(name) <= ATTRIBUTE_BYTES_MAX:
            raise UsageError(
                f"an attribute's name is a text of 1 to {ATTRIBUTE_BYTES_MAX} characters"
            )
        size += _bytes(name, name) + _bytes(name, value)
    if size > NOTIFICATION_BYTES_MAX:
        raise UsageError(f"a notification of {size} bytes: at most {NOTIFICATION_BYTES_MAX}")
    if TOPIC in attributes:
        check_topic(str(attributes[TOPIC]))


def is_topic(text: str) -> bool:
    """Can something be published on this?"""
    try:
        check_topic(text)
    except UsageError:
        return False
    return True


def is_sound(it: Notification) -> bool:
    """Could this have been published and sent? What a fault left in a memory may not."""
    try:
        check_notification(it.attributes, it.payload)
    except UsageError:
        return False
    return len(it.id) == ID_BYTES and 0 <= it.gap <= GAP_MAX


def _bytes(name: str, value: object) -> int:
    """How long `value` is on the wire; raises UsageError if no attribute can have it."""
    if isinstance(value, str):
        if value.isascii():  # nearly all are, and this makes no copy
            return len(value)
        try:
            return len(value.encode())
        except UnicodeEncodeError:
            raise UsageError(f"attribute {name!r}: not valid Unicode text") from None
    if isinstance(value, Timestamp):
        value = value.microseconds
    if not isinstance(value, _NUMBERS):
        kinds = "a number, a text, true, false or a timestamp"
        raise UsageError(f"attribute {name!r} of type {type(value).__name__}: publish {kinds}")
    if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
        raise UsageError(f"attribute {name!r}: a whole number has 64 bits; publish a float")
    return 9
