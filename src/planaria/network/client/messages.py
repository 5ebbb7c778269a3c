"""What a client and its node say to each other: one protocol for API, tools, Spark and gateways.

A client names each request with a number; every answer carries it. A client keeps its own vectors,
so that it can go on at another node; a node keeps a cursor for each tail, and no queue.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.records.positions import Mark, Vector
from planaria.records.record import Draft, Stream

COPIES = 2  # members that hold a publication before it is acknowledged, unless its client says else
COPIES_MAX = 64  # of one publication
TOKEN_BYTES = 16
LACKS_MAX = 1024  # told at a time
SAME_RECORD = b""  # that of the piece before, where records come `whole` and `compacted`
PART_BYTES = 1 << 18  # of vectors in one frame, at most; what they take there is estimated by:
TOPIC_BYTES, POSITION_BYTES, SKIPPED_BYTES = 16, 48, 24


class Position(Struct, frozen=True, array_like=True, gc=False):
    """How far one stream was read: below `next` everything but what was skipped."""

    publisher: int
    incarnation: bytes
    next: int
    skipped: tuple[tuple[int, int], ...] = ()


class Piece(Struct, frozen=True, array_like=True, gc=False):
    """Part of a sealed record: the numbers from `lo` to before `hi`; `late` if once skipped."""

    record: bytes
    lo: int
    hi: int
    late: bool = False


class Lack(Struct, frozen=True, array_like=True, gc=False):
    """Numbers of a range that this node cannot give: expired, or still to come here."""

    publisher: int
    incarnation: bytes
    lo: int
    hi: int
    expired: bool


class MemberHas(Struct, frozen=True, array_like=True, gc=False):
    """What one member has of a manifest: parts staged, parts in its history, pieces of parts.

    `rows` of it are there; `batch` is the last one of the query there, -1 if there is none, `last`
    the key of that one's manifest, `rival` another that it holds for the same batch, or nothing.
    """

    member: int
    batch: int
    last: bytes
    rival: bytes
    staged: list[int]
    settled: list[int]
    pieces: list[tuple[int, int, int]] = []
    rows: int = 0


class Extent(Struct, frozen=True, array_like=True, gc=False):
    """Which numbers of a stream a node has: those from `low` to before `next` but for `holes`.

    Below `low` nothing is left; what is missing in `holes` may still come. From `since` on it was
    published at or after the time that was asked for.
    """

    publisher: int
    incarnation: bytes
    low: int
    next: int
    since: int = 0
    holes: tuple[tuple[int, int], ...] = ()


class ClientMessage(Message, frozen=True, gc=False):
    """What concerns one request."""

    request: int


# From the client


class Put(ClientMessage, frozen=True, gc=False, tag="client.put"):
    """Publish a record that its client sealed; a repeat is the same bytes and publishes nothing."""

    topic: str
    record: bytes
    copies: int = COPIES
    strict: bool = False
    durable: bool = True
    overlay: str = ""  # empty: the one that its charter lays down, or `ring`
    stage: bool = False  # to be held outside of the history, until a manifest settles it
    members: tuple[int, ...] = ()  # who is to hold it, before any others


class PutNew(ClientMessage, frozen=True, gc=False, tag="client.put_new"):
    """Publish in the node's own stream; a repeated token is answered with the old position."""

    topic: str
    token: bytes
    drafts: list[Draft]
    copies: int = COPIES
    strict: bool = False
    durable: bool = True
    overlay: str = ""


class AskBatch(ClientMessage, frozen=True, gc=False, tag="client.ask_batch"):
    """What have members of this manifest? `settle`: they are to publish what they have staged.

    `members` are to be asked, or those that the node finds; `spread` says who broadcasts which
    parts.
    """

    topic: str
    manifest: bytes
    settle: bool = False
    members: tuple[int, ...] = ()
    spread: dict[int, list[int]] = field(default_factory=dict)


