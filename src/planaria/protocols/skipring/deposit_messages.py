"""The messages of deposits. Every field may be false; handlers believe none of them."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.publications.antientropy_messages import RecordBytes, RecordKey

REASON_LENGTH_MAX = 200


class Deposit(Message, frozen=True, gc=False, tag="publications.deposit"):
    """Hold this record, with `spread` also begin its broadcast, and tell me when it is on disk.

    Without `durable`, tell me when it is in memory. With `stage`, hold it outside of the history.
    """

    topic: str
    sender: NodeId
    record: RecordBytes
    spread: bool
    durable: bool = True
    stage: bool = False


class Held(Message, frozen=True, gc=False, tag="publications.held"):
    """I am a member of the topic and hold the record of that key."""

    topic: str
    sender: NodeId
    key: RecordKey


class NotHeld(Message, frozen=True, gc=False, tag="publications.not_held"):
    """I do not hold it, and why not: one of `deposits.REASONS`."""

    topic: str
    sender: NodeId
    key: RecordKey
    reason: Annotated[str, Meta(max_length=REASON_LENGTH_MAX)]


MESSAGES = defined_in(globals())
