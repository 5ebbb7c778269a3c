"""The book of a run: what was published, to whom it was due, and who was given what.

It is told commands and effects with the driver's time, in intervals, never a node's clock, and
knows publications by the id in `Published`. A driver calls `command` and then, for each effect of
the answer, `effect`. Watching changes nothing, and asking the book changes nothing either.
"""

from collections.abc import Callable, Iterator
from math import inf

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.node import (
    Command,
    Deliver,
    Effect,
    Joined,
    Leave,
    Publish,
    Published,
    Subscribe,
    Unsubscribe,
)
from planaria.core.overlay import Violation

Client = tuple[NodeId, int, int]  # a node, which of its clients, and which since it forgot
MISSED = "missed"  # the invariant that fails when something due was not delivered

Wants = Callable[[Subscribe, Publish], bool]


class Publication(Struct):
    """A publication: when, by whom, what; nobody is owed it if it is `excused`."""

    id: bytes
    time: float
    node: NodeId
    command: Publish
    excused: bool = False


class Subscription(Struct):
    """A subscription while it lasted, in force from `since` on."""

    command: Subscribe
    since: float
    until: float = inf
    stopped: bool = False  # it ended because its node did: it goes on if the node comes back


class Breach(Struct, frozen=True):
    """A delivery that should not have been: `twice`, `unwanted` or `never published`."""

    kind: str
    time: float
    client: Client
    id: bytes


class Due(Struct, frozen=True):
    """What was to be delivered to whom, by when."""

    publication: Publication
    client: Client
    deadline: float


class Summary(Struct, frozen=True):
    """The book in numbers: pairs of a publication and a client, except `published`.

    `due` are those whose time has come; each was delivered `once` in time, `late`, or `missed`.
    """

    published: int
    delivered: int
    due: int
    once: int
    late: int
    missed: int
    twice: int
    unwanted: int
    never_published: int


class Handed:
    """Which application was handed what, and when first."""

    def __init__(self) -> None:
        self._first: dict[Client, dict[bytes, float]] = {}
        self._lives: dict[NodeId, int] = {}

    def client(self, node: NodeId, number: int) -> Client:
        """The local client `number` that `node` has now."""
        return node, number, self._lives.get(node, 0)

    def renew(self, node: NodeId) -> None:
        """Give `node` new applications: what the old ones were handed they do not know."""
        self._lives[node] = self._lives.get(node, 0) + 1

    def note(self, time: float, client: Client, id: bytes) -> bool:
        """Enter a delivery; False if this client had it."""
        known = self._first.setdefault(client, {})
        if id in known:
            return False
        known[id] = time
        return True

    def when(self, client: Client, id: bytes) -> float | None:
        """When this client was given it first; None if it was not."""
        return self._first.get(client, {}).get(id)


