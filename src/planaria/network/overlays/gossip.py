"""A node's part in `gossip`: hierarchical topics, best effort, delivered once."""

from collections.abc import Iterator, Mapping
from random import Random

from msgspec import structs

from planaria.core.composite import Part
from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Publish
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.network.overlays.part import LivePart, Publications
from planaria.network.status import OverlayTopic
from planaria.protocols.gossip.group import ALONE_AFTER
from planaria.protocols.gossip.hierarchy import Hierarchy, filter_of, group_of
from planaria.protocols.gossip.legitimacy import violations
from planaria.protocols.gossip.memory import event_memory
from planaria.protocols.gossip.messages import Event
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.overlay import GossipOverlay
from planaria.protocols.gossip.state import GossipNodeState
from planaria.records.record import Record

SETTLED = 6  # intervals: a search, an introduction and some exchanges
CONFIGURATION = Configuration(Hierarchy())


class GossipPart(LivePart):
    """Newcomers ask the nodes that the driver knows; groups are found by searches from there."""

    overlay = "gossip"
    kinds = GossipOverlay.messages
    state_type = GossipNodeState
    invariants = ("groups", "view", "links", "size", "connected")
    node: GossipNode

    def __init__(self, id: NodeId, rng: Random) -> None:
        Part.__init__(self, GossipNode(id, CONFIGURATION, rng), self.kinds)

    @staticmethod
    def copies(message: Message) -> int:
        """An event is one."""
        return int(isinstance(message, Event))

    def acquaint(self, ids: tuple[NodeId, ...]) -> None:
        """A newcomer asks these."""
        if ids != self.node.configuration.contacts:
            self.node.configuration = structs.replace(self.node.configuration, contacts=ids)

    def wish(self, pattern: str) -> str:
        """A group has all topics below; of these a client is handed what its pattern selects."""
        return filter_of(group_of(pattern))

    def joins(self, topic: str) -> str | None:
        """Its group, some time before the first publication: two newcomers that find each other
        first would take themselves for all of it."""
        return filter_of(topic)

    def acquainted(self, topic: str) -> bool:
        """Has it been in the topic's group for long enough to know more than one of it?

        Who reads what is above is not in it, and begins to look for it now: an event that two
        newcomers have gets no farther.
        """
        if topic not in self.node.groups:
            try:
                self.node.join(self.node.publishing, topic)
            except CapacityExceeded:  # who publishes is told
                return False
        group = self.node.groups.get(topic)
        return group is not None and group.intervals >= SETTLED

    def published(self, topic: str, record: Record) -> Publications:
        """A record is one event."""
        yield Publish(topic, record.data), record

    def resume(self) -> None:
        """Others have given this process up: it looks for them anew, among those it knew first."""
        groups = self.node.groups.values()
        for group in groups:
            group.intervals = 0
        for membership in (self.node.neighbours, *(it.membership for it in groups)):
            for id in list(membership.view):
                membership.forget(id)

    def wishes(self) -> list[str]:
        """All groups that it wants to be in."""
        return [
            filter_of(it) for it in dict.fromkeys([*self.node.subscribed, *self.node.publishing])
        ]

    @staticmethod
    def bound(n: int, delay: float) -> int:
        """The simulator's."""
        return GossipOverlay().bound(n, delay)

    def judged(self) -> State:
        """All tables, and no event."""
        return structs.replace(self.node.state(), memory=event_memory().state(), outbox=[])

    @staticmethod
    def violations(states: Mapping[NodeId, State]) -> list[Violation]:
        """Groups, views, links and sizes, by the wishes of all live processes."""
        configuration = CONFIGURATION
        return violations(
            states, [], lambda topic: configuration.of(topic).z, configuration.hierarchy.supers
        )

    def doubts(self) -> Iterator[str]:
        """Groups that are still looked for."""
        hierarchy = self.node.configuration.hierarchy
        for topic, group in self.node.groups.items():
            if not group.membership.view and group.intervals < ALONE_AFTER:
                yield f"{filter_of(topic)}: looks for others who want it"
            elif not group.links.are_found(hierarchy):
                yield f"{filter_of(topic)}: looks for those who want a topic above"
        if self.node.configuration.contacts and not self.node.neighbours.view:
            yield "knows nobody in gossip yet"

    def topics(self) -> dict[str, OverlayTopic]:
        """The groups, with their sizes as they are estimated."""
        return {
            filter_of(topic): OverlayTopic(group.membership.size, len(group.membership.view))
            for topic, group in self.node.groups.items()
        }

    def neighbours(self) -> list[NodeId]:
        """Those whom it would ask."""
        return sorted(self.node.neighbours.view)
