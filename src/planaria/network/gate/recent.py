"""What came lately on topics that keep only so many publications, for readers that are nearly even.

Retention may let a publication go before anybody has read it, or not keep it at all: of those that
come within one second a topic that keeps the last one keeps any. That decides what is kept, never
what is delivered. So tails find here what is not in the store any more, for as long as there is
room; who is slower is told a gap.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from planaria.network.client.messages import Lack
from planaria.records.batches import Slice
from planaria.records.record import Stream
from planaria.records.window import LIMIT_MAX, Window

RECENT_BYTES_MAX = 4 << 20  # of the records of all topics; then the oldest are forgotten


class Recent:
    """The last publications of all topics that have a count and are followed."""

    def __init__(self) -> None:
        self._order: deque[tuple[str, Stream]] = deque()  # as they came
        self._parts: dict[tuple[str, Stream], deque[Slice]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    def add(self, topic: str, parts: Iterable[Slice]) -> None:
        """These came."""
        for part in parts:
            name = (topic, part.record.stream)
            self._parts.setdefault(name, deque()).append(part)
            self._order.append(name)
            self._bytes += len(part.record.data)
        while self._bytes > RECENT_BYTES_MAX:
            name = self._order.popleft()
            self._bytes -= len(self._parts[name].popleft().record.data)
            if not self._parts[name]:
                del self._parts[name]

    def of(self, topic: str, lacks: Iterable[Lack], floor: int) -> list[Slice]:
        """What there is of these numbers, from the second `floor` on."""
        found = []
        for lack in lacks:
            for part in self._parts.get((topic, (lack.publisher, lack.incarnation)), ()):
                lo, hi = max(lack.lo, part.lo), min(lack.hi, part.hi)
                if lo < hi and part.record.time >= floor:
                    found.append(Slice(part.record, lo, hi))
        return found


def is_counted(window: Window) -> bool:
    """Does a topic keep only so many?"""
    return window.limit != LIMIT_MAX or window.per_publisher is not None


def in_order(parts: Sequence[Slice]) -> list[Slice]:
    """Each stream's publications by number, those that come late first."""
    return sorted(parts, key=lambda it: (it.record.stream, not it.late, it.lo))
