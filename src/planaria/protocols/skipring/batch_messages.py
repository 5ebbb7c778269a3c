"""The messages by which batches settle. Every field may be false; handlers believe none of them."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.publications.antientropy_messages import RecordBytes
from planaria.records.manifest import PARTS_MAX

Parts = Annotated[list[int], Meta(max_length=PARTS_MAX)]  # by their numbers in a manifest
Piece = tuple[int, int, int]  # a part by its number, and which of its rows: from, to
Pieces = Annotated[list[Piece], Meta(max_length=PARTS_MAX)]
RecordKey = Annotated[bytes, Meta(max_length=16)]


class Review(Message, frozen=True, gc=False, tag="publications.review"):
    """What do you have of this manifest, and of its query?"""

    topic: str
    sender: NodeId
    manifest: RecordBytes


class Settle(Message, frozen=True, gc=False, tag="publications.settle"):
    """Enough members hold this manifest: publish what you hold of it, and broadcast these parts."""

    topic: str
    sender: NodeId
    manifest: RecordBytes
    spread: Parts


class Reviewed(Message, frozen=True, gc=False, tag="publications.reviewed"):
    """Of a manifest of that key I have these parts staged and those in my history.

    `pieces` are of parts that are not staged whole here: whoever staged them changed its node.
    `batch` is the last one of its query in my history, -1 if there is none, `last` the key of its
    manifest; `rival` is another manifest that I hold for the same batch, empty if there is none.
    `rows` of it are in my history, so that whoever settles it sees it go on within a part.
    """

    topic: str
    sender: NodeId
    key: RecordKey
    batch: int
    last: RecordKey
    rival: RecordBytes
    staged: Parts
    settled: Parts
    pieces: Pieces
    rows: int = 0


MESSAGES = defined_in(globals())
