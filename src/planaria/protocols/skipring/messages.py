"""Messages of the supervised skip ring; the names are the paper's (Algorithms 3 and 4).

Each carries its topic, because a process takes part in one ring per topic (section 4).
"""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.publications.antientropy_messages import Digest
from planaria.protocols.ring.messages import RingMessage
from planaria.protocols.ring.messages import speaker as ring_speaker
from planaria.protocols.skipring.labels import Label
from planaria.protocols.skipring.pace import Promise

WINDOW_MAX = 20  # timeouts over which a node may spread its request: log2 of the largest topic
MISSING_MAX = 2  # neighbours a request may accuse: those on the ring

Ref = tuple[Label, NodeId]  # a node and the label it is believed to have
Window = Annotated[int, Meta(ge=1, le=WINDOW_MAX)]
Hops = Annotated[int, Meta(ge=0, le=WINDOW_MAX)]
Sum = Annotated[int, Meta(ge=0)]  # 64 bits (msgpack has no more), of a subtree of labels


class RingTopicMessage(Message, frozen=True):
    """Base of all messages about one topic's skip ring."""

    topic: str


class GetConfiguration(RingTopicMessage, frozen=True, tag="skipring.get_configuration"):
    """Send me my configuration; record me if you have not (SUBSCRIBE and GETCONFIGURATION).

    Only the asker itself is ever recorded (E6). `children` are the sums the asker has for its two
    children in the tree of labels; `missing` are neighbours it has not heard for long; `place` is
    one number for its label and ring neighbours, so that those who are wrong are answered first.
    """

    sender: NodeId
    label: Label | None
    children: tuple[Sum | None, Sum | None]
    missing: Annotated[list[NodeId], Meta(max_length=MISSING_MAX)]
    place: Sum | None = None


class Unsubscribe(RingTopicMessage, frozen=True, tag="skipring.unsubscribe"):
    """I leave; repeated until permitted (E7)."""

    sender: NodeId


class SetData(RingTopicMessage, frozen=True, tag="skipring.set_data"):
    """Your configuration. Without a label: you are not a member.

    `version` orders configurations of one supervisor, `window` is its load: spread what you cause
    over so many timeouts. `probe` asks for an answer at once; `spread` has your neighbours woken,
    and theirs, for most of the ring is not recorded.
    """

    supervisor: NodeId
    version: int
    label: Label | None
    pred: Ref | None
    succ: Ref | None
    window: Window
    probe: bool
    spread: bool = False


class Moved(RingTopicMessage, frozen=True, tag="skipring.moved"):
    """Another supervisor, `to`, is alive and closer to this topic: ask it."""

    supervisor: NodeId
    to: NodeId


class Probe(RingTopicMessage, frozen=True, tag="skipring.probe"):
    """One supervisor asks another, closer to the topic, whether it is alive."""

    sender: NodeId


class ProbeReply(RingTopicMessage, frozen=True, tag="skipring.probe_reply"):
    """It is."""

    sender: NodeId


class Greeting(RingTopicMessage, frozen=True, tag="skipring.check"):
    """CHECK: I am your ring neighbour `sender` and believe your label is `believed` (Alg. 1).

    It speaks again within as many intervals as it promises.
    """

    sender: Ref
    believed: Label
    digest: Digest | None
    promise: Promise = 1


class IntroduceShortcut(RingTopicMessage, frozen=True, tag="skipring.introduce_shortcut"):
    """Your shortcut on my level is `ref` (Alg. 4); to my parent, `subtree` is my sum."""

    sender: Ref
    ref: Ref | None
    subtree: Sum | None
    digest: Digest | None
    promise: Promise = 1


class Wake(RingTopicMessage, frozen=True, tag="skipring.wake"):
    """Something about you changed or contradicts: ask the supervisor within `window` timeouts.

    With `hops` a supervisor wants to hear from everybody: pass that on so many times.
    """

    window: Window
    hops: Hops = 0


class RemoveConnections(RingTopicMessage, frozen=True, tag="skipring.remove_connections"):
    """I am not a member: forget me."""

    sender: NodeId


def speaker(message: Message) -> NodeId | None:
    """In whose name a message speaks: it counts only if it comes from there. None: in nobody's."""
    said: NodeId | Ref | None = getattr(message, "sender", None)
    if said is not None:
        return said[1] if isinstance(said, tuple) else said
    if isinstance(message, RingMessage):
        return ring_speaker(message)
    return getattr(message, "supervisor", None)


MESSAGES = defined_in(globals())
