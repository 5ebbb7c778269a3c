"""`planaria sim content`: brokers whose clients publish all the time, and the books of the run.

The books count in intervals. What must arrive is what was published since the network was
legitimate (from the beginning, if it started so), for clients that wanted it long enough before
and after. A broker that restarts without its memory has new clients; what a broker had only just
taken from its own client when it crashed nobody else knows of.
"""

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.chance import derive
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Clock, Command, Effect, Effects, Node
from planaria.core.overlay import Channel, Start, Violation
from planaria.filters.filters import matches
from planaria.protocols.content.broker import ContentBroker
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.dht.node import Leave
from planaria.protocols.registry import PRODUCTS
from planaria.protocols.routing.commands import DeliverTo, PublishContent
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.workload import random_attributes
from planaria.protocols.tree.host import TreeHost
from planaria.simulator.worlds.definitions import Client, DeliveryBook, Wish
from planaria.simulator.worlds.registry import Kind, Option

NOBODY = -1  # a neighbour that has no notification yet
SKEW_MAX = 10  # a clock further ahead than this is wrong, and does not move the books
PUBLISH_PERIOD_MIN = 4  # timeouts between two publications of one broker, and
PUBLISHED_EACH_INTERVAL = 2  # publications of all together, whichever is rarer


class Books:
    """What all brokers of a run published, wanted and got."""

    def __init__(self) -> None:
        self.now = 0
        self.deliveries = DeliveryBook()
        self.delivered_before = 0  # to clients of brokers that restarted
        self.lives: dict[NodeId, int] = {}
        self.published_in: dict[bytes, int] = {}  # which life of its broker
        self.left: list[NodeId] = []
        self.arrived: dict[bytes, None] = {}  # publications that all who wanted them were given
        self.linked: dict[tuple[NodeId, int], int] = {}  # when each life of a broker last had links

    def begin(self, id: NodeId, clients: Mapping[int, Mapping[int, Any]]) -> None:
        """A broker starts, or starts again: its clients are new."""
        book = self.deliveries
        for known in [it for it in book.delivered if it[0] == id]:
            self.delivered_before += sum(book.delivered.pop(known).values())
        for client, wanted in clients.items():
            book.wishes[id, client] = [Wish(filter, self.now) for filter in wanted.values()]
        self.lives[id] = self.lives.get(id, 0) + 1

    def end(self, id: NodeId) -> None:
        """The clients of a broker that leaves want nothing any more."""
        self.left.append(id)
        for client, wishes in self.deliveries.wishes.items():
            if client[0] == id:
                for wish in wishes:
                    wish.until = self.now if wish.until is None else wish.until

    def clock(self, seconds: int) -> None:
        """A broker's clock ticks; the first right one to get there moves the books."""
        if self.now < seconds <= self.now + SKEW_MAX:
            self.now = seconds

    def publish(self, id: NodeId, command: PublishContent) -> None:
        """A client of broker `id` publishes."""
        self.published_in[command.payload] = self.lives[id]
        self.record(id, command)

    def record(self, id: NodeId, thing: object) -> None:
        """A publication or a delivery."""
        self.deliveries.record(self.now, "effect", id, None, thing)

    def undelivered(self, since: int, flight: Collection[bytes]) -> list[tuple[Client, bytes]]:
        """What was published from `since` on, is in flight no more, and some client that wanted it
        all the time was not given. Each publication that arrived everywhere is looked at once."""
        book = self.deliveries
        found = []
        for payload in [it for it in self.published_in if it not in self.arrived]:
            it = book.published[payload]
            if it.tick < since or payload in flight:
                continue
            missing = [
                (client, payload)
                for client, wishes in book.wishes.items()
                if payload not in book.delivered.get(client, {})
                and any(
                    wish.since < it.tick
                    and wish.until is None
                    and matches(wish.filter, it.attributes)
                    for wish in wishes
                )
            ]
            found += missing
            if not missing:
                self.arrived[payload] = None
        return found

    def forgotten(self, payload: bytes, present: Sequence[NodeId]) -> bool:
        """Did the publisher's broker end before anybody else was sure to have it?

        It is out when its broker has had a link for an interval since.
        """
        it, life = self.deliveries.published[payload], self.published_in[payload]
        ended = it.node not in present or it.node in self.left or life < self.lives[it.node]
        return ended and it.tick >= self.linked.get((it.node, life), 0)


