"""A manifest: which staged rows a batch of a query publishes, and under which numbers.

Whoever writes a batch stages its rows as records of streams that nobody reads, one for each attempt
of a task. The manifest is a record too, at the position (query, batch), and names them all. What it
settles is a function of it and of what was staged: every member makes the same records, of which
each says which manifest it belongs to.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, NamedTuple

from msgspec import Meta, MsgspecError, Struct, msgpack

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.records.evidence import (
    EVIDENCE_BYTES_MAX,
    Sealer,
    settled_from,
    with_settled,
)
from planaria.records.record import (
    BATCH,
    BATCH_LAYOUT,
    INCARNATION_BYTES,
    RECORD_BYTES_MAX,
    SEQUENCE_MAX,
    SIGNED_BYTES_MAX,
    TIME_MAX,
    Draft,
    MalformedRecord,
    Record,
    Stream,
    decode,
    decode_unnamed,
    encode_head,
    seal,
)

BATCH_MARK, STAGE_MARK = b"B", b"S"  # incarnations of queries, and of what is staged, begin so
QUERY_BYTES = 6  # of an incarnation tell whose batches it has
PARTS_MAX = 1 << 14  # of one manifest: it must fit into a record
STAGED_RECORD_BYTES_MAX = RECORD_BYTES_MAX - BATCH_LAYOUT.size  # its origin is added to it
SIGNED_MANIFEST_BYTES_MAX = 1 << 15  # of about 1,000 parts: each record of the batch carries it
MANIFESTS_REMEMBERED = 16  # of those that records carry, as they were read last
SIGNED_STAGE_BYTES_MAX = SIGNED_BYTES_MAX - SIGNED_MANIFEST_BYTES_MAX - 128

_Number = Annotated[int, Meta(ge=0, le=SEQUENCE_MAX)]
_Incarnation = Annotated[bytes, Meta(min_length=INCARNATION_BYTES, max_length=INCARNATION_BYTES)]


class Part(Struct, frozen=True, array_like=True, gc=False):
    """What one attempt of a task staged for a topic: so many rows, to be numbered from `first`."""

    incarnation: _Incarnation
    count: Annotated[int, Meta(ge=1, le=SEQUENCE_MAX)]
    first: _Number

    @property
    def end(self) -> int:
        """The number after its last row."""
        return self.first + self.count


class Portion(Struct, frozen=True, array_like=True, gc=False):
    """The parts of one topic, and in which incarnation of their publisher they are numbered."""

    incarnation: _Incarnation
    parts: Annotated[list[Part], Meta(min_length=1, max_length=PARTS_MAX)]

    @property
    def first(self) -> int:
        """The number of the first row."""
        return min(part.first for part in self.parts)


class _Body(Struct, frozen=True, array_like=True):
    time: Annotated[int, Meta(ge=0, le=TIME_MAX)]
    portions: dict[str, Portion]


class Manifest:
    """A manifest and the record that it is; `time` is when its rows are published."""

    __slots__ = ("portions", "record", "time")

    def __init__(self, record: Record) -> None:
        """Read a record; raises MalformedRecord if it is no manifest."""
        self.record = record
        if record.count != 1 or record.incarnation[:1] != BATCH_MARK:
            raise MalformedRecord("no manifest")
        try:
            body = msgpack.decode(record.payloads(record.first, record.end)[0], type=_Body)
        except (MsgspecError, ValueError, RecursionError) as error:
            raise MalformedRecord(f"no manifest: {error}") from None
        self.time, self.portions = body.time, body.portions
        for portion in body.portions.values():
            if portion.incarnation[:QUERY_BYTES] != record.incarnation[:QUERY_BYTES]:
                raise MalformedRecord("a manifest that numbers for another query")
            if any(part.end > SEQUENCE_MAX - 1 for part in portion.parts):
                raise MalformedRecord("a manifest with too large a number")

    @property
    def batch(self) -> int:
        """Which batch of its query."""
        return self.record.first

    @property
    def publisher(self) -> NodeId:
        """Who publishes it."""
        return self.record.publisher


class Origin(NamedTuple):
    """Where a record comes from: its manifest's key, the batch, and the first number of that."""

    manifest: bytes
    batch: int
    first: int


def read_manifest(record: Record) -> Manifest | None:
    """The manifest in a record, if it is one."""
    try:
        return Manifest(record)
    except MalformedRecord:
        return None


def decode_manifest(data: bytes) -> Manifest | None:
    """The manifest in these bytes, if they are one."""
    try:
        return Manifest(decode(data))
    except MalformedRecord:
        return None


