"""What an application gets: publications as events, and acknowledgements of its own.

Used by clients and by applications that embed a node alike.
"""

from msgspec import Struct
from msgspec.structs import replace

from planaria.core.ids import NodeId
from planaria.protocols.publications.deliveries import MILLISECOND, position_id
from planaria.records.record import HEADERS, KEYS, Record

NOBODY = 0  # the publisher in records that name none


class Event(Struct, frozen=True, gc=False):
    """One publication as its subscriber sees it; its identity is its position.

    `timestamp` is in milliseconds since 1970. `late`: its turn in its publisher's order is over.
    Where publishers are anonymous, `publisher`, `sequence` and `timestamp` are None, and
    `incarnation` is a random number of this publication alone.
    """

    topic: str
    payload: bytes
    key: bytes | None
    headers: dict[str, str]
    publisher: NodeId | None
    incarnation: bytes
    sequence: int | None
    timestamp: int | None
    late: bool = False

    @property
    def id(self) -> bytes:
        """The same for this publication at every subscriber, and for no other one."""
        return position_id(self.publisher or NOBODY, self.incarnation, self.sequence or 0)


class Ack(Struct, frozen=True, gc=False):
    """So many members hold a publication, or the first of `count`, of those that there are.

    On disk, unless memory was enough. `copies` may be fewer than asked for if the topic has fewer
    members, or fewer that have a disk.
    """

    topic: str
    publisher: NodeId
    incarnation: bytes
    sequence: int
    count: int
    copies: int
    members: int

    @property
    def id(self) -> bytes:
        """The id of the event that subscribers get."""
        return position_id(self.publisher, self.incarnation, self.sequence)


def anonymous(event: Event) -> Event:
    """The same publication without what its record does not say."""
    return replace(event, publisher=None, sequence=None, timestamp=None)


def events_of(topic: str, record: Record, lo: int, hi: int, *, late: bool = False) -> list[Event]:
    """The publications of a record from `lo` to before `hi`, as events."""
    lo, hi = max(lo, record.first), min(hi, record.end)
    if lo >= hi:
        return []
    if not record.columns & (KEYS | HEADERS):  # as nearly always
        who, start = record.publisher, record.incarnation
        each = zip(range(lo, hi), record.payloads(lo, hi), record.timestamps(lo, hi), strict=True)
        return [
            Event(topic, payload, None, {}, who, start, number, time // MILLISECOND, late)
            for number, payload, time in each
        ]
    return [
        Event(
            topic,
            payload,
            key,
            {name: value.decode(errors="replace") for name, value in headers} if headers else {},
            publisher,
            incarnation,
            sequence,
            timestamp // MILLISECOND,
            late,
        )
        for publisher, incarnation, sequence, payload, key, headers, timestamp in (
            record.publications(lo, hi)
        )
    ]
