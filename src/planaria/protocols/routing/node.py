"""A broker: leased content-based routing over the links of a tree (paper 4), amended.

The tree is given from below: `link_up`, `link_down`. Time is the timeouts of this broker.

Amendments (ERRATA 3 and 4): a broker renews what it told its neighbours itself, once in rho, and
does not wait for renewals of others ('hop'); expiry is passed on like an unsubscription; what a
lost cover or merge hid is told in the same message that cancels it; one lease for each (id, link);
both ends of a new link exchange their tables; recent publications are replayed over entries that
are new, and ids keep them from being delivered twice. Links acknowledge (decision 0034).
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import ClassVar

from planaria.core.errors import UsageError, unknown
from planaria.core.ids import NodeId, is_node_id, stable_hash
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Effect,
    Effects,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.state import State
from planaria.filters.filters import Attributes, Filter, filter_id, is_well_formed
from planaria.protocols.routing.announcer import Announcer, AnnouncerState, News
from planaria.protocols.routing.contact import ContactState
from planaria.protocols.routing.forwarding import Forwarder
from planaria.protocols.routing.joining import Joining, JoiningState
from planaria.protocols.routing.leases import (
    Destination,
    LeaseTable,
    LeaseTableState,
    client_destination,
    is_sound,
)
from planaria.protocols.routing.link import UNKNOWN, Link, LinkState
from planaria.protocols.routing.messages import (
    SESSIONS,
    Acquainted,
    Beat,
    Notify,
    Received,
    Update,
)
from planaria.protocols.routing.recent import MemoryState
from planaria.protocols.routing.requests import CLIENTS_MAX, notified_attributes, wanted_filters
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.routing.timing import Delays, Timing, timing_on_path

SAMPLE_MAX = 100  # recent notifications by which the waste of imperfect merging is judged


class BrokerState(State):
    """Everything that a broker remembers, what its clients want among it."""

    table: LeaseTableState
    memory: MemoryState
    announcer: AnnouncerState
    contact: ContactState
    joining: JoiningState
    links: dict[int, LinkState]
    parent: int | None
    clients: dict[int, dict[int, Filter]]
    round: int
    notifications_sent: int


class Broker(Forwarder):
    """Routes notifications for its local clients and its neighbours in the tree.

    `clients` are the local applications and what they want: input, not state of the protocol.
    """

    __slots__ = ("announcer", "joining", "round", "timing")

    state_type: ClassVar[type[State]] = BrokerState

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
        if strategy not in STRATEGIES:
            raise unknown("strategy", strategy, STRATEGIES)
        # Renewed hop by hop, an entry is late by the jitter of its own link, not of the whole way.
        own = {it: timing_on_path(timing.rho, [known]) for it, known in (delays or {}).items()}
        pis = {it: found.pi for it, found in own.items()}
        late = max([timing.late, *(found.late for found in own.values())])
        table = LeaseTable(timing.pi, pis, late)
        super().__init__(id, rng, table, timing.memory, strategy, hierarchical=hierarchical)
        self.timing = timing
        self.announcer = Announcer(id, strategy, waste_max, self._sample)
        self.joining = Joining()
        self.round = 0

    # The links of the tree

    def link_up(self, neighbour: NodeId, *, parent: bool = False) -> list[Effect]:
        """There is a link to `neighbour`, new or with another role: exchange tables, replay."""
        if neighbour == self.id:
            return []
        self.links[neighbour] = Link(self.rng.randrange(SESSIONS))
        if parent:
            self.parent = neighbour
        elif self.parent == neighbour:
            self.parent = None
        self.announcer.announced.pop(neighbour, None)
        self.memory.forget_holder(neighbour)
        self.announcer.changed(self.links)
        renewed = self._tell(neighbour, everything=True)
        return [*renewed, self._acquaint(neighbour), *self._replay(neighbour)]

    def link_down(self, neighbour: NodeId) -> list[Effect]:
        """The link is gone. Its leases run out by themselves: who was behind it may come back.

        What it had not acknowledged stays in the memory, and is replayed over the next link behind
        which it is wanted.
        """
        self.links.pop(neighbour, None)
        self.announcer.announced.pop(neighbour, None)
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
        match message:
            case Notify():
                return self._on_notify(message)
            case Update():
                return self._on_update(message)
            case Received() if message.sender == sender:
                return self._on_received(message)
            case Beat():
                return self._on_beat(message)
            case Acquainted() if message.sender == sender:
                return self._on_acquainted(message)
        return []

    def on_timeout(self) -> Effects:
        """Clients renew, leases run out, and once in rho everything is told again."""
        self._repair()
        for link in self.links.values():
            link.repair_queue()
        self._renew_clients()
        if self.table.tick() is not None:
            self.announcer.renew(self.links)  # every cover and merge is found anew
        self.memory.tick()
        self.round = (self.round + 1) % self.timing.rho
        effects: list[Effect] = [*self._beat()]
        for neighbour, link in self.links.items():
            effects += self._tell(neighbour, everything=self.round == 0)
            link.tick()
            effects += self._give_up(neighbour, link)
            effects += self._transmit(neighbour, link)
            effects += self._acknowledge(neighbour, link)
        return [*effects, *self.joining.joined(self._audience())]

    def on_command(self, command: Command) -> Effects:
        """A local client subscribes, unsubscribes or publishes."""
        self._repair()
        match command:
            case Subscribe():
                return self._on_subscribe(command)
            case Unsubscribe(pattern, client=client):
                self.unsubscribe(client, wanted_filters(command))
                self.joining.end(pattern, client)
            case Publish(payload=payload):
                return self.publish(notified_attributes(command), payload)
        return []

    # Subscriptions of local clients

    def _on_subscribe(self, command: Subscribe) -> list[Effect]:
        if command.ordered:
            raise UsageError(
                "content keeps no order while its tree changes: subscribe without `ordered`"
            )
        effects = self.subscribe(command.client, wanted_filters(command))
        audience = self._audience()
        self.joining.begin(command.pattern, command.client, audience)
        return effects if audience else [*effects, *self.joining.joined(audience)]

    def subscribe(self, client: int, filters: Iterable[Filter]) -> list[Effect]:
        """`client` wants what any of `filters` matches; it renews that until it unsubscribes."""
        wanted = self.clients.setdefault(client, {})
        news = []
        for filter in filters:
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
        link = self.links.get(sender)
        if link is not None and link.theirs != message.session:
            self.table.forgive(sender, message.stamp)
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
        if link is not None:
            if message.asks:
                link.heard(message.stamp)
            if link.theirs in (UNKNOWN, message.session):
                effects += self._replay(sender, [filter for _, filter in news]) if news else []
            if link.theirs != message.session:
                effects += self._meet(sender, link, message.session)
        return effects + self._spread(sender, news)

    def _meet(self, neighbour: NodeId, link: Link, session: int) -> list[Effect]:
        """The neighbour brought its end up. If mine was up before, it may know nothing of me: tell
        it everything, and send what it may lack."""
        if link.theirs == UNKNOWN:
            link.theirs = session
            return [self._acquaint(neighbour)]
        link.begin_anew(session)
        self.memory.forget_holder(neighbour)
        renewed = self._tell(neighbour, everything=True)
        return [*renewed, self._acquaint(neighbour), *self._replay(neighbour)]

    def _on_received(self, message: Received) -> list[Effect]:
        """A neighbour, and not one that had its place before, holds what it was sent."""
        neighbour, link = message.sender, self.links.get(message.sender)
        if link is None or link.theirs != message.session:
            return []
        self._holds(link, neighbour, message.ids)
        self.joining.acknowledge(neighbour, message.stamps)
        return [*self._transmit(neighbour, link), *self.joining.joined(self._audience())]

    def _acceptable(self, id: int, filter: Filter) -> bool:
        """Is this what a broker of the same strategy could say? An id names its filter."""
        named = self.strategy == "simple" or id == self.announcer.filter_id(filter)
        return named and is_well_formed(filter)

    def _spread(self, source: Destination, news: News) -> list[Effect]:
        if not news:
            return []
        self.announcer.changed(self.links, but=source)
        return [*self.announcer.spread(self._audience(), source, news)]

    def _tell(self, neighbour: NodeId, *, everything: bool) -> list[Send]:
        table = self.table.entries if neighbour in self._audience() else {}
        asks = everything and self.joining.asks(neighbour)
        link = self.links[neighbour]
        sent = self.announcer.tell(neighbour, link, table, everything=everything, asks=asks)
        if asks:
            self.joining.ask(neighbour, [_stamp(it) for it in sent])
        return sent

    def _audience(self) -> dict[NodeId, Link]:
        """The neighbours that must know what is wanted here."""
        if self.strategy == "flooding":
            return {}
        if self.hierarchical:
            return {id: link for id, link in self.links.items() if id == self.parent}
        return self.links

    def _sample(self) -> list[Attributes]:
        return [it.body.attributes for it in self.memory.lately()[-SAMPLE_MAX:]]

    # State

    def _repair(self) -> None:
        """Bring variables that a fault changed back into their ranges; content heals by time."""
        self.round %= self.timing.rho
        for neighbour in [it for it in self.links if not is_node_id(it) or it == self.id]:
            del self.links[neighbour]
        for link in self.links.values():
            link.repair()
        self.memory.repair()
        self.contact.repair()
        self.announcer.repair(self.links)

    def state(self) -> State:
        """The state of all parts and links."""
        found = super().state()
        assert isinstance(found, BrokerState)
        found.links = {id: link.state() for id, link in self.links.items()}  # type: ignore[misc]
        return found

    def load(self, state: State) -> None:
        """Take these variables; what no client can want is left out."""
        assert isinstance(state, BrokerState)
        super().load(state)
        self.links = {}
        for neighbour, link in state.links.items():
            self.links[neighbour] = Link(link.session)
            self.links[neighbour].load(link)
        self.clients = {
            client: {id: it for id, it in wanted.items() if is_sound(id, it)}
            for client, wanted in state.clients.items()
            if 0 <= client < CLIENTS_MAX
        }


def _stamp(sent: Send) -> int:
    assert isinstance(sent.message, Update)
    return sent.message.stamp
