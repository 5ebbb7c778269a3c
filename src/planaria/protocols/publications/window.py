"""Which publications a topic keeps: a window over the order of retention, (time, key).

A publication is kept iff fewer than N stand above it: N of its publisher, N of all. So what is
kept of a union depends only on what is kept of its parts, and stores that merge in any order keep
the same, without tombstones.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from planaria.core.ids import NodeId
from planaria.protocols.publications.publication import KEY_BITS, Place, Publication

LIMIT_MAX = 1 << 20  # publications of one topic in memory: about 1 GiB at 500 bytes each


class Window(NamedTuple):
    """What is shown: from the second `lo` on, `per_publisher` of each publisher, `limit` in all."""

    lo: int = 0
    limit: int = LIMIT_MAX
    per_publisher: int | None = None

    @property
    def lowest(self) -> Place:
        """The lowest place in it."""
        return self.lo << KEY_BITS


def kept(held: Mapping[Place, Publication], window: Window) -> list[Place]:
    """The places that `window` shows of all that is held, the highest first."""
    places = sorted((place for place in held if place >= window.lowest), reverse=True)
    if window.per_publisher is not None:
        ranks: Counter[NodeId] = Counter()
        within = []
        for place in places:
            publisher = held[place].publisher
            if ranks[publisher] < window.per_publisher:
                within.append(place)
            ranks[publisher] += 1
        places = within
    return places[: max(1, window.limit)]


class Quota:
    """The places of each publisher that are shown, sorted. Derived: if in doubt, made anew."""

    __slots__ = ("_places", "per_publisher")

    def __init__(self, per_publisher: int | None, shown: Mapping[Place, Publication]) -> None:
        self.per_publisher = per_publisher
        self._places: dict[NodeId, list[Place]] = {}
        if per_publisher is not None:
            for place in sorted(shown):
                self._places.setdefault(shown[place].publisher, []).append(place)

    def surplus(self, publisher: NodeId, place: Place) -> Place | None:
        """What has no room beside a new place of this publisher: the lowest, perhaps itself."""
        if self.per_publisher is None:
            return None
        places = self._places.get(publisher, [])
        full = places and len(places) >= self.per_publisher
        return min(place, places[0]) if full else None

    def add(self, publisher: NodeId, place: Place) -> None:
        """Count a place in."""
        if self.per_publisher is not None:
            insort(self._places.setdefault(publisher, []), place)

    def remove(self, publisher: NodeId, place: Place) -> None:
        """Count a place out."""
        places = self._places.get(publisher, [])
        at = bisect_left(places, place)
        if places[at : at + 1] == [place]:
            del places[at]
            if not places:
                del self._places[publisher]
