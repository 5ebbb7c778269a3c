"""The audit of a store: does what follows from the records still follow from them?

A fault may change any variable. Each call looks at the next records of the next streams and at the
sums of the next seconds, so the work of one is bounded, whatever is held; only when a pass begins
are all entries counted. If something is wrong all entries are divided anew.
"""

from bisect import bisect_left
from itertools import islice, pairwise
from operator import attrgetter

from planaria.core.ids import NodeId
from planaria.core.state import State, Stateful
from planaria.records.index import Index
from planaria.records.lanes import Entry, Lane, number_of
from planaria.records.positions import Interval, Intervals
from planaria.records.record import RECORD_KEY_BITS, SEQUENCE_MAX, Place, Stream
from planaria.records.sums import KEY_MASK
from planaria.records.window import LIMIT_MAX

PLACES_PER_RECORD = 16  # whose sums are checked for each record that is: an addition each

_first = attrgetter("first")


class AuditState(State):
    """How far a pass has come: stream, number in it, hidden records, second."""

    stream: tuple[int, bytes]
    number: int
    hidden: int
    second: int


class Audit(Stateful):
    """Where an audit of one store stands. Whatever a fault makes of it, it comes round."""

    __slots__ = ("hidden", "number", "second", "stream")
    state_type = AuditState

    def __init__(self) -> None:
        self.stream: Stream = (-1, b"")  # a pass begins before all
        self.number = 0
        self.hidden = 0
        self.second = 0

    def state(self) -> AuditState:
        """Where it stands."""
        return AuditState(self.stream, self.number, self.hidden, self.second)

    def load(self, state: State) -> None:
        """Go on from there."""
        assert isinstance(state, AuditState)
        self.stream, self.number = state.stream, state.number
        self.hidden, self.second = state.hidden, state.second

    @property
    def begins(self) -> bool:
        """Does the next call begin a pass?"""
        return self.stream == (-1, b"")

    def look(self, index: Index, limit: int) -> tuple[list[Entry], bool]:
        """The next `limit` entries, and whether all that is derived from them is right."""
        right = not self.begins or _adds_up(index)
        right = right and self._seconds(index, PLACES_PER_RECORD * limit)
        found: list[Entry] = []
        at = bisect_left(index.names, self.stream)
        while at < len(index.names) and len(found) < limit:
            lane = index.lanes[index.names[at]]
            if index.names[at] != self.stream:
                self.stream, self.number = index.names[at], 0
            start = bisect_left(lane.entries, self.number, key=_first) if self.number > 0 else 0
            stop = start + limit - len(found)
            part, after = lane.entries[start:stop], lane.entries[stop : stop + 1]
            upto = max(after[0].first, self.number + 1) if after else SEQUENCE_MAX
            right = right and _fits(index, lane, part, self.number, upto)
            found, self.number = found + part, upto
            at += not after
        if at >= len(index.names):
            hidden = self._hidden(index, max(1, limit - len(found)))
            right = right and all(_hides(index, *item) for item in hidden)
            found += [entry for _, entry in hidden]
        return found, right

    def _hidden(self, index: Index, limit: int) -> list[tuple[Place, Entry]]:
        """The next hidden entries; behind the last of them a pass ends."""
        start = self.hidden if 0 <= self.hidden <= len(index.hidden) else 0
        part = list(islice(index.hidden.items(), start, start + limit))
        self.hidden = start + len(part)
        if len(part) < limit:
            self.stream, self.number, self.hidden = (-1, b""), 0, 0
        return part

    def _seconds(self, index: Index, limit: int) -> bool:
        """Are the sums of the next seconds, of about `limit` records, those of their records?"""
        order, sums = index.order, index.sums
        begin = start = bisect_left(order, self.second << RECORD_KEY_BITS)
        while start < len(order) and start - begin < limit:
            second = order[start] >> RECORD_KEY_BITS
            end = bisect_left(order, second + 1 << RECORD_KEY_BITS)
            if end <= start or sums.of(second) != _sum(order[start:end]):
                return False
            start, self.second = end, second + 1
        if start >= len(order):
            self.second = 0
        return True


def _sum(places: list[Place]) -> tuple[int, int]:
    """The keys of these places of one second added up, and how many there are."""
    return sum(places) & KEY_MASK, len(places)


def _adds_up(index: Index) -> bool:
    """Do all counts agree with the entries?"""
    shown, window = index.shown.values(), index.window
    publications = sum(entry.end - entry.first for entry in shown)
    lanes = sum(len(lane.entries) for lane in index.lanes.values())
    return (
        index.sound
        and len(index.order) == len(shown) == lanes
        and index.names == sorted(index.lanes)
        and index.publications == publications
        and index.bytes == sum(entry.size for entry in shown)
        and index.sums.add_up(len(shown))
        and index.capped == _capped(index, publications)
        and all(next(index.surplus(who), None) is None for who in (index.quotas or (0,)))
        and (not index.order or index.order[0] >= window.lowest)
    )


def _capped(index: Index, publications: int) -> int | None:
    """The publications, of each publisher at most its quota; None if the quotas are wrong."""
    quota = index.window.per_publisher
    if quota is None:
        return publications
    counts: dict[NodeId, int] = {}
    for entry in index.shown.values():
        counts[entry.publisher] = counts.get(entry.publisher, 0) + entry.count
    places = [place for places, _ in index.quotas.values() for place in places]
    if len(places) != len(index.shown) or not index.shown.keys() >= {*places}:
        return None
    if counts != {who: it[1] for who, it in index.quotas.items()}:
        return None
    return sum(min(index.window.quota, count) for count in counts.values())


def _fits(index: Index, lane: Lane, part: list[Entry], lo: int, hi: int) -> bool:
    """Are these the entries of the lane from `lo` to before `hi`, and do all tables know them?"""
    return (
        lane.gone.intact
        and lane.hid.intact
        and lane.covered.common(lo, hi) == _covered(lane, lo, hi)
        and all(number_of(a) < number_of(b) for a, b in pairwise(part))
        and all(_known(index, lane, entry) for entry in part)
    )


def _covered(lane: Lane, lo: int, hi: int) -> list[Interval]:
    """The numbers from `lo` to before `hi` that the entries of a lane cover."""
    found: list[Interval] = []
    for entry in lane.overlapping(lo, hi):
        first, end = max(lo, entry.first), min(hi, entry.end)
        if found and first <= found[-1][1]:
            if first < found[-1][0]:  # by a fault they are in no order
                parts = Intervals(found)
                parts.add(first, end)
                found = list(parts)
            elif end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        elif first < end:
            found.append((first, end))
    return found


def _known(index: Index, lane: Lane, entry: Entry) -> bool:
    place, order = entry.place, index.order
    at = bisect_left(order, place)
    if index.shown.get(place) is not entry or order[at : at + 1] != [place]:
        return False
    if index.window.per_publisher is not None:
        places = index.quotas.get(entry.publisher, ([], 0))[0]
        at = bisect_left(places, place)
        if places[at : at + 1] != [place]:
            return False
    return entry.stream == lane.stream


def _hides(index: Index, place: Place, entry: Entry) -> bool:
    """Is an entry rightly hidden?"""
    window = index.window
    if place in index.shown or place != entry.place:
        return False
    if place < window.lowest:
        return True
    if window.limit < LIMIT_MAX and index.capped >= window.limit and place < index.order[0]:
        return True
    if window.per_publisher is None:
        return False
    places, sum = index.quotas.get(entry.publisher, ([], 0))
    return sum >= window.quota and place < places[0]
