"""Books of what is sent in a skip ring: by kind of message, and to and from supervisors."""

from collections import Counter
from collections.abc import Iterable

from planaria.core.ids import NodeId
from planaria.core.message import tag_of
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry


class Traffic:
    """Counts messages when they are sent; those of supervisors also in each interval."""

    kinds = ("send",)

    def __init__(self, supervisors: Iterable[NodeId]) -> None:
        self.supervisors = frozenset(supervisors)
        self.by_tag: Counter[str] = Counter()
        self.inward: list[int] = [0]
        self.outward: list[int] = [0]
        self.between_peers = 0

    @property
    def to_supervisors(self) -> int:
        """Messages to supervisors."""
        return sum(self.inward)

    @property
    def from_supervisors(self) -> int:
        """Messages of supervisors."""
        return sum(self.outward)

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Count a message."""
        assert entry.message is not None  # this is a send
        self.by_tag[tag_of(entry.message).partition(".")[2]] += 1
        peers = True
        for counts, end in ((self.inward, entry.target), (self.outward, entry.source)):
            if end in self.supervisors:
                counts.extend([0] * (tick // INTERVAL - len(counts) + 1))
                counts[tick // INTERVAL] += 1
                peers = False
        self.between_peers += peers
