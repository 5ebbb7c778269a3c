"""The part of a broker that carries notifications: it has the routing table, others change it.

A notification is remembered, queued for every link behind which it is wanted, and sent until the
neighbour acknowledges it. What cannot be sent any more is a gap: the neighbour, and whoever is
behind it, is told that something is missing.
"""

from collections.abc import Iterable, Sequence
from random import Random

from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Effect, Node, Notice, Published, Send
from planaria.filters.filters import TOPIC, Filter, is_well_formed
from planaria.filters.matching import MatchingIndex
from planaria.filters.values import Value
from planaria.protocols.routing.contact import Contact
from planaria.protocols.routing.leases import Destination, LeaseTable, client_destination
from planaria.protocols.routing.link import ACKNOWLEDGE_AT_ONCE, LARGE, Link
from planaria.protocols.routing.messages import ID_BYTES, Acquainted, Beat, Notify, Received
from planaria.protocols.routing.notifications import (
    ATTRIBUTES_MAX,
    GAP_MAX,
    Notification,
    is_sound,
    is_topic,
    received,
    to_send,
)
from planaria.protocols.routing.recent import Memory


class Forwarder(Node):
    """Routes notifications for its local clients and its neighbours in the tree."""

    __slots__ = (
        "clients",
        "contact",
        "hierarchical",
        "links",
        "memory",
        "notifications_sent",
        "parent",
        "rng",
        "strategy",
        "table",
    )

    def __init__(
        self, id: NodeId, rng: Random, table: LeaseTable, period: int, strategy: str, *,
        hierarchical: bool,
    ) -> None:  # fmt: skip
        super().__init__(id)
        self.rng, self.table = rng, table
        self.strategy, self.hierarchical = strategy, hierarchical
        self.links: dict[NodeId, Link] = {}
        self.parent: NodeId | None = None
        self.clients: dict[int, dict[int, Filter]] = {}
        self.memory, self.contact = Memory(period), Contact(period)
        self.notifications_sent = 0

    # Notifications

    def publish(self, attributes: dict[str, Value], payload: bytes) -> list[Effect]:
        """Send a notification of a local client on its way."""
        if self.memory.full:
            raise CapacityExceeded("too many notifications in one period: publish more slowly")
        body = Notification(self._drawn_id(), attributes, payload)
        return [Published(body.topic, body.id), *self._route(body, self.id)]

    def _on_notify(self, message: Notify) -> list[Effect]:
        """Take what is new when it is its turn, and acknowledge all that is known."""
        sender, body = message.sender, received(message)
        if sender == self.id or len(message.attributes) > ATTRIBUTES_MAX:
            return []
        link = self.links.get(sender)
        if link is None:
            return self._take(body, sender) if self._acceptable_body(body) else []
        effects: list[Effect] = []
        if self.memory.knows(body.id):
            self._holds(link, sender, [body.id])
            link.got(body.id)
        elif self._acceptable_body(body) and link.takes(body, message.after, self.memory.knows):
            effects += self._take(body, sender)
            for early in link.ready(self.memory.knows):
                if self._acceptable_body(early) and is_sound(early):
                    effects += self._take(early, sender)
        if len(link.received) >= ACKNOWLEDGE_AT_ONCE or len(body.payload) >= LARGE:
            effects += self._acknowledge(sender, link)
        return effects

    def _acceptable_body(self, body: Notification) -> bool:
        memory = self.memory
        return not (memory.knows(body.id) or memory.too_old(body) or memory.full)

    def _take(self, body: Notification, source: NodeId) -> list[Effect]:
        if source in self.links:
            self.links[source].got(body.id)
        return self._route(body, source)

    def _route(self, body: Notification, source: NodeId) -> list[Effect]:
        """Forward along the table, never back, and hand it to local clients."""
        wanted = self.table.destinations(body.attributes)
        self.memory.remember(body, [source])
        effects: list[Effect] = []
        for neighbour, link in self.links.items():
            if neighbour != source and (body.gap or self._sends(neighbour, wanted)):
                link.offer(body.id, body.topic, len(body.payload))
                effects += self._transmit(neighbour, link)
        if body.gap:
            return [*effects, Notice(body.topic, "gap", {"lost": body.gap})]
        local = [client for client in self.clients if client_destination(client) in wanted]
        return effects + [_delivery(client, body) for client in local]

    def _sends(self, neighbour: NodeId, wanted: list[Destination]) -> bool:
        upwards = self.hierarchical and neighbour == self.parent
        return self.strategy == "flooding" or upwards or neighbour in wanted

    def _replay(self, neighbour: NodeId, filters: Sequence[Filter] | None = None) -> list[Effect]:
        """Send what it may have missed and now asks for (with `filters`), or ever did.

        That something is missing concerns everybody.
        """
        link = self.links[neighbour]
        if filters is None:
            leased = [lease.filter for lease in self.table.of(neighbour).values()]
            filters = [filter for filter in leased if is_well_formed(filter)]
        always = self._sends(neighbour, [])
        asked = MatchingIndex()
        for number, filter in enumerate(filters):
            asked.add(number, filter)
        for body in self.memory.replayed(neighbour):
            if body.gap or always or asked.match(body.attributes):
                link.offer(body.id, body.topic, len(body.payload))
        return self._transmit(neighbour, link)

    # Links that acknowledge

    def _transmit(self, neighbour: NodeId, link: Link) -> list[Effect]:
        """Send what is due."""
        bodies = [(self.memory.sendable(id), after) for id, after in link.due()]
        sends = [Send(neighbour, to_send(self.id, it, after)) for it, after in bodies if it]
        self.notifications_sent += len(sends)
        return [*sends]

    def _give_up(self, neighbour: NodeId, link: Link) -> list[Effect]:
        """Give up what is too old to be sent, or cannot be, and report it."""
        lost = {id: None for id in link.underway() if not self.memory.can_send(id)}
        return self._gap(link.give_up(lost), [neighbour]) if lost else []

    def _acknowledge(self, neighbour: NodeId, link: Link) -> list[Effect]:
        ids, stamps = link.acknowledgements()
        if not ids and not stamps:
            return []
        return [Send(neighbour, Received(self.id, link.session, ids, stamps))]

    def _holds(self, link: Link, neighbour: NodeId, ids: Iterable[bytes]) -> None:
        """The neighbour has these: nothing more is owed to it."""
        for id in link.acknowledge(ids):
            self.memory.held(id, neighbour)

    def _gap(self, topics: Sequence[str], neighbours: Iterable[NodeId]) -> list[Effect]:
        """Tell the application here, and all who are behind `neighbours`, that some are missing.

        There are as many as `topics`; which one is said if it is the same for all.
        """
        first, lost = topics[0], min(len(topics), GAP_MAX)
        topic = first if is_topic(first) and all(it == first for it in topics) else ""
        if not self.memory.full:
            attributes: dict[str, Value] = {TOPIC: topic} if topic else {}
            body = Notification(self._drawn_id(), attributes, gap=lost)
            self.memory.remember(body, [self.id])
            for neighbour in neighbours:
                self.links[neighbour].offer(body.id, topic)
        return [Notice(topic, "gap", {"lost": lost})]

    # Beats

    def _beat(self) -> list[Effect]:
        """Time passes for the beats; the root draws one now and then."""
        if not self.contact.tick(root=self.parent is None):
            return []
        id = self._drawn_id()
        self.contact.hear(id)
        return [Send(neighbour, Beat(self.id, id)) for neighbour in self.links]

    def _on_beat(self, message: Beat) -> list[Effect]:
        """Pass on what is new."""
        if message.sender not in self.links or not self.contact.hear(message.id):
            return []
        beat = Beat(self.id, message.id)
        return [Send(it, beat) for it in self.links if it != message.sender]

    def _acquaint(self, neighbour: NodeId) -> Send:
        contact = self.contact
        return Send(neighbour, Acquainted(self.id, contact.shown(), contact.settled))

    def _on_acquainted(self, message: Acquainted) -> list[Effect]:
        """If we come from trees that were apart for too long, all on this side are told."""
        if message.sender not in self.links:
            return []
        apart = self.contact.apart(message.beats, settled=message.settled)
        for id in message.beats:
            self.contact.hear(id)
        here = [it for it in self.links if it != message.sender]
        return self._gap([""], here) if apart else []

    def _drawn_id(self) -> bytes:
        return self.rng.getrandbits(8 * ID_BYTES).to_bytes(ID_BYTES, "big")


def _delivery(client: int, body: Notification) -> Deliver:
    attributes = {name: value for name, value in body.attributes.items() if name != TOPIC}
    return Deliver.one(body.topic, body.id, body.payload, attributes=attributes, client=client)
