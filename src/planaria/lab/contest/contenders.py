"""The four overlays on one workload, as they would be used for it, and the baselines beside them.

The ring has no hierarchy and the mobile overlay none either: who wants a topic with all below it is
in the ring, or the layer, of each. Gossip and content know hierarchies themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from msgspec import structs

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Node, Publish, Subscribe
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.core.workload import Ask
from planaria.filters.filters import Filter
from planaria.filters.sql import parse
from planaria.lab.contest.baselines import BASELINES, FLOOD_LINKS
from planaria.lab.contest.workload import Workload
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.node import Configuration
from planaria.protocols.gossip.overlay import CONTACTS, GossipOverlay
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.mobile.node import MobileNode
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.simulator.worlds.mobile import Host, MovingOverlay

SUPERVISORS = 2  # of the ring: one may go


class Ring(Overlay):
    """A skip ring for every topic, the same supervisors for all."""

    name = "ring"
    starts = ("fresh",)

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.rings = {topic: RingOverlay(SUPERVISORS, topic) for topic in workload.topics}
        self.supervisors = next(iter(self.rings.values())).supervisors

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A peer in the rings of all topics it wants, or a supervisor."""
        if id in self.supervisors:
            return next(iter(self.rings.values())).spawn(id, rng)
        peer = Peer(id, self.supervisors, rng)
        for topic in self.workload.wanted(id):
            peer.on_command(Subscribe(topic))
        return peer

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """Everybody joins at once."""
        return [self.spawn(id, rng) for id in (*self.workload.wishes, *self.supervisors)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Not made by hand: rings of many topics grow from `fresh`."""
        raise UsageError("rings of many topics have no legitimate start: use fresh")

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary variables in every ring."""
        for ring in self.rings.values():
            ring.corrupt(node, ids, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Any message of any ring."""
        return rng.choice(list(self.rings.values())).forge(ids, rng)

    def speaker(self, message: Message) -> NodeId | None:
        """The same in all rings."""
        return next(iter(self.rings.values())).speaker(message)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Every ring by itself."""
        flight = list(channel)
        return [it for ring in self.rings.values() for it in ring.violations(states, flight)]


class Gossip(GossipOverlay):
    """daMulticast on the workload's own hierarchy."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self.workload, self.topics = workload, workload.topics
        self.configuration = Configuration(
            hierarchy=Hierarchy(), default=Parameters(), contacts=CONTACTS
        )

    def interests(self, id: NodeId) -> list[str]:
        """The one topic."""
        return [self.workload.wishes[id]]


class Content(ContentOverlay):
    """Every node is a broker with one client, whose condition is a prefix of the subject."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(brokers=len(workload.wishes))
        self.workload = workload
        self._judge = self.judge([{"subject": f"{topic}/"} for topic in workload.topics])

    def wishes(self, id: NodeId) -> list[tuple[int, Filter]]:
        """All subjects that begin with the topic."""
        wish = self.workload.wishes[id]
        return [(0, filter) for filter in parse(f"subject LIKE '{wish}/%'")]


class Device(Host):
    """A host that does not look at every message whether it moves another layer: others did."""

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Hand it on."""
        return self.transmit(self.carried.on_message(message, sender))


class Mobile(MovingOverlay):
    """A layer for every topic; nodes stand, all in reach, with as many links as in the flooding."""

    def __init__(self, workload: Workload) -> None:
        n = len(workload.wishes)
        super().__init__(f"complete:{n}", connection_points=FLOOD_LINKS)
        self.workload, self.topics = workload, list(workload.topics)

    def member(self, id: NodeId, rng: Random) -> MobileNode:
        """A node in the layers of all topics it wants."""
        node = MobileNode(id, rng, connection_points=self.connection_points)
        for topic in self.workload.wanted(id):
            node.on_command(Subscribe(topic))
        return node

    def host(self, carried: MobileNode) -> Host:
        """A device without checks."""
        return Device(carried, self.world)


OVERLAYS = ("ring", "gossip", "content", "mobile")
CONTENDERS: Mapping[str, Callable[[Workload], Overlay]] = {
    "ring": Ring,
    "gossip": Gossip,
    "content": Content,
    "mobile": Mobile,
    **BASELINES,
}


def worded(ask: Ask, overlay: Overlay) -> Ask:
    """The same as a node of `overlay` is asked for it: content goes by attributes."""
    command = ask.command
    if not (isinstance(overlay, Content) and isinstance(command, Publish)):
        return ask
    attributes = {"subject": f"{command.topic}/"}
    return structs.replace(ask, command=structs.replace(command, attributes=attributes))
