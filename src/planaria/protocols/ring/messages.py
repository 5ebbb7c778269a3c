"""Messages of the sorted ring. `group` tells apart the rings that one node takes part in."""

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in

RingLabel = int | bytes  # anything with a total order that all members agree on
Ref = tuple[RingLabel, NodeId]  # a node and the label it is believed to have
RawRef = tuple[int | bytes, int]  # what a variable for one may hold


class RingMessage(Message, frozen=True):
    """Base of the messages of the sorted ring."""

    group: str


class Check(RingMessage, frozen=True, tag="ring.check"):
    """I am `sender` and believe that your label is `believed`; we are neighbours (Alg. 1, 8)."""

    sender: Ref
    believed: RingLabel
    cyclic: bool


class Introduce(RingMessage, frozen=True, tag="ring.introduce"):
    """There is a node `ref` (Alg. 2, 16); `hops` bounds how far garbage travels."""

    ref: Ref
    cyclic: bool
    hops: int


class Remove(RingMessage, frozen=True, tag="ring.remove"):
    """Node `id` is not a member: forget it (REMOVECONNECTIONS)."""

    id: NodeId


def speaker(message: RingMessage) -> NodeId | None:
    """Who alone may say this, for it is about itself; None: hearsay, which anybody may pass on."""
    if isinstance(message, Check):
        return message.sender[1]
    if isinstance(message, Introduce):
        return None if message.hops else message.ref[1]
    return message.id if isinstance(message, Remove) else None


MESSAGES = defined_in(globals())
