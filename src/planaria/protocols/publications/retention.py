"""How long a topic keeps its publications, so that all subscribers agree and nothing comes back.

Time is cut into epochs of D seconds. A publication carries the epoch it was published in and lives
for R further epochs. The current epoch is a median of clocks, so one wrong clock moves nobody; what
falls out of the window is hidden at once but deleted slowly, so a wrong median can be taken back.
"""

from bisect import bisect_left
from statistics import median_low
from typing import Annotated

from msgspec import Meta, Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.publications.publication import Epoch, Publication, key
from planaria.protocols.publications.store import Place

EPOCHS_LIVE = 16  # R: with epochs of whole seconds, a publication lives R to R + 2 of them
EPOCH_SECONDS = 3600  # D of a topic without an age limit: its epochs only order publications
VOTERS_MAX = 256  # a node has at most 2 * 62 neighbours and a few that are changing
VOTE_TIMEOUTS = 8  # a neighbour advertises its clock in every interval
MARKS_MAX = 1 << 20  # delivered marks of one topic, about 100 MB; then the oldest epoch's go

_Positive = Annotated[int, Meta(ge=1)]


class Retention(Struct, frozen=True, array_like=True):
    """What a topic keeps; all its subscribers apply the same. None: no limit.

    `age` in seconds, `count` publications in all, `per_publisher` of them by one publisher: without
    that quota one publisher could flush a topic.
    """

    age: _Positive | None = None
    count: _Positive | None = None
    per_publisher: _Positive | None = None

    @property
    def epoch_seconds(self) -> int:
        """D, the length of an epoch. Clocks should differ by much less than half of it."""
        return EPOCH_SECONDS if self.age is None else max(1, -(-self.age // EPOCHS_LIVE))


class Rejected(Message, frozen=True, tag="publications.rejected"):
    """Your publication is outside the topic's window, whose current epoch is `epoch`: restamp."""

    topic: str
    sender: NodeId
    key: Annotated[bytes, Meta(max_length=16)]
    epoch: Epoch


class Delivered:
    """64-bit marks of delivered keys, by epoch, which outlive the publications themselves.

    A publication that was deleted and fetched again is therefore not delivered again.
    """

    __slots__ = ("_marks", "_size")

    def __init__(self) -> None:
        self._marks: dict[int, set[bytes]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return bool(self._marks)

    def epochs(self) -> list[int]:
        """The epochs that have marks."""
        return sorted(self._marks)

    def add(self, epoch: int, key: bytes) -> bool:
        """Mark a key as delivered; False if it was before."""
        marks = self._marks.get(epoch)
        if marks is not None and key[:8] in marks:
            return False
        if self._size >= MARKS_MAX:
            self.drop(min(self._marks))
        self._marks.setdefault(epoch, set()).add(key[:8])
        self._size += 1
        return True

    def marks(self) -> dict[int, list[bytes]]:
        """All marks by epoch, for a store to keep."""
        return {epoch: sorted(marks) for epoch, marks in sorted(self._marks.items())}

    def drop(self, epoch: int) -> None:
        """Forget the marks of an epoch."""
        self._size -= len(self._marks.pop(epoch, ()))


class Horizon:
    """One subscriber's window of live epochs, lo <= epoch <= current + 1.

    Nothing here is trusted for long: the own clock is read anew before each timeout, votes expire,
    and a stored `lo` that is not near the median is reset.
    """

    __slots__ = (
        "_before",
        "clock",
        "delivered",
        "elapsed",
        "epoch",
        "lo",
        "retention",
        "seconds",
        "votes",
    )

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.seconds: int | None = None  # the last reading of the own clock
        self.clock: int | None = None  # the own raw epoch, which is what peers are told
        self.votes: dict[NodeId, tuple[int, int]] = {}  # peer: raw epoch, timeouts since heard
        self.epoch: int | None = None  # E; None while no clock at all is known
        self._before: int | None = None  # E at the last timeout
        self.lo = 0
        self.elapsed = 0  # seconds for which something was hidden but not deleted
        self.delivered = Delivered()

    def read_clock(self, seconds: int) -> None:
        """The driver read the wall clock. What passed since the last reading counts at most D/4.

        So pacing survives a clock that jumps, as long as timeouts come four times an epoch.
        """
        length = self.retention.epoch_seconds
        if self.seconds is not None:
            self.elapsed += min(max(0, seconds - self.seconds), max(1, length // 4))
        self.seconds = seconds
        self.clock = max(0, seconds // length)
        self._settle()

    def hear(self, peer: NodeId, epoch: int) -> None:
        """The neighbour `peer` advertises its raw clock epoch; votes are counted at timeouts."""
        if peer in self.votes or len(self.votes) < VOTERS_MAX:
            self.votes[peer] = (epoch, 0)

    def on_timeout(self, neighbours: list[NodeId]) -> bool:
        """Time passed: only recent votes of neighbours count. True if the epoch jumped (alarm)."""
        heard = [(peer, self.votes[peer]) for peer in neighbours if peer in self.votes]
        self.votes = {
            peer: (epoch, age + 1) for peer, (epoch, age) in heard if 0 <= age < VOTE_TIMEOUTS
        }
        self._settle()
        before, self._before = self._before, self.epoch
        return before is not None and self.epoch is not None and abs(self.epoch - before) > 1

    def accepts(self, epoch: int) -> bool:
        """Is a publication of this epoch to be stored, served and counted in digests?"""
        return self.epoch is None or self.lo <= epoch <= self.epoch + 1

    def reject(self, topic: str, id: NodeId, publication: Publication) -> Rejected | None:
        """What to tell a publisher whose stamp is outside the window; None if it is inside."""
        if self.epoch is None or self.accepts(publication.epoch):
            return None
        return Rejected(topic, id, key(publication), self.epoch)

    def expire(self, stored: list[int]) -> int | None:
        """The one epoch bucket of `stored` to delete now, if any; call it at each timeout.

        At most one per D/2 of own time, the oldest first, and the first one not before it was
        hidden for D/2. Marks go at the same pace, when they are R epochs older and no bucket is
        left to delete: so a wrong epoch costs no marks before it costs all publications.
        """
        if not stored and not self.delivered:
            self.elapsed = 0
            return None
        hidden = [epoch for epoch in stored if not self.accepts(epoch)]
        stale = [epoch for epoch in self.delivered.epochs() if not self._remembers(epoch)]
        if not hidden and not stale:
            self.elapsed = 0
            return None
        length = self.retention.epoch_seconds
        if not 0 <= self.elapsed <= 2 * length:
            self.elapsed = 0  # no run of timeouts gets there
        if 2 * self.elapsed < length:
            return None
        self.elapsed = 0
        if not hidden:
            self.delivered.drop(stale[0])
        return min(hidden, default=None)

    def _remembers(self, epoch: int) -> bool:
        """Are marks of this epoch still needed? For one retention period beyond the window."""
        if self.epoch is None:
            return True
        return self.lo - EPOCHS_LIVE <= epoch <= self.epoch + 1 + EPOCHS_LIVE

    def _settle(self) -> None:
        """E = median_low of the raw clocks; lo = E - R, or one more if it was that already."""
        clocks = [epoch for epoch, _ in self.votes.values()]
        if self.clock is not None:
            clocks.append(self.clock)
        if clocks and clocks.count(clocks[0]) == len(clocks):
            self.epoch = clocks[0]  # all agree, as a rule
        else:
            self.epoch = median_low(clocks) if clocks else None
        lowest = 0
        if self.epoch is not None and self.retention.age is not None:
            lowest = max(0, self.epoch - EPOCHS_LIVE)
        # Keeping lo when E steps back by one stops a bucket from flickering.
        if self.retention.age is None or self.lo != lowest + 1:
            self.lo = lowest


class Quota:
    """The newest `per_publisher` publications of each publisher, by (epoch, key).

    The store keeps the newest of all; with the quota before it, what is kept of a union depends
    only on what is kept of its parts. So subscribers that exchange publications in any order keep
    the same ones, without tombstones. Derived from the store: if in doubt, fill a new one from it.
    """

    __slots__ = ("_places", "per_publisher")

    def __init__(self, retention: Retention) -> None:
        self.per_publisher = retention.per_publisher
        self._places: dict[NodeId, list[Place]] = {}  # sorted

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def add(self, publisher: NodeId, place: Place) -> Place | None:
        """Count a publication in before it is stored; what to remove first, perhaps itself."""
        if self.per_publisher is None:
            return None
        places = self._places.setdefault(publisher, [])
        at = bisect_left(places, place)
        if places[at : at + 1] == [place]:
            return None
        places.insert(at, place)
        return places.pop(0) if len(places) > self.per_publisher else None

    def forget(self, floor: Place) -> None:
        """Forget what is older than the window or than the floor of a full store."""
        kept = {id: places[bisect_left(places, floor) :] for id, places in self._places.items()}
        self._places = {id: places for id, places in kept.items() if places}
