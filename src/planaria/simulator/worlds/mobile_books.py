"""The books of a run of mobile nodes: who was to get what, who got it, whose turn it was when.

Kept by the drivers that carry nodes, never by the nodes: to remember who published is just what
the protocol does not do.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.mobile.graphs import Point, component, parts
from planaria.protocols.mobile.legitimacy import linked, points_to
from planaria.protocols.mobile.messages import STEM, Beat
from planaria.protocols.mobile.node import MobileNode

PICTURES_MAX = 400  # seconds that are kept for the animation
PICTURE_NODES_MAX = 150  # more cannot be told apart on a screen


class Publication(Struct):
    """One publication, known by its payload: its id names nobody, not even it."""

    publisher: NodeId
    second: int
    arrivals: dict[NodeId, int]
    order: int  # among all beginnings and publications: seconds are too coarse to tell
    excused: bool = False  # memory was damaged while it was under way


class Picture(Struct):
    """One second: places, and links as (high, low) pairs: they point from high to low."""

    second: int
    places: dict[NodeId, Point]
    links: list[tuple[NodeId, NodeId]]


class Books:
    """Counts and times of one run."""

    def __init__(self) -> None:
        self.happened = 0  # beginnings and publications so far
        self.appeared: dict[NodeId, int] = {}  # as which of them
        self.publications: dict[bytes, Publication] = {}
        self.duplicated = 0
        self.forged = 0
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
        self.cyclic = False
        self.pictures: list[Picture] = []

    # What drivers report

    def appear(self, id: NodeId, second: int) -> None:
        """A node begins, or begins anew and is owed nothing that was before."""
        self.happened += 1
        self.appeared[id], self.since[id] = self.happened, second
        self.turns.setdefault(id, 0)
        for publication in self.publications.values():
            publication.arrivals.pop(id, None)

    def published(self, id: NodeId, payload: bytes, second: int) -> None:
        """An application publishes."""
        self.happened += 1
        self.publications[payload] = Publication(id, second, {}, self.happened)

    def delivered(self, id: NodeId, payload: bytes, second: int) -> None:
        """An application is handed a publication."""
        publication = self.publications.get(payload)
        if publication is None:
            self.forged += 1
        elif id in publication.arrivals:
            self.duplicated += 1
        else:
            publication.arrivals[id] = second

    def sent(self, message: Message) -> None:
        """A message goes out."""
        if isinstance(message, Beat):
            self.beats += 1
            for item in message.items:
                if item.payload not in self.publications:
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
            self.turns[id] += turns
            self.turned.setdefault(second, []).append(id)
        if linked:
            self.longest_wait = max(self.longest_wait, second - self.since[id])
        if turns or not linked:
            self.since[id] = second

    def picture(
        self, second: int, places: Mapping[NodeId, Point], nodes: Mapping[NodeId, MobileNode]
    ) -> None:
        """Keep one second of the first layer for the animation."""
        if len(self.pictures) >= PICTURES_MAX or len(places) > PICTURE_NODES_MAX:
            return
        first = [next(iter(node.layers), None) for node in nodes.values()]
        topic = next((topic for topic in first if topic is not None), None)
        layers = {id: node.layers[topic] for id, node in nodes.items() if topic in node.layers}
        arcs = []
        for a, b in linked(layers):
            low = points_to(layers[a], layers[b])
            if low is not None:
                arcs.append((b, a) if low == a else (a, b))
        self.pictures.append(Picture(second, dict(places), arcs))

    def damaged(self, present: Iterable[NodeId]) -> None:
        """Memory was overwritten: what has not arrived everywhere may never do so."""
        nodes = list(present)
        for publication in self.publications.values():
            publication.excused |= any(id not in publication.arrivals for id in nodes)

    # What people ask

    def missed(self, graph: Mapping[NodeId, list[NodeId]]) -> list[tuple[bytes, NodeId]]:
        """Who lacks what somebody has, who can reach it, and was there when it was published."""
        found = []
        adjacency = dict(graph)
        for payload, publication in self.publications.items():
            owed: dict[NodeId, None] = {}
            for id in () if publication.excused else publication.arrivals:
                if id in adjacency and id not in owed:
                    owed.update(dict.fromkeys(component(adjacency, id)))
            found += [
                (payload, id)
                for id in sorted(owed)
                if id not in publication.arrivals and self.appeared[id] < publication.order
            ]
        return found

    def rounds(self) -> int:
        """Intervals from a publication to its last delivery, of the slowest one."""
        spans = [
            max(publication.arrivals.values(), default=publication.second) - publication.second
            for publication in self.publications.values()
        ]
        return max(spans, default=0)

    def metrics(self, graph: Mapping[NodeId, list[NodeId]]) -> dict[str, Any]:
        """The figures of the run so far."""
        turns = [count for id, count in self.turns.items() if id in graph]
        least = min(turns, default=0)
        return {
            "nodes": len(graph),
            "links": sum(map(len, graph.values())) // 2,
            "parts": parts(graph),
            "acyclic": not self.cyclic,
            "publications": len(self.publications),
            "delivered": sum(len(it.arrivals) for it in self.publications.values()),
            "duplicated": self.duplicated,
            "missed": len(self.missed(graph)),
            "sends": self.copies,
            "handed_over": self.handed_over,
            "sends_of_garbage": self.garbage,
            "beats": self.beats,
            "rounds": self.rounds(),
            "longest_wait": self.longest_wait,
            "executions_min": least,
            "executions_max": max(turns, default=0),
            "executions_max_min_ratio": max(turns, default=0) / least if least else None,
            "executions_per_round": sum(turns) / max(1, self.lives),
            "concurrency": sum(turns) / max(1, self.seconds),
        }
