"""The book of a run of mobile nodes: owed is what somebody has whom one can reach.

There is no deadline: nodes may be apart for as long as they move. So it is asked once the layers
are legitimate, when nothing is on its way any more.
"""

from collections.abc import Callable, Iterator, Mapping
from math import ceil, inf

from planaria.core.book import Book, Due, Publication
from planaria.core.ids import NodeId
from planaria.core.node import Publish, Subscribe
from planaria.simulator.worlds.graphs import component

LayerGraph = Callable[[str], Mapping[NodeId, list[NodeId]]]  # topic -> who is linked with whom


class ReachBook(Book):
    """What is owed follows from `graph`, the links of each layer as they are when it is asked.

    It does not matter whether the network was legitimate when something was published: whoever
    was a member then, and is now linked, over others or not, with one who has it, is owed it.
    """

    def __init__(self, graph: LayerGraph) -> None:
        super().__init__(_wants, within=0)
        self._graph = graph

    def due(self, time: float) -> Iterator[Due]:
        """Everything that was to be delivered by `time`, if the links are as they are now."""
        parts: dict[str, dict[NodeId, int]] = {}
        for publication in self.published.values():
            topic = publication.command.topic
            if topic not in parts:
                parts[topic] = _parts(self._graph(topic))
            part_of, holders = parts[topic], self.holders(publication)
            having = {part_of[id] for id in holders if id in part_of}
            for id in sorted(part_of):
                excused = publication.excused and id not in holders
                if part_of[id] in having and not excused and self._was_member(id, publication):
                    yield Due(publication, self.handed.client(id, 0), inf)

    def missed(self, time: float) -> list[Due]:
        """What was due by `time` and was not delivered."""
        return [it for it in self.due(time) if self.when(it) is None]

    def find(self, payload: bytes) -> Publication:
        """The publication with this payload."""
        return next(it for it in self.published.values() if it.command.payload == payload)

    def holders(self, publication: Publication) -> dict[NodeId, float]:
        """Who was given it, and when."""
        found = {}
        for client in self.subscriptions:
            when = self.handed.when(client, publication.id)
            if when is not None and client == self.handed.client(client[0], 0):
                found[client[0]] = when
        return found

    def given(self) -> int:
        """Pairs of a publication and a node that was given it."""
        return sum(len(self.holders(it)) for it in self.published.values())

    def rounds(self) -> int:
        """Intervals until a publication had come to its last receiver, of the slowest one."""
        return max((self.rounds_of(it) for it in self.published.values()), default=0)

    def rounds_of(self, publication: Publication) -> int:
        """Intervals, begun ones too, until this publication had come to its last receiver."""
        last = max(self.holders(publication).values(), default=publication.time)
        return ceil(round(last - publication.time, 6))  # ticks as floats: 0.07 + 3 is not 3.07

    def _was_member(self, id: NodeId, publication: Publication) -> bool:
        return any(
            one.since <= publication.time and one.until == inf
            for one in self.subscriptions.get(self.handed.client(id, 0), [])
            if self.wants(one.command, publication.command)
        )


def _wants(subscription: Subscribe, publication: Publish) -> bool:
    return subscription.pattern == publication.topic


def _parts(graph: Mapping[NodeId, list[NodeId]]) -> dict[NodeId, int]:
    """Which part of the graph each node is in."""
    adjacency, found = dict(graph), dict[NodeId, int]()
    for id in adjacency:
        if id not in found:
            found.update(dict.fromkeys(component(adjacency, id), id))
    return found
