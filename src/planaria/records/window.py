"""Which records a topic keeps: a window over the order of retention, (time, key).

A record is kept iff it is young enough and fewer than N publications stand above it: fewer than
`per_publisher` of its publisher, and fewer than `limit` of all, of each publisher at most that
quota. Publications count as often as records hold them. Both sums only grow with what is held,
so stores that merge in any order keep the same, without tombstones. (Counting what the quota
leaves, as one would with single publications, is not enough: one record more may take a large one
out, and with it what pushed a third out.)
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from planaria.core.ids import NodeId
from planaria.records.record import RECORD_KEY_BITS, Place

LIMIT_MAX = 1 << 62  # publications: as good as no limit


class Kept(Protocol):
    """What a window asks of a record."""

    @property
    def place(self) -> Place:
        """Where it stands in the order of retention."""

    @property
    def publisher(self) -> NodeId:
        """Whose quota it counts in."""

    @property
    def count(self) -> int:
        """How many publications it holds."""


class Window(NamedTuple):
    """What is shown: from the second `lo` on, `per_publisher` of each publisher, `limit` in all."""

    lo: int = 0
    limit: int = LIMIT_MAX
    per_publisher: int | None = None

    @property
    def lowest(self) -> Place:
        """The lowest place in it."""
        return self.lo << RECORD_KEY_BITS

    @property
    def quota(self) -> int:
        """How many publications of one publisher count."""
        return self.limit if self.per_publisher is None else self.per_publisher


def kept(held: Iterable[Kept], window: Window) -> list[Place]:
    """The places that `window` shows of all that is held, the highest first."""
    if window.limit == LIMIT_MAX and window.per_publisher is None:
        return sorted((one.place for one in held if one.place >= window.lowest), reverse=True)
    places = []
    above: Counter[NodeId] = Counter()
    total = 0
    for one in sorted(held, key=lambda one: one.place, reverse=True):
        if one.place < window.lowest or total >= window.limit:
            break
        mine = above[one.publisher]
        if mine < window.quota:
            places.append(one.place)
        above[one.publisher] = mine + one.count
        total += min(window.quota, mine + one.count) - min(window.quota, mine)
    return places