def query_incarnation(query: str) -> bytes:
    """The incarnation whose numbers are the batches of a query."""
    digest = blake2b(query.encode(), digest_size=INCARNATION_BYTES - 1, person=b"planaria query")
    return BATCH_MARK + digest.digest()


def row_incarnation(query: str, drawn: bytes) -> bytes:
    """A new incarnation for rows of a query: what was `drawn` makes it that of one process."""
    return (query_incarnation(query)[:QUERY_BYTES] + drawn)[:INCARNATION_BYTES]


def stage_incarnation(drawn: bytes) -> bytes:
    """A new incarnation for what one attempt of a task stages."""
    return (STAGE_MARK + drawn)[:INCARNATION_BYTES]


def seal_manifest(
    publisher: NodeId,
    query: str,
    batch: int,
    portions: dict[str, Portion],
    *,
    time: int,
    staged: int,
    sign: Sealer | None = None,
) -> Manifest:
    """The manifest of a batch; it expires with what was staged since the second `staged`.

    Raises UsageError if it is too large for a record.
    """
    if sum(len(portion.parts) for portion in portions.values()) > PARTS_MAX:
        raise UsageError(
            f"more than {PARTS_MAX} parts in one batch: use fewer partitions or topics"
        )
    body = msgpack.encode(_Body(time, portions))
    stream = (publisher, query_incarnation(query))
    if sign is not None and len(body) > SIGNED_MANIFEST_BYTES_MAX - EVIDENCE_BYTES_MAX:
        raise UsageError(
            f"a manifest of {len(body)} bytes, which each signed record of the batch carries: at "
            f"most {SIGNED_MANIFEST_BYTES_MAX - EVIDENCE_BYTES_MAX}, use fewer partitions, or "
            "topics in one batch"
        )
    return Manifest(seal(stream, batch, [Draft(body)], time=staged, sign=sign))


def settleable(staged: Record) -> bool:
    """Is there room in a staged record for its origin and what proves it, and has it none yet?"""
    most = SIGNED_STAGE_BYTES_MAX if staged.signed else STAGED_RECORD_BYTES_MAX
    return len(staged.data) <= most and not staged.columns & BATCH


def settled(staged: Record, manifest: Manifest, portion: Portion, part: Part) -> Record:
    """The record of published rows that a staged one becomes; the same wherever it is made.

    Raises MalformedRecord if that is no record.
    """
    return decode(_settled(staged, manifest, portion, part))


def _settled(staged: Record, manifest: Manifest, portion: Portion, part: Part) -> bytes:
    stream = (manifest.publisher, portion.incarnation)
    what = (staged.columns | BATCH, staged.count, staged.pairs)
    head = encode_head(stream, part.first + staged.first, manifest.time, *what)
    mark = BATCH_LAYOUT.pack(manifest.record.key, manifest.batch, portion.first)
    rows = head + staged.data[len(head) : staged.columns_end] + mark
    signed = staged.signed and manifest.record.signed
    return with_settled(rows, staged.data, manifest.record.data) if signed else rows


@lru_cache(MANIFESTS_REMEMBERED)
def _carried(data: bytes) -> Manifest:
    """The manifest in these bytes, which all records of a batch carry, of however many topics."""
    return Manifest(decode(data))


def settled_by(record: Record, topic: str) -> tuple[Record, Manifest] | None:
    """What was staged, and the manifest that made it this record of a topic; None if none did.

    Whether either is signed well is not looked at, and what was staged has no key: to hash it, and
    what it becomes, would take longer than all the rest of judging a record.
    """
    if not record.signed or not record.columns & BATCH:
        return None
    parts = settled_from(record.data, record.columns_end, BATCH_LAYOUT.size)
    try:
        staged, manifest = decode_unnamed(parts[0]), _carried(bytes(parts[1]))
        portion = manifest.portions[topic]
        part = next(it for it in portion.parts if it.incarnation == staged.incarnation)
        whole = staged.publisher == manifest.publisher and staged.end <= part.count
        same = whole and _settled(staged, manifest, portion, part) == record.data
    except (MalformedRecord, KeyError, StopIteration):
        return None
    return (staged, manifest) if same else None


def origin_of(record: Record) -> Origin | None:
    """Which manifest settled a record, if any did."""
    if not record.columns & BATCH:
        return None
    at = record.columns_end - BATCH_LAYOUT.size
    return Origin(*BATCH_LAYOUT.unpack_from(record.data, at))


def same_query(stream: Stream) -> tuple[Stream, Stream]:
    """The bounds, in the order of streams, between which are all rows of a stream's query."""
    publisher, incarnation = stream
    query, rest = incarnation[:QUERY_BYTES], INCARNATION_BYTES - QUERY_BYTES
    return (publisher, query + b"\0" * rest), (publisher, query + b"\xff" * rest)