class Resolve(ClientMessage, frozen=True, gc=False, tag="client.resolve"):
    """Turn `all`, `now`, `last` or a `time` (seconds since 1970) into vectors."""

    pattern: str
    since: str
    time: int = 0
    overlay: str = ""


class Tail(ClientMessage, frozen=True, gc=False, tag="client.tail"):
    """Send what comes after these vectors, for ever; streams without a position from `floor` on."""

    pattern: str
    vectors: dict[str, list[Position]]
    floor: int = 0
    where: str | None = None
    notices: bool = False
    overlay: str = ""
    whole: bool = False  # of signed records what satisfies `where` is to come with all the rest
    compacted: bool = False  # what a later one with the same key replaced may be left out


class Vectors(ClientMessage, frozen=True, gc=False, tag="client.vectors"):
    """Part of the vectors of the tail that this number asks for next: all fill many frames."""

    vectors: dict[str, list[Position]]


class Stop(ClientMessage, frozen=True, gc=False, tag="client.stop"):
    """End the tail that this request began."""


class Read(ClientMessage, frozen=True, gc=False, tag="client.read"):
    """Read a range of one topic, (after, to], or as far as there is; at most `limit` at a time.

    Of it only what satisfies `where`, `whole` as in `Tail`; and where nothing in a record is of the
    `times` from the first to before the second, in microseconds since 1970, it may be left out.
    """

    topic: str
    after: list[Position]
    to: list[Position] | None = None
    limit: int = 8192
    floor: int = 0
    where: str | None = None
    times: tuple[int, int] | None = None
    whole: bool = False


class AskTopics(ClientMessage, frozen=True, gc=False, tag="client.ask_topics"):
    """Which topics match this pattern?"""

    pattern: str = "#"


class AskVector(ClientMessage, frozen=True, gc=False, tag="client.ask_vector"):
    """How far can this topic be read here?"""

    topic: str


class AskExtent(ClientMessage, frozen=True, gc=False, tag="client.ask_extent"):
    """Which numbers of this topic are here, of the streams after `after`?

    If all is as it was when the answer had the version `known`, say so after `wait` milliseconds,
    or as soon as it is not. `time`, in seconds since 1970, is what `Extent.since` is about. A node
    without a copy gets one first, unless it is not to `join`.
    """

    topic: str
    known: bytes = b""
    wait: int = 0
    time: int = 0
    after: tuple[int, bytes] | None = None
    join: bool = True


class AskStatus(ClientMessage, frozen=True, gc=False, tag="client.ask_status"):
    """How is this node, and whom does it know? `after`: only its topics, from this name on."""

    after: str | None = None


class AskState(ClientMessage, frozen=True, gc=False, tag="client.ask_state"):
    """What is this node's state, for whoever judges the whole network?

    Of another overlay than `ring`, that of its part in all topics.
    """

    topic: str
    overlay: str = "ring"


class PutCharter(ClientMessage, frozen=True, gc=False, tag="client.put_charter"):
    """Lay down what a topic is like: a charter as its admin sealed it."""

    sealed: bytes


class AskCharters(ClientMessage, frozen=True, gc=False, tag="client.ask_charters"):
    """Which charters of topics that match, and come after `after`, are kept here?"""

    pattern: str = "#"
    after: str = ""


class Inject(ClientMessage, frozen=True, gc=False, tag="client.inject"):
    """Do this node harm, as the seed says; only one that was started for it obeys, and an admin."""

    fault: str
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)


# From the node


class Stored(ClientMessage, frozen=True, gc=False, tag="client.stored"):
    """So many members hold it, of so many that there are; this is its position."""

    copies: int
    members: int
    publisher: int
    incarnation: bytes
    first: int
    count: int


class BatchIs(ClientMessage, frozen=True, gc=False, tag="client.batch_is"):
    """What each member that answered has of a manifest; how many members were asked."""

    answers: list[MemberHas]
    asked: int


class Failed(ClientMessage, frozen=True, gc=False, tag="client.failed"):
    """Why it cannot be; `code`: `usage`, `full`, `elsewhere`, or of a tail `moved`: ask again."""

    code: str
    reason: str


