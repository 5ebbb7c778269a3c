"""The last publication of each key: made when first asked for, then kept up to date.

It holds positions, no payloads, and costs nothing to topics of which nobody asks for it. It is made
in steps, so that a node serves others meanwhile.
"""

from collections.abc import Iterable
from itertools import islice

from planaria.core.errors import CapacityExceeded
from planaria.records.batches import Slice
from planaria.records.index import Index
from planaria.records.lanes import Lane, Segment
from planaria.records.record import (
    KEYS,
    RECORD_KEY_BITS,
    SEQUENCE_MAX,
    Place,
    Record,
    Stream,
)

RETAINED_KEYS_MAX = 1 << 20  # of one topic, about 200 MB
STEP_RECORDS = 64  # taken up at a time: 2 to 6 ms

_Turn = tuple[int, Stream, int, Place]  # time, stream, number: which of two is the last


class Retained:
    """Where the last publication of each key stands."""

    __slots__ = ("_doubted", "_full", "_keys", "_owned", "_second", "_unread", "_unsure")

    def __init__(self, streams: Iterable[Stream]) -> None:
        """Nothing is taken up yet of these streams; what comes from now on is `take`n."""
        self._unread = dict.fromkeys(streams, 0)  # the number from which on
        self._keys: dict[bytes, _Turn] = {}
        self._owned: dict[Place, list[bytes]] = {}  # keys that a record had the last word on once
        self._second: int | None = 0  # the lowest of which something was shown lately
        self._unsure: set[bytes] = set()  # keys of which another of that second may be the last
        self._doubted: set[bytes] = set()  # keys whose last one may have another body by now
        self._full = False  # were there too many keys?

    @property
    def complete(self) -> bool:
        """Was everything taken up?"""
        return not self._unread

    def next(self, index: Index) -> list[Segment]:
        """What to take up next, of what is shown, also beyond holes."""
        parts: list[Segment] = []
        while self._unread and len(parts) < STEP_RECORDS:
            stream, number = next(iter(self._unread.items()))
            lane = index.lanes.get(stream) or Lane(stream)
            parts += islice(lane.segments(number, SEQUENCE_MAX), STEP_RECORDS - len(parts))
            if len(parts) < STEP_RECORDS:
                del self._unread[stream]
            else:
                self._unread[stream] = parts[-1][2]
        return parts

    def take(self, record: Record, lo: int, hi: int) -> None:
        """Take up the numbers of a record from `lo` to before `hi`."""
        if self._full or not record.columns & KEYS:
            return
        time, stream, place = record.time, record.stream, record.place
        for number, key in enumerate(_keys(Slice(record, lo, hi)), lo):
            turn = (time, stream, number, place)
            if key is not None and (key not in self._keys or turn > self._keys[key]):
                self._keys[key] = turn
                self._owned.setdefault(place, []).append(key)
        if len(self._keys) > RETAINED_KEYS_MAX:
            self._full = True
            self._keys, self._owned, self._unread = {}, {}, {}

    def without(self, places: Iterable[Place], second: int | None) -> None:
        """Forget records: the lowest, and of those left the lowest is of this second; None: any.

        Places of one second are in the order of keys, not of numbers: what had the last word may go
        before another with the same key.
        """
        if second != self._second:
            self._second, self._unsure = second, set()
        for place in places:
            lost = self._lose(place)
            if second is None or place >> RECORD_KEY_BITS == second:
                self._unsure.update(lost)

    def doubt(self, places: Iterable[Place]) -> None:
        """Another record has numbers of these: which of their bodies count is not known."""
        for place in places:
            self._doubted.update(self._lose(place))

    def _lose(self, place: Place) -> list[bytes]:
        """The keys of which a record has the last word, which are known no more."""
        owned = dict.fromkeys(self._owned.pop(place, ()))
        lost = [key for key in owned if key in self._keys and self._keys[key][3] == place]
        for key in lost:
            del self._keys[key]
        return lost

    def knows(self, key: bytes) -> bool:
        """Is `position` right for this key, or must all be made anew?"""
        return key not in self._unsure and key not in self._doubted

    def position(self, key: bytes) -> tuple[Stream, int] | None:
        """The position of the last publication with this key.

        Raises CapacityExceeded if there are too many keys.
        """
        if self._full:
            raise CapacityExceeded(f"more than {RETAINED_KEYS_MAX} keys: they are not followed")
        turn = self._keys.get(key)
        return None if turn is None else (turn[1], turn[2])

    def compacted(self, part: Slice) -> list[Slice]:
        """What is left of it without publications that a later one with the same key replaced.

        Where that is not known, nothing is left out.
        """
        if self._full or not part.record.columns & KEYS:
            return [part]
        stream = part.record.stream
        return part.runs(
            key is None or self._stands(key, stream, number)
            for number, key in enumerate(_keys(part), part.lo)
        )

    def _stands(self, key: bytes, stream: Stream, number: int) -> bool:
        turn = self._keys.get(key)
        return turn is None or not self.knows(key) or turn[1:3] == (stream, number)


def _keys(part: Slice) -> list[bytes | None]:
    first = part.record.first
    return part.record.offsets().key_cells(range(part.lo - first, part.hi - first))
