"""The messages of the broadcast. Every field may be false; handlers believe none of them."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.publications.antientropy_messages import RecordBytes, RecordKey
from planaria.protocols.skipring.labels import Label

Position = Annotated[int, Meta(ge=0)]  # msgpack bounds it to 64 bits, arithmetic is mod
Side = Annotated[int, Meta(ge=0, le=2)]
Hops = Annotated[int, Meta(ge=0, le=1 << 16)]


class Arc(Message, frozen=True, tag="publications.arc"):
    """Serve the arc (lo, hi): you, whose label I believe to be `to`, owe it to all nodes there."""

    topic: str
    sender: NodeId
    record: RecordBytes
    to: Label
    lo: Position
    hi: Position
    side: Side
    hops: Hops


class Flood(Message, frozen=True, tag="publications.flood"):
    """Pass this on to all your neighbours, the first time you see it (paper, 4.3)."""

    topic: str
    sender: NodeId
    record: RecordBytes
    hops: Hops


class Nack(Message, frozen=True, tag="publications.nack"):
    """I am not at `to`, my label is `label`; the arc you sent me is yours again (R3)."""

    topic: str
    sender: NodeId
    key: RecordKey
    lo: Position
    hi: Position
    side: Side
    label: Label | None


MESSAGES = defined_in(globals())