class Book:
    """Keeps the book of one run.

    `wants` says whether a subscription selects a publication. A subscription is in force `within`
    intervals after it was asked for, or when `Joined` says so; a publication has `within` intervals
    to arrive. With `history` who subscribes later is owed it too; without, only who was subscribed
    for so long before and after. `own`: applications at the publisher's node are owed it as well.
    """

    def __init__(
        self, wants: Wants, *, within: float, history: bool = False, own: bool = True
    ) -> None:
        self.wants, self.within, self.history, self.own = wants, within, history, own
        self.published: dict[bytes, Publication] = {}
        self.subscriptions: dict[Client, list[Subscription]] = {}
        self.handed = Handed()
        self.breaches: list[Breach] = []
        self.delivered = 0
        self.judged_since: float = -inf  # what was before is nobody's fault
        self._asked: dict[NodeId, tuple[float, Publish]] = {}
        self._clients: dict[NodeId, list[Client]] = {}  # those in `subscriptions`, by node
        self._begun = 0  # subscriptions so far
        self._arrived: dict[bytes, int] = {}  # everywhere, when so many subscriptions had begun

    # What a driver reports

    def start(self, time: float, node: NodeId) -> None:
        """A node begins, or comes back: its applications still want what they wanted."""
        for client, wishes in self._at(node):
            again = [it.command for it in wishes if it.stopped]
            for one in wishes:
                one.stopped = False
            for command in again:
                self._subscribe(time, client, command)

    def stop(self, time: float, node: NodeId) -> None:
        """A node is gone, and its applications with it."""
        self._asked.pop(node, None)
        for _, wishes in self._at(node):
            for one in wishes:
                if one.until == inf:
                    one.until, one.stopped = time, True

    def forget(self, time: float, node: NodeId) -> None:
        """The applications at `node` are new ones: what the old ones had is unknown to them.

        If the node lives they want the same, from now on; if not, nothing.
        """
        before = self._at(node)
        self.handed.renew(node)
        for (_, number, _), wishes in before:
            current = [it.command for it in wishes if it.until == inf]
            self._end(time, wishes)
            for command in current:
                self._subscribe(time, self.handed.client(node, number), command)

    def command(self, time: float, node: NodeId, command: Command) -> None:
        """An application asks its node for something, and was not refused."""
        self._asked.pop(node, None)
        if isinstance(command, Publish):
            self._asked[node] = (time, command)
        elif isinstance(command, Subscribe):
            self._subscribe(time, self.handed.client(node, command.client), command)
        elif isinstance(command, Unsubscribe):
            what = command.pattern, command.where
            wishes = self._wishes(node, command.client)
            self._end(time, [it for it in wishes if (it.command.pattern, it.command.where) == what])
        elif isinstance(command, Leave):
            for _, wishes in self._at(node):
                self._end(time, wishes)

    def effect(self, time: float, node: NodeId, effect: Effect) -> None:
        """A node tells its application something."""
        if isinstance(effect, Published):
            asked, command = self._asked.pop(node, (time, Publish(effect.topic)))
            self.published[effect.id] = Publication(effect.id, asked, node, command)
        elif isinstance(effect, Joined):
            for one in self._wishes(node, effect.client):
                if one.command.pattern == effect.pattern and one.until == inf:
                    one.since = min(one.since, time)
        elif isinstance(effect, Deliver):
            client = self.handed.client(node, effect.client)
            for delivery in effect.publications:
                self._deliver(time, client, delivery.id)

    def subscribed(self, node: NodeId, command: Subscribe) -> None:
        """An application at `node` was subscribed before the run began."""
        self._subscribe(-inf, self.handed.client(node, command.client), command)

    def excuse(self, time: float) -> None:
        """Memory was overwritten: what only it held is lost, nobody is owed what was under way."""
        for publication in self.published.values():
            publication.excused |= publication.time <= time
        self.judged_since = max(self.judged_since, time)

    def illegitimate(self, time: float) -> None:
        """The network is not legitimate: until now anything may be delivered, or be lost.

        With a history what was published meanwhile is owed all the same.
        """
        self.judged_since = max(self.judged_since, time)

    # What people ask

    def due(self, time: float) -> Iterator[Due]:
        """Everything that was to be delivered by `time`."""
        for publication in self._owed(time):
            for it in self._dues(publication):
                if it.deadline <= time and not (publication.excused and self.when(it) is None):
                    yield it

    def missed(self, time: float) -> list[Due]:
        """What was due by `time` and was not delivered."""
        found: list[Due] = []
        for publication in self._owed(time):
            if publication.excused or self._arrived.get(publication.id) == self._begun:
                continue
            lacking = [it for it in self._dues(publication) if self.when(it) is None]
            if not lacking:
                self._arrived[publication.id] = self._begun
            found += [it for it in lacking if it.deadline <= time]
        return found

    def when(self, due: Due) -> float | None:
        """When it was delivered; None if it was not."""
        return self.handed.when(due.client, due.publication.id)

    def wrong(self) -> list[Breach]:
        """The deliveries that should not have been."""
        return [it for it in self.breaches if it.time > self.judged_since]

    def violations(self, time: float) -> list[Violation]:
        """What breaks the promise to the applications, as far as it is known at `time`."""
        found = [
            Violation("delivery", it.client[0], f"client {it.client[1]}: {it.id.hex()} {it.kind}")
            for it in self.wrong()
        ]
        for it in self.missed(time):
            publication, (node, client, _) = it.publication, it.client
            what = f"{publication.id.hex()} of interval {publication.time:g}"
            found.append(Violation(MISSED, node, f"client {client} was not given {what}"))
        return found

    def summary(self, time: float) -> Summary:
        """The book at `time`, in numbers."""
        given = [(it, self.when(it)) for it in self.due(time)]
        once = sum(when is not None and when <= it.deadline for it, when in given)
        missed = sum(when is None for _, when in given)
        kinds = [it.kind for it in self.wrong()]
        return Summary(
            published=len(self.published),
            delivered=self.delivered,
            due=len(given),
            once=once,
            late=len(given) - once - missed,
            missed=missed,
            twice=kinds.count("twice"),
            unwanted=kinds.count("unwanted"),
            never_published=kinds.count("never published"),
        )

    # Inside

    def _owed(self, time: float) -> Iterator[Publication]:
        """The publications that should have arrived by `time`."""
        for it in self.published.values():
            if it.time + self.within <= time and (self.history or it.time > self.judged_since):
                yield it

    def _dues(self, publication: Publication) -> Iterator[Due]:
        """To whom a publication is due, in the past or in the future."""
        for client in self.subscriptions:
            if self.own or client[0] != publication.node:
                deadline = self._deadline(publication, client)
                if deadline < inf:
                    yield Due(publication, client, deadline)

    def _deadline(self, publication: Publication, client: Client) -> float:
        """By when `client` must have it; infinity if it is not owed."""
        found = inf
        for one in self.subscriptions[client]:
            begin = max(publication.time, one.since if self.history else -inf)
            in_force = self.history or one.since <= publication.time
            deadline = begin + self.within
            if in_force and one.until > deadline and self.wants(one.command, publication.command):
                found = min(found, deadline)
        return found

    def _deliver(self, time: float, client: Client, id: bytes) -> None:
        self.delivered += 1
        publication = self.published.get(id)
        if not self.handed.note(time, client, id):
            self.breaches.append(Breach("twice", time, client, id))
        if publication is None:
            self.breaches.append(Breach("never published", time, client, id))
        elif not any(
            it.until == inf and self.wants(it.command, publication.command)
            for it in self.subscriptions.get(client, [])
        ):
            self.breaches.append(Breach("unwanted", time, client, id))

    def _subscribe(self, time: float, client: Client, command: Subscribe) -> None:
        if client not in self.subscriptions:
            self._clients.setdefault(client[0], []).append(client)
        wishes = self.subscriptions.setdefault(client, [])
        if not any(it.command == command and it.until == inf for it in wishes):
            self._begun += 1
            wishes.append(Subscription(command, time + self.within))

    def _end(self, time: float, wishes: list[Subscription]) -> None:
        for one in wishes:
            one.until, one.stopped = min(one.until, time), False

    def _wishes(self, node: NodeId, client: int) -> list[Subscription]:
        return self.subscriptions.get(self.handed.client(node, client), [])

    def _at(self, node: NodeId) -> list[tuple[Client, list[Subscription]]]:
        """The subscriptions of the present clients of `node`."""
        return [
            (it, self.subscriptions[it])
            for it in self._clients.get(node, ())
            if it == self.handed.client(node, it[1])
        ]
