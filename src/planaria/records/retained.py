"""The last publication of each key: made when first asked for, then kept up to date.

It holds positions, no payloads, and costs nothing to topics of which nobody asks for it.
"""

from collections.abc import Iterable

from planaria.core.errors import CapacityExceeded
from planaria.records.record import KEYS, Place, Record, Stream

RETAINED_KEYS_MAX = 1 << 20  # of one topic, about 200 MB

_Turn = tuple[int, Stream, int, Place]  # time, stream, number: which of two is the last


class Retained:
    """Where the last publication of each key stands, and of the topic as a whole."""

    __slots__ = ("_keys", "_last", "_owned")

    def __init__(self) -> None:
        self._keys: dict[bytes, _Turn] = {}
        self._owned: dict[Place, list[bytes]] = {}  # keys that a record had the last word on once
        self._last: _Turn | None = None

    def take(self, record: Record, lo: int, hi: int) -> None:
        """Take up the numbers of a record from `lo` to before `hi`.

        Raises CapacityExceeded if there are too many keys.
        """
        time, stream, place = record.time, record.stream, record.place
        turn = (time, stream, hi - 1, place)
        if self._last is None or turn > self._last:
            self._last = turn
        if not record.columns & KEYS:
            return
        keys = record.offsets().key_cells(range(lo - record.first, hi - record.first))
        for number, key in enumerate(keys, lo):
            turn = (time, stream, number, place)
            if key is not None and (key not in self._keys or turn > self._keys[key]):
                self._keys[key] = turn
                self._owned.setdefault(place, []).append(key)
        if len(self._keys) > RETAINED_KEYS_MAX:
            raise CapacityExceeded(f"{len(self._keys)} keys: at most {RETAINED_KEYS_MAX}")

    def without(self, places: Iterable[Place]) -> bool:
        """Forget the lowest records; False if all must be made anew, as the last was among them."""
        for place in places:
            if self._last is not None and self._last[3] == place:
                return False
            for key in self._owned.pop(place, ()):
                if key in self._keys and self._keys[key][3] == place:
                    del self._keys[key]
        return True

    def position(self, key: bytes | None) -> tuple[Stream, int] | None:
        """The position of the last publication with this key, or of all if it is None."""
        turn = self._last if key is None else self._keys.get(key)
        return None if turn is None else (turn[1], turn[2])
