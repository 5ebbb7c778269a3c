"""A broker: leased content-based routing over the links of a tree (paper 4), amended.

The tree is given from below: `link_up`, `link_down`. Time is the timeouts of this broker.

Amendments (ERRATA 3 and 4): a broker renews what it told its neighbours itself, once in rho, and
does not wait for renewals of others ('hop'); expiry is passed on like an unsubscription; what a
lost cover or merge hid is told in the same message that cancels it; one lease for each (id, link);
both ends of a new link exchange their tables; recent publications are replayed over entries that
are new, and ids keep them from being delivered twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from msgspec import structs

from planaria.core.errors import CapacityExceeded, UsageError, unknown
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Effect,
    Effects,
    Node,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.topics import check_filter
from planaria.filters.filters import (
    TOPIC,
    Attributes,
    Filter,
    filter_id,
    is_well_formed,
)
from planaria.filters.matching import MatchingIndex
from planaria.filters.values import Values
from planaria.protocols.routing.announcer import Announcer, News
from planaria.protocols.routing.commands import (
    DeliverTo,
    PublishContent,
    SubscribeTo,
    UnsubscribeFrom,
)
from planaria.protocols.routing.leases import Destination, LeaseTable
from planaria.protocols.routing.messages import Notify, Update
from planaria.protocols.routing.notifications import ATTRIBUTES_MAX, check_notification
from planaria.protocols.routing.recent import Memory
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.routing.timing import Delays, Timing, timing_on_path

SAMPLE_MAX = 100  # recent notifications by which the waste of imperfect merging is judged
CLIENTS_MAX = 1_000_000


def client_destination(client: int) -> Destination:
    """Local clients are negative destinations, neighbours are not."""
    return -1 - client


class Broker(Node):
    """Routes notifications for its local clients and its neighbours in the tree.

    `clients` are the local applications and what they want: input, not state of the protocol.
    """

    __slots__ = (
        "announcer",
        "clients",
        "hierarchical",
        "links",
        "memory",
        "notifications_sent",
        "parent",
        "rng",
        "round",
        "strategy",
        "table",
        "timing",
    )
    variables = ("table", "memory", "told", "stamp", "round")

    def __init__(
        self,
        id: NodeId,
        timing: Timing,
        rng: Random,
        *,
        strategy: str = "covering",
        hierarchical: bool = False,
        waste_max: float = 0.0,
        delays: Mapping[NodeId, Delays] | None = None,
    ) -> None:
        """Of links whose `delays` are given leases last as long as these ask for (3.5)."""
        super().__init__(id)
        if strategy not in STRATEGIES:
            raise unknown("strategy", strategy, STRATEGIES)
        self.timing, self.rng = timing, rng
        self.strategy, self.hierarchical = strategy, hierarchical
        self.links: dict[NodeId, None] = {}
        self.parent: NodeId | None = None
        self.clients: dict[int, dict[int, Filter]] = {}
        # Renewed hop by hop, an entry is late by the jitter of its own link, not of the whole way.
        own = {it: timing_on_path(timing.rho, [known]) for it, known in (delays or {}).items()}
        pis = {it: found.pi for it, found in own.items()}
        late = max([timing.late, *(found.late for found in own.values())])
        self.table = LeaseTable(timing.pi, pis, late)
        self.memory = Memory(timing.memory)
        self.announcer = Announcer(id, strategy, waste_max, self._sample)
        self.round = 0
        self.notifications_sent = 0

    # The links of the tree

    def link_up(self, neighbour: NodeId, *, parent: bool = False) -> list[Effect]:
        """There is a link to `neighbour`, new or with another role: exchange tables, replay."""
        if neighbour == self.id:
            return []
        self.links[neighbour] = None
        if parent:
            self.parent = neighbour
        elif self.parent == neighbour:
            self.parent = None
        self.announcer.told.pop(neighbour, None)
        self.memory.forget_holder(neighbour)
        self.announcer.changed(self.links)
        return [*self._tell(neighbour, everything=True, hello=True), *self._replay(neighbour)]

    def link_down(self, neighbour: NodeId) -> list[Effect]:
        """The link is gone. Its leases run out by themselves: who was behind it may come back."""
        self.links.pop(neighbour, None)
        self.announcer.told.pop(neighbour, None)
        if self.parent == neighbour:
            self.parent = None
        self.memory.forget_holder(neighbour)
        return []

    def set_links(self, neighbours: Sequence[NodeId], parent: NodeId | None) -> list[Effect]:
        """Make the links those of a tree that may have changed."""
        effects: list[Effect] = []
        for gone in [it for it in self.links if it not in neighbours]:
            effects += self.link_down(gone)
        if self.parent not in neighbours:
            self.parent = None
        for neighbour in neighbours:
            if neighbour not in self.links or (neighbour == parent) != (neighbour == self.parent):
                effects += self.link_up(neighbour, parent=neighbour == parent)
        return effects

    # Inputs

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A neighbour, or garbage, speaks."""
        self._repair()
        if isinstance(message, Update):
            return self._on_update(message)
        if isinstance(message, Notify):
            return self._on_notify(message)
        return []

    def on_timeout(self) -> Effects:
        """Clients renew, leases run out, and once in rho everything is told again."""
        self._repair()
        self._renew_clients()
        if self.table.tick() is not None:
            self.announcer.renew(self.links)  # every cover and merge is found anew
        self.memory.tick()
        self.round = (self.round + 1) % self.timing.rho
        effects: list[Effect] = []
        for link in self.links:
            effects += self._tell(link, everything=self.round == 0)
        return effects

    def on_command(self, command: Command) -> Effects:
        """A local client subscribes, unsubscribes or publishes; by topic alone it is client 0."""
        self._repair()
        if isinstance(command, Subscribe):
            if command.ordered:
                raise UsageError("content reports no gaps: subscribe without `ordered`")
            return self.subscribe(0, [topic_filter(command.pattern)])
        if isinstance(command, Unsubscribe):
            self.unsubscribe(0, [topic_filter(command.pattern)])
        if isinstance(command, SubscribeTo):
            return self.subscribe(command.client, command.filters)
        if isinstance(command, UnsubscribeFrom):
            self.unsubscribe(command.client, command.filters)
        elif isinstance(command, PublishContent):
            return self.publish(command.attributes, command.payload)
        elif isinstance(command, Publish):
            return self.publish({TOPIC: command.topic}, command.payload)
        return []

    # Subscriptions of local clients

    def subscribe(self, client: int, filters: Iterable[Filter]) -> list[Effect]:
        """`client` wants what any of `filters` matches; it renews that until it unsubscribes."""
        if not 0 <= client < CLIENTS_MAX:
            raise UsageError(f"client {client}: between 0 and {CLIENTS_MAX - 1}")
        asked = list(filters)
        if not all(is_well_formed(filter) for filter in asked):
            raise UsageError("a filter that no condition means: make it with `sql.parse`")
        wanted = self.clients.setdefault(client, {})
        news = []
        for filter in asked:
            id = self._subscription_id(client, filter)
            wanted[id] = filter
            if self.table.insert(client_destination(client), id, filter):
                news.append((id, filter))
        return self._spread(client_destination(client), news)

    def unsubscribe(self, client: int, filters: Iterable[Filter]) -> None:
        """`client` is done with `filters`; the next timeout tells that, with what it uncovers."""
        wanted = self.clients.get(client, {})
        for filter in filters:
            id = self._subscription_id(client, filter)
            wanted.pop(id, None)
            self.table.remove(client_destination(client), id)
        self.announcer.changed(self.links)

    def _subscription_id(self, client: int, filter: Filter) -> int:
        id = filter_id(filter)
        if self.strategy == "simple":  # each subscription is treated by itself
            return stable_hash(self.id, client, id, bits=63)
        return id

    def _renew_clients(self) -> None:
        """Each client renews once in rho, at a time of its own; local calls are not lost."""
        for client, wanted in self.clients.items():
            if (self.round + client) % self.timing.rho == 0:
                destination = client_destination(client)
                for id, filter in wanted.items():
                    if self.table.insert(destination, id, filter):
                        self.announcer.changed(self.links)

    # The routing table

    def _on_update(self, message: Update) -> list[Effect]:
        """Insert renewed and new leases, remove cancelled ones, pass on what is new."""
        sender = message.sender
        if sender == self.id:
            return []
        if message.hello:
            self.table.forgive(sender)
        news: list[tuple[int, Filter]] = []
        leases = () if self.strategy == "flooding" else message.leases
        for id, filter in leases:
            old = self.table.get(sender, id)
            if (old is None or old.filter != filter) and not self._acceptable(id, filter):
                continue
            if self.table.insert(sender, id, filter, message.stamp):
                news.append((id, filter))
        for id in message.cancels:
            if self.table.cancel(sender, id, message.stamp):
                self.announcer.changed(self.links, but=sender)
        effects: list[Effect] = []
        if message.hello and sender in self.links:
            self.memory.forget_holder(sender)
            effects += self._tell(sender, everything=True)
            effects += self._replay(sender)
        elif news and sender in self.links:
            effects += self._replay(sender, [filter for _, filter in news])
        return effects + self._spread(sender, news)

    def _acceptable(self, id: int, filter: Filter) -> bool:
        """Is this what a broker of the same strategy could say? An id names its filter."""
        named = self.strategy == "simple" or id == self.announcer.filter_id(filter)
        return named and is_well_formed(filter)

    def _spread(self, source: Destination, news: News) -> list[Effect]:
        if not news:
            return []
        self.announcer.changed(self.links, but=source)
        return self.announcer.spread(self._audience(), source, news)

    def _tell(self, link: NodeId, *, everything: bool, hello: bool = False) -> list[Effect]:
        table = self.table.entries if link in self._audience() else {}
        return self.announcer.tell(link, table, everything=everything, hello=hello)

    def _audience(self) -> list[NodeId]:
        """The neighbours that must know what is wanted here."""
        if self.strategy == "flooding":
            return []
        if self.hierarchical:
            return [] if self.parent is None else [self.parent]
        return list(self.links)

    # Notifications

    def publish(self, attributes: dict[str, Any], payload: bytes) -> list[Effect]:
        """Send a notification of a local client on its way."""
        check_notification(attributes, payload)
        if self.memory.full:
            raise CapacityExceeded("too many notifications in one period: publish more slowly")
        id = self.rng.getrandbits(128).to_bytes(16, "big")
        return self._route(Notify(self.id, id, attributes, payload), self.id)

    def _on_notify(self, message: Notify) -> list[Effect]:
        """Forward what is new along the table, never back, and hand it to local clients."""
        if message.sender == self.id or len(message.attributes) > ATTRIBUTES_MAX:
            return []
        if self.memory.knows(message.id) or self.memory.too_old(message) or self.memory.full:
            return []
        return self._route(message, message.sender)

    def _route(self, message: Notify, source: NodeId) -> list[Effect]:
        wanted = self.table.destinations(message.attributes)
        targets = [link for link in self.links if link != source and self._sends(link, wanted)]
        forwarded = structs.replace(message, sender=self.id)
        self.memory.remember(forwarded, [source, *targets])
        self.notifications_sent += len(targets)
        effects: list[Effect] = [Send(link, forwarded) for link in targets]
        local = [client for client in self.clients if client_destination(client) in wanted]
        return effects + [_delivery(client, message) for client in local]

    def _sends(self, link: NodeId, wanted: list[Destination]) -> bool:
        upwards = self.hierarchical and link == self.parent
        return self.strategy == "flooding" or upwards or link in wanted

    def _replay(self, link: NodeId, filters: Sequence[Filter] | None = None) -> list[Effect]:
        """Send `link` what it may have missed and now asks for (with `filters`), or ever did."""
        if filters is None:
            leased = [lease.filter for lease in self.table.of(link).values()]
            filters = [filter for filter in leased if is_well_formed(filter)]
        always = self._sends(link, [])
        asked = MatchingIndex()
        for number, filter in enumerate(filters):
            asked.add(number, filter)
        effects: list[Effect] = []
        for message in list(self.memory.replayed(link)):
            if always or asked.match(message.attributes):
                self.memory.sent(message, link)
                self.notifications_sent += 1
                effects.append(Send(link, message))
        return effects

    def _sample(self) -> list[Attributes]:
        return [it.message.attributes for it in self.memory.lately()[-SAMPLE_MAX:]]

    # State

    def _repair(self) -> None:
        """Bring variables that a fault changed back into their ranges; content heals by time."""
        self.round %= self.timing.rho
        self.memory.repair()
        self.announcer.repair(self.links)

    def snapshot(self) -> dict[str, Any]:
        """A copy of the routing table, of what neighbours were told, and of recent traffic."""
        return {
            "table": self.table.snapshot(),
            "memory": self.memory.snapshot(),
            "told": {link: dict(told) for link, told in self.announcer.told.items()},
            "stamp": self.announcer.stamp,
            "round": self.round,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state, however old; what is out of date runs out."""
        self.table.restore(snapshot["table"])
        self.memory.restore(snapshot["memory"])
        self.announcer.told = {link: dict(told) for link, told in snapshot["told"].items()}
        self.announcer.stamp, self.round = snapshot["stamp"], snapshot["round"]
        self.announcer.changed(self.links)


def topic_filter(pattern: str) -> Filter:
    """The filter that a subscription by topic means; raises UsageError if it is no MQTT filter."""
    return Filter(((TOPIC, Values(topics=(check_filter(pattern),))),))


def _delivery(client: int, message: Notify) -> DeliverTo:
    topic = str(message.attributes.get(TOPIC, ""))
    return DeliverTo.one(
        topic, message.id, message.payload, client=client, attributes=message.attributes
    )