class PublishingBroker(ContentBroker):
    """A broker with a client that publishes now and then."""

    __slots__ = ("books", "chance", "count", "period")

    reads_clock = True

    def __init__(
        self, id: NodeId, host: TreeHost, books: Books, chance: Random, overlay: ContentOverlay,
        rng: Random,
    ) -> None:  # fmt: skip
        super().__init__(id, host, overlay.timing, rng, **overlay.options)
        self.books, self.chance, self.count = books, chance, 0
        self.period = max(PUBLISH_PERIOD_MIN, overlay.members // PUBLISHED_EACH_INTERVAL)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """As any broker."""
        return self._booked(super().on_message(message, sender))

    def on_timeout(self) -> Effects:
        """As any broker; then the client may publish."""
        effects = [*super().on_timeout()]
        self.count += 1
        life = self.books.lives[self.id]
        if self.links:
            self.books.linked[self.id, life] = self.books.now
        if self.chance.randrange(self.period) == 0 and not self.host.dht.leaving:
            payload = f"{self.id}.{life}.{self.count}".encode()
            attributes = random_attributes(self.chance)
            self.books.publish(self.id, PublishContent(attributes, payload))
            effects += self.publish(attributes, payload)
        return self._booked(effects)

    def on_command(self, command: Command) -> Effects:
        """As any broker; the clock moves the books."""
        if isinstance(command, Clock):
            self.books.clock(command.seconds)
        elif isinstance(command, Leave):
            self.books.end(self.id)
        elif isinstance(command, PublishContent):
            self.books.publish(self.id, command)
        return self._booked(super().on_command(command))

    def _booked(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        for effect in effects:
            if isinstance(effect, DeliverTo):
                self.books.record(self.id, effect)
        return effects


class ContentWorld(ContentOverlay):
    """Subscriptions by content while brokers join, crash and heal: who got what, who missed what.

    `brokers` says how many there are; without it `--n` does.
    """

    def __init__(
        self, brokers: int = 0, subscriptions: int = 100, strategy: str = "covering",
        hierarchical: bool = False, rho: int = 4,
    ) -> None:  # fmt: skip
        super().__init__(brokers, subscriptions, strategy, hierarchical, rho)
        self.books = Books()
        self.settled: int | None = None
        self.wrong_at = 0  # when it was last not legitimate
        self.owed: int | None = None  # from when on it has been legitimate without a break
        self.flying: dict[bytes, None] = {}  # payloads in flight when it was judged last

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """New books for a new run; a legitimate start owes its clients everything from then on."""
        self.books = Books()
        self.settled, self.wrong_at, self.owed = None, 0, None
        found = super().start(name, n, rng, protocol)
        self.settled = 0 if name == "legitimate" else None
        return found

    def make(self, id: NodeId, rng: Random) -> ContentBroker:
        """A broker with a publishing client."""
        host = TreeHost(id, self.space, self.tree, self.contacts)
        life = self.books.lives.get(id, 0)
        chance = Random(derive(self.seed, "publications", id, life))
        return PublishingBroker(id, host, self.books, chance, self, rng)

    def spawn(self, id: NodeId, rng: Random) -> ContentBroker:
        """A newcomer, of whom the books know."""
        broker = super().spawn(id, rng)
        self.books.begin(id, broker.clients)
        return broker

    def violations(self, nodes: Mapping[NodeId, Node], channel: Channel) -> list[Violation]:
        """Besides, no broker may remember what nobody published: it could still be delivered.
        And since all was right, no client may have been given what it has, or does not want, and
        each must have been given what it wants once that is in flight no more.

        From the last moment that was not legitimate on, nothing may be missed; the books count
        whole intervals, so from the next one on.
        """
        flight = list(channel)
        self.flying = {it.payload: None for _, it in flight if isinstance(it, Notify)}
        found = super().violations(nodes, flight)
        found = found or self._unpublished(nodes, flight) or self._breaches()
        self.owed = None if found else (self.owed or self.books.now + 1)
        found = found or self._missed(nodes)
        if found:
            self.wrong_at = self.books.now
        if self.settled != 0:
            self.settled = None if found else (self.settled or self.books.now + 1)
        return found

    def _unpublished(self, nodes: Mapping[NodeId, Node], channel: Channel) -> list[Violation]:
        known = self.books.deliveries.published
        found = []
        for id, node in nodes.items():
            if isinstance(node, ContentBroker):
                kept = node.memory.replayed(NOBODY, known)
                found += [Violation("memory", id, f"{it} was never published") for it in kept]
        for target, message in channel:
            if isinstance(message, Notify) and message.payload not in known and target in nodes:
                found.append(Violation("channel", target, f"{message} was never published"))
        return found

    def _missed(self, nodes: Mapping[NodeId, Node]) -> list[Violation]:
        """What the network, legitimate since before it was published, did not deliver."""
        if self.owed is None:
            return []
        return [
            Violation("missed", client[0], f"client {client[1]} was not given {payload!r}")
            for client, payload in self.books.undelivered(self.owed, self.flying)
            if client[0] in nodes
        ]

    def _breaches(self) -> list[Violation]:
        """Breaches of Definition 1 since the network was last not legitimate."""
        book = self.books.deliveries
        kinds = {"duplicated": book.duplicated, "unwanted": book.unwanted}
        kinds["unpublished"] = book.unpublished
        return [
            Violation(kind, client[0], f"client {client[1]} was given {payload!r}")
            for kind, found in kinds.items()
            for tick, client, payload in found
            if tick > self.wrong_at
        ]

    def metrics(self, nodes: Mapping[NodeId, Node]) -> dict[str, Any]:
        """The figures of the overlay, and what the books say."""
        book, since = self.books.deliveries, self.settled
        book.gone = {id: 0 for id, _ in book.wishes if id not in nodes}
        since = self.books.now if since is None else since
        due = book.missed(since, self.reach, self.books.now)
        missed = [it for it in due if it[1] not in self.flying]  # slow links are slow, no more
        present = list(nodes)
        return {
            **super().metrics(nodes),
            "published": len(book.published),
            "delivered": book.deliveries + self.books.delivered_before,
            "settled_at": since,
            "due": self._due(since),
            "missed": len([it for it in missed if not self.books.forgotten(it[1], present)]),
            "duplicated": len([it for it in book.duplicated if it[0] >= since]),
            "unwanted": len([it for it in [*book.unwanted, *book.unpublished] if it[0] >= since]),
        }

    def _due(self, since: int) -> int:
        """How many publications the count of missed ones judges."""
        last = self.books.now - self.reach
        return sum(since <= it.tick <= last for it in self.books.deliveries.published.values())


CONTENT = Kind(
    make=ContentWorld,
    options=(
        Option("brokers", 0, "How many brokers; 0 stands for --n."),
        Option("subscriptions", 100, "How many in all, random conjunctions."),
        *PRODUCTS["content"].options,
    ),
)
