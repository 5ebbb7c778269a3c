"""The one contract between a protocol and whatever runs it. No I/O, no clock, no await.

A node is a state machine. A driver (the simulator, the network host) calls it with a message,
with 'time passed', or with a command of the local application, and performs the effects that
come back. Same state, same input, same random stream: same effects.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct

from planaria.core.errors import MalformedState
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.state import Stateful, decode_state


class Effect(Struct, frozen=True, gc=False):
    """What a node asks its driver to do."""


class Send(Effect, frozen=True, gc=False):
    """Put `message` on the channel to `target`; it may be lost, delayed, repeated, reordered."""

    target: NodeId
    message: Message


class Delivery(Struct, frozen=True, gc=False):
    """One publication as its subscriber gets it; `timestamp` in milliseconds since 1970.

    `publisher` and `sequence` are None where the overlay keeps publishers anonymous.
    """

    id: bytes
    payload: bytes
    publisher: NodeId | None = None
    sequence: int | None = None
    attributes: dict[str, Any] = {}
    key: bytes | None = None
    headers: dict[str, str] = {}
    timestamp: int | None = None


class Deliver(Effect, frozen=True, gc=False):
    """Hand publications to the local application, in this order. No `id` twice for one `client`.

    The sequence may make its elements as they are asked for.
    """

    topic: str
    publications: Sequence[Delivery]
    client: int = 0

    @classmethod
    def one(cls, topic: str, *fields: Any, client: int = 0, **named: Any) -> Self:
        """Hand over a single publication, with the fields of a `Delivery`."""
        return cls(topic, (Delivery(*fields, **named),), client)


class Published(Effect, frozen=True, gc=False):
    """Tell the local application which `id` its publication has; nobody else is told.

    Of several that were published at once (`PublishMany`) it is the first of `count`.
    """

    topic: str
    id: bytes
    publisher: NodeId | None = None
    sequence: int | None = None
    count: int = 1


class Joined(Effect, frozen=True, gc=False):
    """Tell the local application that its subscription is in force at the overlay."""

    pattern: str
    client: int = 0


class Persist(Effect, frozen=True, gc=False):
    """Put what the node has stored so far on disk before any effect that follows in the same list.

    A crash before it loses what was stored and all that follows; a crash after it only the latter.
    """


class Notice(Effect, frozen=True, gc=False):
    """Tell the local application about its subscription: `gap`, `late`, `equivocation`, ..."""

    topic: str
    kind: str
    detail: dict[str, Any]


class Command(Struct, frozen=True, gc=False):
    """What the local application, or the driver as a sensor, tells the node."""


class Subscribe(Command, frozen=True, gc=False, cache_hash=True):
    """Become a subscriber of `pattern`, a topic or one with the wildcards `+` and `#`.

    `where` is a condition on attributes. `ordered`: deliver in each publisher's order, report
    gaps. What an overlay cannot do it refuses with `UsageError`.
    """

    pattern: str = "#"
    ordered: bool = False
    where: Any = None
    client: int = 0


class Unsubscribe(Command, frozen=True, gc=False):
    """Stop being a subscriber of `pattern`; the node may still be needed until peers let it go."""

    pattern: str = "#"
    where: Any = None
    client: int = 0


class Publish(Command, frozen=True, gc=False):
    """Publish `payload`, or `attributes` that conditions can be about, on `topic`.

    The answer is a `Published`. `timestamp` is in milliseconds since 1970.
    """

    topic: str
    payload: bytes = b""
    attributes: dict[str, Any] = {}
    key: bytes | None = None
    headers: dict[str, str] = {}
    timestamp: int | None = None


class PublishMany(Command, frozen=True, gc=False):
    """Publish all of these on `topic`, in this order, or none; they leave together.

    The answer is one `Published`. What cannot be published is a `UsageError`.
    """

    topic: str
    publications: Sequence[Publish]


class Leave(Command, frozen=True, gc=False):
    """Leave the network in good order; the node may be needed until its peers let it go."""


class Clock(Command, frozen=True, gc=False):
    """The driver read its wall clock: whole seconds, possibly wrong. Given before each timeout
    to nodes that set `reads_clock`."""

    seconds: int


class Restarted(Command, frozen=True, gc=False):
    """The process ended and began again with the state restored: its connections are gone."""


class LinkUp(Command, frozen=True, gc=False):
    """The driver has a connection to `peer`."""

    peer: NodeId


class LinkDown(Command, frozen=True, gc=False):
    """The driver lost its connection to `peer`, or a send to it failed. A hint, maybe false.

    `unacknowledged` is what was sent and may not have arrived, in the order of sending.
    """

    peer: NodeId
    unacknowledged: tuple[Message, ...] = ()


class Supervisors(Command, frozen=True, gc=False):
    """These nodes supervise, as far as the driver knows; given whenever that changes."""

    ids: tuple[NodeId, ...]


class Busy(Command, frozen=True, gc=False):
    """The link to `peer` is full: what is sent now is dropped. It catches up by itself later."""

    peer: NodeId


class Ready(Command, frozen=True, gc=False):
    """The link to `peer` takes messages again."""

    peer: NodeId


Effects = Sequence[Effect]

NOTHING: Effects = ()


class Node(Stateful):
    """A protocol state machine. Subclasses override the three inputs they react to."""

    __slots__ = ("id",)

    reads_clock: ClassVar[bool] = False

    def __init__(self, id: NodeId) -> None:
        self.id = id

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A peer speaks: `sender`, as the link knows it; None if nobody vouches for it."""
        return NOTHING

    def on_timeout(self) -> Effects:
        """Time passed. The driver calls this again and again, however busy the inbox is."""
        return NOTHING

    def on_command(self, command: Command) -> Effects:
        """The local application asks, or the driver reports what it senses."""
        return NOTHING

    def restore(self, data: bytes) -> Effects:
        """Take a stored state, however old or wrong; bytes that are no state leave it fresh."""
        try:
            state = decode_state(self.state_type, data)
        except MalformedState as error:
            return [Notice("", "fresh", {"reason": str(error)})]
        self.load(state)
        return NOTHING
