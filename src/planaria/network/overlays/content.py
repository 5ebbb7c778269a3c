"""A node's part in `content`: conditions in the network, over the tree that the DHT builds.

Every node is a broker; whom it knows joins the DHT, whose tree is the brokers'. A publication is a
notification with attributes: the members of a payload that is a JSON object, and its headers.
"""

from collections.abc import Iterator, Mapping
from random import Random

from msgspec.structs import replace

from planaria.core.composite import Part
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Publish
from planaria.core.overlay import Violation
from planaria.core.state import State, encode_state
from planaria.filters.filters import TOPIC, Filter, witness
from planaria.filters.values import INTEGER_MAX, INTEGER_MIN, Value
from planaria.filters.wording import to_sql
from planaria.network.client.conditions import attributes_of
from planaria.network.client.publishing import TOKEN_HEADER
from planaria.network.overlays.part import LivePart, Publications
from planaria.network.status import OverlayTopic
from planaria.protocols.content.node import ContentBroker, ContentBrokerState
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.dht.member import is_for_dht
from planaria.protocols.ring.messages import RingMessage
from planaria.protocols.routing.link import Link
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.notifications import check_notification
from planaria.protocols.routing.recent import Memory
from planaria.protocols.routing.requests import notified_attributes
from planaria.protocols.tree.node import TreeHost
from planaria.records.record import Draft, Publication, Record, seal

BROKERS = 64  # for which leases and memories are made; with more, healing takes longer
STRATEGY = "merging"  # which covers too
SHOWN = 100  # conditions in a status
GOODBYE = 4  # timeouts for which a leaver says who was beside it
UNSENT_MAX = 1024  # publications that wait for one neighbour; then the next ones wait outside
KEPT_MAX = 1000  # publications on disk
OVERLAY = ContentOverlay(strategy=STRATEGY)


class ContentPart(LivePart):
    """A broker, whose clients are the tails of the gate: each has a number and a condition."""

    overlay = "content"
    kinds = ContentOverlay.messages
    state_type = ContentBrokerState
    has_conditions = True
    # First the ring and its fingers, then the tree over it, then what is known where.
    invariants = (
        *("place", "ring", "handed", "fingers", "silence", "departure", "search", "parent"),
        *("children", "degree", "links", "index", "missing", "stale", "clients", "cancelled"),
    )
    node: ContentBroker

    def __init__(self, id: NodeId, rng: Random) -> None:
        host = TreeHost(id, OVERLAY.space, OVERLAY.tree)
        broker = ContentBroker(id, host, OVERLAY.timing_of(BROKERS), rng, strategy=STRATEGY)
        Part.__init__(self, broker, self.kinds)

    def claims(self, message: Message) -> bool:
        """Rings of topics use the messages of the ring that the DHT stands on."""
        return not isinstance(message, RingMessage) or is_for_dht(message)

    @staticmethod
    def copies(message: Message) -> int:
        """A notification is one."""
        return int(isinstance(message, Notify))

    def acquaint(self, ids: tuple[NodeId, ...]) -> None:
        """A newcomer to the DHT asks these."""
        self.node.host.dht.contacts = ids

    def published(self, topic: str, record: Record) -> Publications:
        """Each publication by itself: it goes where it is wanted."""
        for one in record.publications(record.first, record.end):
            drafts = [Draft(one.payload, one.key, one.headers, one.timestamp)]
            stream = (one.publisher, one.incarnation)
            sealed = seal(stream, one.sequence, drafts, time=record.time)
            command = Publish(topic, sealed.data, _attributes(topic, one))
            check_notification(notified_attributes(command), command.payload)
            yield command, sealed

    def has_room(self, topic: str) -> bool:
        """Not while a neighbour has to get so many first: what is not sent in time is lost."""
        return all(len(link.outgoing) < UNSENT_MAX for link in self.node.links.values())

    def kept(self) -> bytes:
        """Everything, but for publications when they are many: to write those takes too long."""
        found = self.node.state()
        assert isinstance(found, ContentBrokerState)
        if sum(map(len, found.memory.recent)) > KEPT_MAX:
            memory = replace(found.memory, recent=[])
            links = {peer: _bare(link) for peer, link in self.node.links.items()}
            found = replace(found, memory=memory, links=links)
        return encode_state(found)

    def resume(self) -> None:
        """Clients went with the process; what they wanted is told no more, and runs out.

        Who left in good order is a broker again.
        """
        self.node.clients = {}
        dht = self.node.host.dht
        dht.leaving, dht.heirs = False, ()

    def leaving(self) -> bool:
        """Does it still say who was beside it?"""
        dht = self.node.host.dht
        return dht.leaving and dht.time < GOODBYE and bool(self.node.links)

    def wishes(self) -> list[str]:
        """None that outlive their clients."""
        return []

    @staticmethod
    def bound(n: int, delay: float) -> int:
        """The simulator's."""
        return max(OVERLAY.bound(n, delay), OVERLAY.bound(BROKERS, delay))

    def judged(self) -> State:
        """DHT, tree, leases and what was told, and no notification."""
        found = self.node.state()
        assert isinstance(found, ContentBrokerState)
        links = {peer: _bare(link) for peer, link in self.node.links.items()}
        return replace(found, memory=Memory(self.node.timing.memory).state(), links=links)

    @staticmethod
    def violations(states: Mapping[NodeId, State]) -> list[Violation]:
        """The tree first; on the right one, whether what each client wants is known where it must.

        What is tried is one notification for each condition that there is.
        """
        below = OVERLAY.tree_violations(states, [])
        if below:
            return below
        brokers = {id: it for id, it in states.items() if isinstance(it, ContentBrokerState)}
        wanted = {
            filter: None
            for broker in brokers.values()
            for filters in broker.clients.values()
            for filter in filters.values()
        }
        universe = [it for it in map(witness, wanted) if it is not None]
        return OVERLAY.judge(universe).violations(
            brokers, {id: it.host.place.parent for id, it in brokers.items()}, []
        )

    def doubts(self) -> Iterator[str]:
        """What is being looked for, and who must still be told."""
        if self.node.host.dht.leaving:
            yield "leaves: clients are to ask another node"
        if self.node.host.place.asked:
            yield "looks for its neighbours in the tree"
        waiting = len(self.node.joining.waiting)
        if waiting:
            yield f"{waiting} conditions are not known to all neighbours yet"

    def topics(self) -> dict[str, OverlayTopic]:
        """The conditions of its clients, with the number of those who have each."""
        found: dict[str, int] = {}
        for filters in self.node.clients.values():
            for filter in filters.values():
                found[_worded(filter)] = found.get(_worded(filter), 0) + 1
        return {name: OverlayTopic(count) for name, count in sorted(found.items())[:SHOWN]}

    def neighbours(self) -> list[NodeId]:
        """Those beside it in the tree."""
        return sorted(self.node.links)


def _bare(link: Link) -> State:
    return replace(link.state(), outgoing={}, early={}, received=[])


def _worded(filter: Filter) -> str:
    return to_sql(filter) or "everything"


def _attributes(topic: str, one: Publication) -> dict[str, Value]:
    """What conditions can be about; the topic is not among it, and whole numbers have 64 bits."""
    return {
        name: value
        for name, value in attributes_of(topic, one).items()
        if name not in (TOPIC, TOKEN_HEADER)
        and not (isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX)
    }
