"""The book of a run of mobile nodes: owed is what somebody has whom one can reach.

There is no deadline: nodes may be apart for as long as they move. So it is asked once the layers
are legitimate, when nothing is on its way any more.
"""

from collections.abc import Callable, Iterator, Mapping
from math import inf

from planaria.core.book import Book, Client, Due, Publication, Subscription
from planaria.core.ids import NodeId
from planaria.core.node import Publish, Subscribe
from planaria.simulator.worlds.graphs import component

LayerGraph = Callable[[str], Mapping[NodeId, list[NodeId]]]  # topic -> who is linked with whom


class ReachBook(Book):
    """What is owed follows from `graph`, the links of each layer as they are when it is asked."""

    def __init__(self, graph: LayerGraph) -> None:
        super().__init__(_wants, within=inf)
        self._graph = graph

    def due(self, time: float) -> Iterator[Due]:
        """Who was a member when it was published, and is now linked, over others, with one who has
        it; a member that has it is linked with itself."""
        parts: dict[str, dict[NodeId, int]] = {}
        for publication in self.published.values():
            topic = publication.command.topic
            if topic not in parts:
                parts[topic] = _parts(self._graph(topic))
            part_of = parts[topic]
            having = {part_of[id] for id in part_of if self._has(id, publication)}
            for id in sorted(part_of):
                owed = part_of[id] in having and not publication.excused
                if owed and self._was_member(id, publication):
                    yield Due(publication, (id, 0), inf)

    def find(self, payload: bytes) -> Publication:
        """The publication with this payload."""
        return next(it for it in self.published.values() if it.command.payload == payload)

    def holders(self, publication: Publication) -> dict[NodeId, float]:
        """Who was given it, and when."""
        found = {
            client[0]: table.get(publication.id) for client, table in self.handed.first.items()
        }
        return {id: when for id, when in found.items() if when is not None}

    def rounds(self) -> int:
        """Whole intervals from a publication to its last delivery, of the slowest one."""
        return max((self.rounds_of(it) for it in self.published.values()), default=0)

    def rounds_of(self, publication: Publication) -> int:
        """Whole intervals from this publication to its last delivery."""
        last = max(self.holders(publication).values(), default=publication.time)
        return int(last) - int(publication.time)

    def given(self) -> int:
        """Pairs of a publication and a node that was given it."""
        tables = self.handed.first.values()
        return sum(id in self.published for table in tables for id in table)

    def _has(self, id: NodeId, publication: Publication) -> bool:
        return self.handed.when((id, 0), publication.id) is not None

    def _was_member(self, id: NodeId, publication: Publication) -> bool:
        return any(
            one.since <= publication.time and one.until == inf
            for one in self.subscriptions.get((id, 0), [])
            if one.command.pattern == publication.command.topic
        )

    def _subscribe(self, time: float, client: Client, command: Subscribe) -> None:
        """A subscription is in force at once."""
        wishes = self.subscriptions.setdefault(client, [])
        if not any(it.command == command and it.until == inf for it in wishes):
            wishes.append(Subscription(command, time))


def _wants(subscription: Subscribe, publication: Publish) -> bool:
    return subscription.pattern == publication.topic


def _parts(graph: Mapping[NodeId, list[NodeId]]) -> dict[NodeId, int]:
    """Which part of the graph each node is in."""
    found: dict[NodeId, int] = {}
    for id in graph:
        if id not in found:
            found.update(dict.fromkeys(component(dict(graph), id), id))
    return found
