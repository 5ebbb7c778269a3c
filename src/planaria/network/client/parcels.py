"""What waits for an application, and what it must not get twice."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs

from planaria.core.node import Notice
from planaria.network.client.events import Event, events_of
from planaria.network.client.messages import Lack, Piece, Position
from planaria.network.client.publishing import TOKEN_HEADER
from planaria.network.connection import Connection
from planaria.network.link import Task
from planaria.records.record import HEADERS, Record

TOKEN_MILLISECONDS = 600_000  # within which a repeated token is the same publication
TOKENS_MAX = 1 << 16  # remembered; then the oldest is forgotten
KEPT_BYTES_MAX = 8 << 20  # of frames that passed before a node was left: nodes keep as much


class Parcel(NamedTuple):
    """What waits for the application: from the node, with the frame to acknowledge, or our own."""

    topic: str = ""
    pieces: Sequence[Piece] = ()
    after: Sequence[Position] = ()
    frame: tuple[Connection, Task] | None = None
    lacks: Sequence[Lack] = ()  # what the node passes over
    notice: Notice | None = None
    retained: bool = False  # the last one before the places begin: it moves none
    passed: bool = False  # in an overlay without positions: nobody can be asked for it again
    anonymous: bool = False  # its record names no publisher
    restart: bool = False  # begin the tails anew after it: the places moved without the node


def sorted_out(
    parcels: Iterable[Parcel], distrusted: Connection | None
) -> tuple[list[Parcel], list[Parcel]]:
    """What stays when a node is asked anew, or another one is: our own, and what passed before.

    And what goes: whatever can be asked for again, what comes from somebody `distrusted`, and what
    passed last of too many bytes.
    """
    stays, goes, size = list[Parcel](), list[Parcel](), 0
    for parcel in parcels:
        if parcel.frame is not None and parcel.passed:
            size += parcel.frame[1].size
        own, passed = parcel.frame is None, parcel.passed and size <= KEPT_BYTES_MAX
        kept = own or (passed and parcel.frame is not None and parcel.frame[0] is not distrusted)
        (stays if kept else goes).append(parcel)
    return stays, goes


def lost_in(parcels: Iterable[Parcel]) -> int:
    """How many publications of these will not come again."""
    return sum(it.hi - it.lo for parcel in parcels if parcel.passed for it in parcel.pieces)


class Ids:
    """The ids of publications that were seen, where no position says what was."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[str, bytes], None] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __contains__(self, name: tuple[str, bytes]) -> bool:
        return name in self._seen

    def is_new(self, name: tuple[str, bytes]) -> bool:
        """Was this one never seen, as far as it is remembered? Then it is from now on."""
        if name in self._seen:
            return False
        self._seen[name] = None
        if len(self._seen) > TOKENS_MAX:
            del self._seen[next(iter(self._seen))]
        return True


class Tokens:
    """The tokens of one-shot publications that were seen: two nodes may have numbered the same."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[bytes, int]] = {}

    def events(
        self, topic: str, record: Record, lo: int, hi: int, *, late: bool = False
    ) -> list[Event]:
        """Part of a record as events, without repeats."""
        found = events_of(topic, record, lo, hi, late=late)
        return self.new(found) if record.columns & HEADERS else found

    def new(self, events: list[Event]) -> list[Event]:
        """Those that are not repeats, without their tokens."""
        return [self._stripped(it) if it.headers else it for it in events if self._is_new(it)]

    def _is_new(self, event: Event) -> bool:
        token = event.headers.get(TOKEN_HEADER) if event.headers else None
        if token is None:
            return True
        name, here = (event.topic, token), (event.id, event.timestamp or 0)
        id, time = self._seen.pop(name, here)
        self._seen[name] = (id, time)
        if len(self._seen) > TOKENS_MAX:
            del self._seen[next(iter(self._seen))]
        return id == event.id or abs(here[1] - time) > TOKEN_MILLISECONDS

    def _stripped(self, event: Event) -> Event:
        if TOKEN_HEADER not in event.headers:
            return event
        headers = {name: value for name, value in event.headers.items() if name != TOKEN_HEADER}
        return structs.replace(event, headers=headers)
