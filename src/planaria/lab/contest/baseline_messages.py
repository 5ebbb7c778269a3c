"""What the baselines say to each other; no overlay of the product accepts it."""

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in


class Copy(Message, frozen=True, tag="baseline.copy"):
    """An event on its way."""

    topic: str
    payload: bytes
    sender: NodeId


class Connect(Message, frozen=True, tag="baseline.connect"):
    """A client tells the broker what it wants, once for each connection."""

    sender: NodeId
    wish: str


class Ping(Message, frozen=True, tag="baseline.ping"):
    """Are you there?"""

    sender: NodeId


class Pong(Message, frozen=True, tag="baseline.pong"):
    """I am."""


class Acknowledge(Message, frozen=True, tag="baseline.acknowledge"):
    """I have it: do not send it again."""

    sender: NodeId
    key: int


MESSAGES = defined_in(globals())
