"""What is measured of a run of mobile nodes: whose turn it was when, what was sent, pictures.

Kept by the world that carries nodes, never by the nodes, and asked by nobody who judges them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.mobile.messages import STEM, Beat
from planaria.simulator.worlds.graphs import Point

PICTURES_MAX = 400  # seconds that are kept for the animation
PICTURE_NODES_MAX = 150  # more cannot be told apart on a screen


class Picture(Struct):
    """One second: places, and links as (high, low) pairs: they point from high to low."""

    second: int
    places: dict[NodeId, Point]
    links: list[tuple[NodeId, NodeId]]


class Measures:
    """Counts and times of one run."""

    def __init__(self) -> None:
        self.copies = 0
        self.handed_over = 0
        self.garbage = 0
        self.beats = 0
        self.turns: dict[NodeId, int] = {}
        self.turned: dict[int, list[NodeId]] = {}
        self.since: dict[NodeId, int] = {}
        self.longest_wait = 0
        self.seconds = 0
        self.lives = 0  # timeouts of nodes that had a neighbour
        self.cyclic = False  # at the end of some second
        self.pictures: list[Picture] = []

    def start(self, id: NodeId, second: int) -> None:
        """A node begins, or begins anew."""
        self.since[id] = second
        self.turns.setdefault(id, 0)

    def sent(self, message: Message, published: Mapping[bytes, object]) -> None:
        """A message goes out; what nobody published is garbage."""
        if isinstance(message, Beat):
            self.beats += 1
            for item in message.items:
                if item.id not in published:
                    self.garbage += 1
                elif item.generation == STEM:
                    self.handed_over += 1
                else:
                    self.copies += 1

    def timeout(self, id: NodeId, second: int, turns: int, *, linked: bool) -> None:
        """A node's timeout passed, with a turn or without."""
        self.seconds = max(self.seconds, second)
        self.lives += linked
        if turns:
            self.turns[id] = self.turns.get(id, 0) + turns
            self.turned.setdefault(second, []).append(id)
        if linked:
            self.longest_wait = max(self.longest_wait, second - self.since.get(id, 0))
        if turns or not linked:
            self.since[id] = second

    def wants_picture(self, nodes: int) -> bool:
        """Is there room for one more?"""
        return len(self.pictures) < PICTURES_MAX and nodes <= PICTURE_NODES_MAX

    def metrics(self, members: Sequence[NodeId]) -> dict[str, Any]:
        """The figures of the run so far; turns are those of `members`."""
        turns = [count for id, count in self.turns.items() if id in members]
        least = min(turns, default=0)
        return {
            "acyclic": not self.cyclic,
            "sends": self.copies,
            "handed_over": self.handed_over,
            "sends_of_garbage": self.garbage,
            "beats": self.beats,
            "longest_wait": self.longest_wait,
            "executions_min": least,
            "executions_max": max(turns, default=0),
            "executions_max_min_ratio": max(turns, default=0) / least if least else None,
            "executions_per_round": sum(turns) / max(1, self.lives),
            "concurrency": sum(turns) / max(1, self.seconds),
        }
