"""Flooding as printed (paper 1, section 4.3), with erratum T7: a stored publication cuts the flood.

For tests and reports only. Literal readings kept: PUBLISHNEW carries the payload alone (T4), a
node forwards to all its neighbours, the sender among them, and only if it did not store p before.
"""

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Send


class PublishNew(Message, frozen=True, tag="literal.publish_new"):
    """PUBLISHNEW(p)."""

    payload: bytes


class Publish(Message, frozen=True, tag="literal.flooding_publish"):
    """PUBLISH(P) of Algorithm 5: what anti-entropy brings."""

    payload: bytes


class LiteralFlooding:
    """A subscriber's flooding over its fixed neighbours E_R and E_S; `trie` is u.T, in order."""

    def __init__(self, neighbours: list[NodeId]) -> None:
        self.neighbours = neighbours
        self.trie: dict[bytes, None] = {}

    def publish(self, payload: bytes) -> list[Effect]:
        """Insert p into u.T and send PUBLISHNEW(p) to all neighbours."""
        self.trie[payload] = None
        return [Send(v, PublishNew(payload)) for v in self.neighbours]

    def on_message(self, message: Message) -> list[Effect]:
        """PUBLISHNEW(p): if p is not in v.T, insert and forward it, else drop. PUBLISH: insert."""
        if isinstance(message, PublishNew) and message.payload not in self.trie:
            return self.publish(message.payload)
        if isinstance(message, Publish):
            self.trie[message.payload] = None
        return []
