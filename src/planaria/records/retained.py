"""The last publication of each key: made when first asked for, then kept up to date.

It holds positions, no payloads, and costs nothing to topics of which nobody asks for it.
"""

from collections.abc import Iterable

from planaria.core.errors import CapacityExceeded
from planaria.records.record import KEYS, RECORD_KEY_BITS, Place, Record, Stream

RETAINED_KEYS_MAX = 1 << 20  # of one topic, about 200 MB

_Turn = tuple[int, Stream, int, Place]  # time, stream, number: which of two is the last


class Retained:
    """Where the last publication of each key stands."""

    __slots__ = ("_keys", "_owned", "_second", "_unsure")

    def __init__(self) -> None:
        self._keys: dict[bytes, _Turn] = {}
        self._owned: dict[Place, list[bytes]] = {}  # keys that a record had the last word on once
        self._second = 0  # the lowest of which something was shown lately
        self._unsure: set[bytes] = set()  # keys of which another of that second may be the last

    def take(self, record: Record, lo: int, hi: int) -> None:
        """Take up the numbers of a record from `lo` to before `hi`.

        Raises CapacityExceeded if there are too many keys.
        """
        if not record.columns & KEYS:
            return
        time, stream, place = record.time, record.stream, record.place
        keys = record.offsets().key_cells(range(lo - record.first, hi - record.first))
        for number, key in enumerate(keys, lo):
            turn = (time, stream, number, place)
            if key is not None and (key not in self._keys or turn > self._keys[key]):
                self._keys[key] = turn
                self._owned.setdefault(place, []).append(key)
        if len(self._keys) > RETAINED_KEYS_MAX:
            raise CapacityExceeded(f"{len(self._keys)} keys: at most {RETAINED_KEYS_MAX}")

    def without(self, places: Iterable[Place], second: int) -> None:
        """Forget the lowest records; of those left the lowest is of this second.

        Places of one second are in the order of keys, not of numbers: what had the last word may go
        before another with the same key.
        """
        if second != self._second:
            self._second, self._unsure = second, set()
        for place in places:
            for key in self._owned.pop(place, ()):
                if key in self._keys and self._keys[key][3] == place:
                    del self._keys[key]
                    if place >> RECORD_KEY_BITS == second:
                        self._unsure.add(key)

    def knows(self, key: bytes) -> bool:
        """Is `position` right for this key, or must all be made anew?"""
        return key not in self._unsure

    def position(self, key: bytes) -> tuple[Stream, int] | None:
        """The position of the last publication with this key."""
        turn = self._keys.get(key)
        return None if turn is None else (turn[1], turn[2])
