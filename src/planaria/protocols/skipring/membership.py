"""One topic at one peer: its place in the ring, and the topic's history."""

from collections.abc import Callable
from typing import Any

from msgspec import field

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Joined, Send
from planaria.core.state import State, Stateful
from planaria.protocols.ring.messages import Check, Introduce, Remove
from planaria.protocols.skipring.batch_messages import Review, Reviewed, Settle
from planaria.protocols.skipring.batches import Consult, Consulted, question
from planaria.protocols.skipring.broadcast import View, view
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.skipring.deposit_messages import Deposit, Held, NotHeld
from planaria.protocols.skipring.deposits import STRANGER, Entrust, answer, answered
from planaria.protocols.skipring.former import Former, FormerState
from planaria.protocols.skipring.history import PUBLICATION_MESSAGES, History, HistoryState
from planaria.protocols.skipring.messages import (
    Greeting,
    IntroduceShortcut,
    Moved,
    Ref,
    RemoveConnections,
    SetData,
    Wake,
)
from planaria.protocols.skipring.rest import content, make_up, rest
from planaria.protocols.skipring.subscriber import Subscriber, SubscriberState
from planaria.records.record import TIME_MAX, Draft, record_key

CLOCKS_APART = 2  # seconds between those of two members


class MembershipState(State):
    """Place, history, whether the application waits to hear that it is a member, and whom it lost
    while the ring is rebuilt."""

    subscriber: SubscriberState
    history: HistoryState
    awaited: bool
    former: FormerState = field(default_factory=lambda: FormerState({}))


