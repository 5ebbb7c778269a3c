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
from planaria.protocols.publications.publication import KEY_BITS, Publication, Rank

LIMIT_MAX = 1 << 20  # publications of one topic in memory: about 1 GiB at 500 bytes each


class Window(NamedTuple):
    """What is shown: from the second `lo` on, `per_publisher` of each publisher, `limit` in all."""

    lo: int = 0
    limit: int = LIMIT_MAX
    per_publisher: int | None = None

    @property
    def lowest(self) -> Rank:
        """The lowest rank in it."""
        return self.lo << KEY_BITS


def kept(held: Mapping[Rank, Publication], window: Window) -> list[Rank]:
    """The ranks that `window` shows of all that is held, the highest first."""
    ranks = sorted((rank for rank in held if rank >= window.lowest), reverse=True)
    if window.per_publisher is not None:
        counts: Counter[NodeId] = Counter()
        within = []
        for rank in ranks:
            publisher = held[rank].publisher
            if counts[publisher] < window.per_publisher:
                within.append(rank)
            counts[publisher] += 1
        ranks = within
    return ranks[: max(1, window.limit)]


class Quota:
    """The ranks of each publisher that are shown, sorted. Derived: if in doubt, made anew."""

    __slots__ = ("_ranks", "per_publisher")

    def __init__(self, per_publisher: int | None, shown: Mapping[Rank, Publication]) -> None:
        self.per_publisher = per_publisher
        self._ranks: dict[NodeId, list[Rank]] = {}
        if per_publisher is not None:
            for rank in sorted(shown):
                self._ranks.setdefault(shown[rank].publisher, []).append(rank)

    def surplus(self, publisher: NodeId, rank: Rank) -> Rank | None:
        """What has no room beside a new rank of this publisher: the lowest, perhaps itself."""
        if self.per_publisher is None:
            return None
        ranks = self._ranks.get(publisher, [])
        full = ranks and len(ranks) >= self.per_publisher
        return min(rank, ranks[0]) if full else None

    def add(self, publisher: NodeId, rank: Rank) -> None:
        """Count a rank in."""
        if self.per_publisher is not None:
            insort(self._ranks.setdefault(publisher, []), rank)

    def remove(self, publisher: NodeId, rank: Rank) -> None:
        """Count a rank out."""
        ranks = self._ranks.get(publisher, [])
        at = bisect_left(ranks, rank)
        if ranks[at : at + 1] == [rank]:
            del ranks[at]
            if not ranks:
                del self._ranks[publisher]
