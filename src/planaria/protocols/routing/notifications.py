"""What can be published: attributes that every broker can match and every link can carry."""

from collections.abc import Mapping
from typing import Any

from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.errors import UsageError
from planaria.core.topics import check_topic
from planaria.filters.filters import ATTRIBUTE_BYTES_MAX, TOPIC
from planaria.filters.timestamps import Timestamp
from planaria.filters.values import INTEGER_MAX, INTEGER_MIN
from planaria.protocols.routing.messages import Notify

ATTRIBUTES_MAX = 64  # of one notification
NOTIFICATION_BYTES_MAX = FRAME_BYTES_MAX - 4096  # names, values and payload; the rest is its frame
ID_BYTES = 16


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
        if not isinstance(attributes[TOPIC], str):
            raise UsageError(f"topic {attributes[TOPIC]!r}: a topic is text")
        check_topic(attributes[TOPIC])


def is_sound(message: Notify) -> bool:
    """Could this have been published and sent? What a fault left in a memory may not."""
    try:
        check_notification(message.attributes, message.payload)
    except UsageError:
        return False
    return len(message.id) == ID_BYTES


def _bytes(name: str, value: object) -> int:
    """How long `value` is on the wire; raises UsageError if no attribute can have it."""
    if isinstance(value, str):
        try:
            return len(value.encode())
        except UnicodeEncodeError:
            raise UsageError(f"attribute {name!r}: not valid Unicode text") from None
    if isinstance(value, Timestamp):
        value = value.microseconds
    if not isinstance(value, bool | int | float):
        kinds = "a number, a text, true, false or a timestamp"
        raise UsageError(f"attribute {name!r} of type {type(value).__name__}: publish {kinds}")
    if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
        raise UsageError(f"attribute {name!r}: a whole number has 64 bits; publish a float")
    return 9