class Membership(Stateful):
    """One topic at one peer: its place in the ring, and what it holds and delivers."""

    __slots__ = ("_near", "_place", "_seen", "awaited", "former", "history", "subscriber")
    state_type = MembershipState

    def __init__(self, subscriber: Subscriber, history: History) -> None:
        self.subscriber, self.history = subscriber, history
        self.awaited = False
        self.former = Former(subscriber.id)
        self._place: tuple[object, ...] | None = None  # of which `_seen` is the view
        self._seen = View(None, subscriber.id, [])
        self._near: list[Ref] = []  # its neighbours, once more: each must fit the other

    def subscribe(self) -> list[Effect]:
        """The application wants this topic, and to be told when it is a member."""
        self.subscriber.leaving = False
        self.awaited = True
        self.subscriber.pace.rest = 0
        return [*self.subscriber.join()]

    def on_message(self, message: Message) -> list[Effect]:
        """Any message about this topic."""
        handler, pace = _HANDLERS.get(type(message)), self.subscriber.pace
        if pace.rested:
            self._make_up()
        effects = handler(self, message) if handler else []
        if pace.rest and (self._doubtful or not content(self.subscriber)):
            pace.rest = 0
        return effects + self._joined() if self.awaited else effects

    def on_timeout(self) -> list[Effect]:
        """The ring's timeout, with the history's digest on every message; then the history's.

        Of a calm topic the history's comes as often as its words: nothing in it is under way. Then
        the view is made anew as well, in case a fault changed how it divides arcs.
        """
        self._make_up()
        self.former.age()
        one, doubt = self.subscriber, self._doubtful
        effects: list[Effect] = [*one.on_timeout(self.history.digest, doubt=doubt)]
        if one.pace.spoke:
            self._place = None
            neighbours = [id for _, id in one.neighbours()]
            effects += self.history.on_timeout(neighbours)
            effects += self.history.finish(self._view())
        rest(one, doubt=self._doubtful)
        return effects + self._joined() if self.awaited else effects

    @property
    def _doubtful(self) -> bool:
        """Does somebody wait for this topic, is something of its history missing, or its ring
        being rebuilt?"""
        return self.awaited or self.history.unsettled or bool(self.former)

    def _make_up(self) -> None:
        """Let the intervals pass in which this topic rested."""
        self.former.age(make_up(self.subscriber))

    def publish(self, *drafts: Draft) -> list[Effect]:
        """Publish on this topic."""
        self.subscriber.pace.reset()
        return self.history.publish(self._view(), *drafts)

    def entrust(self, command: Entrust) -> list[Effect]:
        """Hold a record that this node's own application deposits here."""
        id, record = self.subscriber.id, command.record
        if not self.holds:
            return [answer(self.subscriber.topic, id, id, record.key, STRANGER)]
        self.subscriber.pace.reset()
        if command.stage:
            return self.history.stage(id, record)
        spread, durable = command.spread, command.durable
        return self.history.deposit(self._view(), id, record, spread=spread, durable=durable)

    def consult(self, command: Consult) -> list[Effect]:
        """Answer this node's own application what is here of a manifest."""
        id, key = self.subscriber.id, command.manifest.key
        if not self.holds:
            return [answer(self.subscriber.topic, id, id, key, STRANGER)]
        self.subscriber.pace.reset()
        return self.history.review(self._view(), id, question(command, id, id))

    @property
    def holds(self) -> bool:
        """Is what is held here a copy? Of a leaver, or of one that is not in yet, it is none."""
        return self.subscriber.member and not self.subscriber.leaving

    @property
    def calm(self) -> bool:
        """Is it in, and knows of nothing wrong?"""
        return self.holds and not self.subscriber.alarmed

    def on_link_down(self, peer: NodeId) -> list[Effect]:
        """A send to `peer` failed."""
        self._make_up()
        self.former.forget(peer)
        self.subscriber.pace.rest = 0
        effects = self.history.link_down(self._view(), peer)
        return [*effects, *self.subscriber.on_link_down(peer)]

    def on_link_up(self, peer: NodeId) -> list[Effect]:
        """The way to `peer` is open: it is not missing, and its link is empty.

        If it was full, the neighbour may be behind. One that an exchange left behind is shown what
        there is at once, in that topic alone: all topics of a link would fill it again.
        """
        self._make_up()
        one = self.subscriber
        one.on_link_up(peer)
        if not self.history.broadcast.ready(peer):
            return []
        one.pace.reset()
        if one.label is None or peer not in self.history.antientropy.peers:
            return []
        me, digest = (one.label, one.id), self.history.digest()
        if self.history.antientropy.crossing.pop(peer, None) is not None:  # it lets a digest go
            return self.history.antientropy.begin(peer, digest.lo, digest.cut)
        beside = [ref for ref in dict.fromkeys(one.ring) if ref[1] == peer]
        return [Send(peer, Greeting(one.topic, me, ref[0], digest)) for ref in beside]

    def _joined(self) -> list[Effect]:
        """Tell the application once that it is a member and knows of nothing wrong."""
        if not self.calm:
            return []
        self.awaited = False
        return [Joined(self.subscriber.topic)]

    def _on_place(self, message: Message) -> list[Effect]:
        """Whatever concerns the place alone."""
        return [*self.subscriber.on_message(message)]

    def _on_set_data(self, message: SetData) -> list[Effect]:
        """A supervisor's word: whom one that rebuilds the ring takes from me is flooded on.

        Those that I miss are not: they may well be why it is rebuilt.
        """
        one = self.subscriber
        one.repair()
        new = not one.member
        before = [id for _, id in one.neighbours() if id not in one.missing]
        effects = self._on_place(message)
        if new and one.ring:
            effects += self._catch_up(one.ring[0][1])
        if message.spread:
            kept = [id for _, id in one.neighbours()]
            self.former.lose(id for id in before if id not in kept)
        return effects

    def _catch_up(self, neighbour: NodeId) -> list[Effect]:
        """Ask for what was published before I came; digests would tell an interval later.

        Nothing is on its way to me, so all is compared, but not what my neighbour is about to drop.
        """
        lo = self.history.holdings.window.lo
        lo = max(0, min(lo + CLOCKS_APART, TIME_MAX)) if lo else 0
        return self.history.antientropy.begin(neighbour, lo, TIME_MAX)

    def _on_greeting(self, message: Greeting | IntroduceShortcut) -> list[Effect]:
        """A neighbour speaks, and shows what it holds."""
        effects = self._on_place(message)
        one = self.subscriber
        if message.digest is not None and one.member and not one.leaving:
            effects += self.history.on_digest(message.sender[1], message.digest, message.promise)
        return effects

    def _on_publication(self, message: Message) -> list[Effect]:
        """Whatever concerns publications alone."""
        self.subscriber.pace.reset()
        return self.history.on_message(self._view(), message)

    def _on_broadcast(self, message: Arc | Flood) -> list[Effect]:
        """A record on its way; so many come that they are not looked up a second time."""
        self.subscriber.pace.reset()
        return self.history.on_broadcast(self._view(), message)

    def _on_deposit(self, message: Deposit) -> list[Effect]:
        """Somebody publishes for others."""
        if self.holds:
            return self._on_publication(message)
        one, key = self.subscriber, record_key(message.record)
        return [answer(one.topic, one.id, message.sender, key, STRANGER)]

    def _on_review(self, message: Review | Settle) -> list[Effect]:
        """Somebody commits a batch."""
        if self.holds:
            return self._on_publication(message)
        one, key = self.subscriber, record_key(message.manifest)
        return [answer(one.topic, one.id, message.sender, key, STRANGER)]

    def _on_reviewed(self, message: Reviewed) -> list[Effect]:
        """A member answers what it has of a manifest."""
        return [Consulted(message)]

    def _on_answer(self, message: Held | NotHeld) -> list[Effect]:
        """A member answers a deposit of mine."""
        return [answered(message)]

    def _on_nack(self, message: Nack) -> list[Effect]:
        """A share was refused: where its receiver is may be wrong as well."""
        self.subscriber.doubt(message.sender, message.label)
        return self._on_publication(message)

    def _view(self) -> View:
        """The view from my place, made anew when either has changed."""
        one, seen, place = self.subscriber, self._seen, self._here()
        if (
            place != self._place
            or seen.label != one.label
            or seen.id != one.id
            or seen.doubt != place[0]
            or seen.neighbours != self._near
        ):
            one.repair()
            self.former.repair()
            # In doubt everything is flooded, and no label is read: former neighbours need none.
            beside = (*one.neighbours(), *((0, id) for id in self.former.left))
            self._seen = view(one.label, one.id, beside, one.alarmed or bool(self.former))
            self._near = [*self._seen.neighbours]
            self.note_place()
        return self._seen

    def note_place(self) -> None:
        """The view is of this place from now on."""
        # A copy of the shortcuts, last in it: they are changed in place.
        self._place = (*self._here()[:-1], {**self.subscriber.shortcuts})

    def _here(self) -> tuple[object, ...]:
        one, former = self.subscriber, self.former.left
        doubt = one.alarmed or bool(former)
        return (doubt, one.id, one.label, one.pred, one.succ, (*former,), one.shortcuts)


_HANDLERS: dict[type[Message], Callable[[Membership, Any], list[Effect]]] = {
    **dict.fromkeys(PUBLICATION_MESSAGES, Membership._on_publication),
    **dict.fromkeys((Arc, Flood), Membership._on_broadcast),
    **dict.fromkeys(
        (Moved, Wake, RemoveConnections, Check, Introduce, Remove), Membership._on_place
    ),
    SetData: Membership._on_set_data,
    Greeting: Membership._on_greeting,
    IntroduceShortcut: Membership._on_greeting,
    Nack: Membership._on_nack,
    Deposit: Membership._on_deposit,
    Review: Membership._on_review,
    Settle: Membership._on_review,
    Reviewed: Membership._on_reviewed,
    Held: Membership._on_answer,
    NotHeld: Membership._on_answer,
}