class Resolved(ClientMessage, frozen=True, gc=False, tag="client.resolved"):
    """The vectors to begin at, a floor for all else, and for `last` the retained publications.

    `more`: this is a part, and others follow; vectors come before what was retained.
    """

    vectors: dict[str, list[Position]]
    floor: int
    last: dict[str, Piece]
    more: bool = False


class Tailing(ClientMessage, frozen=True, gc=False, tag="client.tailing"):
    """The node is a member of these topics: whatever is published from now on comes."""

    topics: list[str]
    overlay: str = "ring"


class Pieces(ClientMessage, frozen=True, gc=False, tag="client.pieces"):
    """Publications of one topic in publisher order, and the positions that they moved."""

    topic: str
    pieces: list[Piece]
    after: list[Position]
    lacks: tuple[Lack, ...] = ()


class Passing(ClientMessage, frozen=True, gc=False, tag="client.passing"):
    """Publications of one topic as they came, in an overlay that keeps none and has no positions.

    `anonymous`: their records name nobody, and say no time.
    """

    topic: str
    pieces: list[Piece]
    anonymous: bool = False


class Told(ClientMessage, frozen=True, gc=False, tag="client.told"):
    """A notice about a topic: `gap`, `late`, `unstable`, `stable`, `equivocation`."""

    topic: str
    kind: str
    detail: dict[str, Any]


class TopicsAre(ClientMessage, frozen=True, gc=False, tag="client.topics_are"):
    """The topics that match, in order."""

    topics: list[str]


class VectorIs(ClientMessage, frozen=True, gc=False, tag="client.vector_is"):
    """How far the topic can be read here."""

    positions: list[Position]


class ExtentIs(ClientMessage, frozen=True, gc=False, tag="client.extent_is"):
    """The streams of a topic here, by name; none if it is as it was at this version."""

    extents: list[Extent]
    version: bytes
    more: bool = False  # do others follow after the last of these?


class StatusIs(ClientMessage, frozen=True, gc=False, tag="client.status_is"):
    """The node's status as JSON."""

    status: bytes


class StateIs(ClientMessage, frozen=True, gc=False, tag="client.state_is"):
    """Snapshots of the topic's parts at this node: of its peer and of its supervisor, if any."""

    supervisors: list[NodeId]
    peer: bytes | None
    supervisor: bytes | None
    part: bytes | None = None  # in another overlay than `ring`


class ChartersAre(ClientMessage, frozen=True, gc=False, tag="client.charters_are"):
    """The charters of some topics, of each the highest first; ask again for those after `next`."""

    sealed: list[bytes]
    next: str | None = None


class Injected(ClientMessage, frozen=True, gc=False, tag="client.injected"):
    """It is done, and has changed so many things here; `found` is what else was asked for."""

    affected: int
    found: dict[str, Any] = field(default_factory=dict)


def to_wire(vector: Vector) -> list[Position]:
    """A vector as it travels."""
    return [Position(*stream, mark.next, mark.skipped) for stream, mark in vector.items()]


def from_wire(positions: list[Position]) -> dict[Stream, Mark]:
    """The vector that travelled."""
    return {(one.publisher, one.incarnation): Mark(one.next, one.skipped) for one in positions}


def in_parts(vectors: Mapping[str, list[Position]]) -> list[dict[str, list[Position]]]:
    """The same vectors, divided so that each part fits into a frame; at least one part."""
    parts: list[dict[str, list[Position]]] = [{}]
    size = 0
    for topic, positions in vectors.items():
        name = len(topic.encode()) + TOPIC_BYTES
        size += name
        parts[-1][topic] = []
        for one in positions:
            weight = POSITION_BYTES + SKIPPED_BYTES * len(one.skipped)
            if size + weight > PART_BYTES:
                parts.append({topic: []})
                size = name
            size += weight
            parts[-1][topic].append(one)
    return parts


MESSAGES = defined_in(globals())
