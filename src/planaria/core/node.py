"""The one contract between a protocol and whatever runs it. No I/O, no clock, no await.

A node is a state machine. A driver (the simulator, the network host) calls it with a message,
with 'time passed', or with a command of the local application, and performs the effects that
come back. Same state, same input, same random stream: same effects.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message


class Effect(Struct, frozen=True, gc=False):
    """What a node asks its driver to do."""


class Send(Effect, frozen=True, gc=False):
    """Put `message` on the channel to `target`; it may be lost, delayed, repeated, reordered."""

    target: NodeId
    message: Message


class Deliver(Effect, frozen=True, gc=False):
    """Hand a publication to the local application. Never twice for one `msg_id`.

    `publisher` and `sequence` are None where the overlay keeps publishers anonymous.
    """

    topic: str
    msg_id: bytes
    payload: bytes
    publisher: NodeId | None = None
    sequence: int | None = None


class Notice(Effect, frozen=True, gc=False):
    """Tell the local application about its subscription: `gap`, `late`, `equivocation`, ..."""

    topic: str
    kind: str
    detail: dict[str, Any]


class Command(Struct, frozen=True, gc=False):
    """What the local application, or the driver as a sensor, tells the node."""


class Subscribe(Command, frozen=True, gc=False):
    """Become a subscriber of `topic`; `ordered`: deliver in each publisher's order, report gaps."""

    topic: str
    ordered: bool = False


class Unsubscribe(Command, frozen=True, gc=False):
    """Stop being a subscriber of `topic`; the node may still be needed until peers let it go."""

    topic: str


class Publish(Command, frozen=True, gc=False):
    """Publish `payload` on `topic`."""

    topic: str
    payload: bytes


class Clock(Command, frozen=True, gc=False):
    """The driver read its wall clock: whole seconds, possibly wrong. Given before each timeout
    to nodes that set `reads_clock`."""

    seconds: int


class LinkUp(Command, frozen=True, gc=False):
    """The driver has a connection to `peer`."""

    peer: NodeId


class LinkDown(Command, frozen=True, gc=False):
    """The driver lost its connection to `peer`, or a send to it failed. A hint, maybe false."""

    peer: NodeId


Effects = Sequence[Effect]

NOTHING: Effects = ()


class Stateful:
    """Something with protocol state: a node, or a component that a node is made of.

    `variables` names the attributes that are protocol state: what a store keeps over a restart
    and what a transient fault may change. Everything else is configuration. Snapshots are plain
    values: they can be compared, stored and sent.
    """

    __slots__ = ()

    variables: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Any]:
        """A copy of the protocol state, to store or to come back to."""
        return {name: deepcopy(getattr(self, name)) for name in self.variables}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state, however old; unknown names in it are ignored."""
        for name in self.variables:
            if name in snapshot:
                setattr(self, name, deepcopy(snapshot[name]))


class Node(Stateful):
    """A protocol state machine. Subclasses override the three inputs they react to."""

    __slots__ = ("id",)

    reads_clock: ClassVar[bool] = False

    def __init__(self, id: NodeId) -> None:
        self.id = id

    def on_message(self, message: Message) -> Effects:
        """A peer, or old garbage in the channel, speaks."""
        return NOTHING

    def on_timeout(self) -> Effects:
        """Time passed. The driver calls this again and again, however busy the inbox is."""
        return NOTHING

    def on_command(self, command: Command) -> Effects:
        """The local application asks, or the driver reports what it senses."""
        return NOTHING
