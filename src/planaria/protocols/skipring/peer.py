"""A peer process: for every topic it wants, a place in the topic's ring and the topic's history."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Busy,
    Clock,
    Command,
    Effect,
    Effects,
    Leave,
    LinkDown,
    LinkUp,
    Node,
    Publish,
    PublishMany,
    Ready,
    Send,
    Subscribe,
    Supervisors,
)
from planaria.core.node import Unsubscribe as StopSubscribing
from planaria.core.state import State
from planaria.core.topics import check_filter, check_topic, has_wildcard
from planaria.protocols.publications.admission import Admission, every_record
from planaria.protocols.publications.deliveries import MILLISECOND
from planaria.protocols.publications.retention import Retention, WallClock
from planaria.protocols.ring.messages import RingMessage
from planaria.protocols.skipring.batch_messages import Review, Reviewed, Settle
from planaria.protocols.skipring.batches import Consult, Consulted, question
from planaria.protocols.skipring.deposit_messages import Deposit, Held, NotHeld
from planaria.protocols.skipring.deposits import STRANGER, Entrust, answer, answered, deposit
from planaria.protocols.skipring.history import History
from planaria.protocols.skipring.membership import Membership, MembershipState
from planaria.protocols.skipring.messages import (
    Greeting,
    IntroduceShortcut,
    RemoveConnections,
    SetData,
    Unsubscribe,
    speaker,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.subscriber import Subscriber
from planaria.records.memory import MemoryStore
from planaria.records.record import Draft, record_key
from planaria.records.store import Store

TOPICS_MAX = 1 << 14  # rings one process takes part in: about four messages whenever one speaks
FOREVER = Retention()


class PeerState(State):
    """All topics that a peer takes part in, and the clock as it was last read."""

    topics: dict[str, MembershipState]
    seconds: int | None = None


class Peer(Node):
    """Takes part in the ring of every topic it subscribes to.

    `retention` says what each topic keeps; all subscribers of a topic must say the same. `store`
    opens the store of a topic, `admission` says which of its records count. `secret` keys the
    order of supervisors. A calm topic speaks every `pace_max` intervals.
    """

    __slots__ = (
        "_rng", "admission", "clock", "pace_max", "retention", "secret", "store", "supervisors",
        "topics",
    )  # fmt: skip
    state_type = PeerState
    reads_clock = True

    def __init__(
        self,
        id: NodeId,
        supervisors: Sequence[NodeId],
        rng: Random,
        retention: Mapping[str, Retention] | None = None,
        store: Callable[[str], Store] = lambda _: MemoryStore(),
        secret: bytes = b"",
        pace_max: int = 1,
        admission: Callable[[str], Admission] = every_record,
    ) -> None:
        super().__init__(id)
        self.supervisors = tuple(supervisors)
        self.secret = secret
        self.retention = dict(retention or {})
        self.topics: dict[str, Membership] = {}
        self.clock = WallClock()
        self._rng = rng
        self.store = store
        self.pace_max, self.admission = pace_max, admission

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Hand a message to the topic it is about; decline if I am not in that ring.

        Only who vouches for a message is heard, and nobody in another's name.
        """
        if sender is None:
            return ()
        if getattr(message, "sender", None) != sender and speaker(message) not in (None, sender):
            return ()
        topic = getattr(message, "group" if isinstance(message, RingMessage) else "topic", None)
        membership = None if topic is None else self.topics.get(topic)
        return self._decline(message) if membership is None else membership.on_message(message)

    def on_timeout(self) -> Effects:
        """Every topic's timeout, but of those that rest; a ring that let me go is forgotten."""
        effects: list[Effect] = []
        for topic, membership in list(self.topics.items()):
            if membership.subscriber.pace.rests():
                continue
            effects += membership.on_timeout()
            if membership.subscriber.leaving and not membership.subscriber.member:
                del self.topics[topic]
        return effects

    def on_command(self, command: Command) -> Effects:
        """The application asks, or the driver reports its clock or a link."""
        handler = _COMMANDS.get(type(command))
        return handler(self, command) if handler else ()

    def retain(self, topic: str, retention: Retention) -> Effects:
        """Keep another amount of a topic from now on; its other subscribers must do the same.

        What waits for its turn and is about to be hidden is handed out before.
        """
        self.retention[topic] = retention
        return self.topics[topic].history.retain(retention) if topic in self.topics else ()

    def state(self) -> PeerState:
        """The state of every topic."""
        topics: dict[str, Any] = {topic: one.state() for topic, one in self.topics.items()}
        return PeerState(topics, self.clock.seconds)

    def restore(self, data: bytes) -> Effects:
        """Take a stored state; a process that begins anew numbers in new incarnations."""
        effects = super().restore(data)
        self.restart()
        return effects

    def restart(self) -> None:
        """Number in a new incarnation from now on, in every topic."""
        for membership in self.topics.values():
            membership.history.publisher.restart()

    def load(self, state: State) -> None:
        """Be in the rings of a state, in whatever state; a name that is no topic is skipped."""
        assert isinstance(state, PeerState)
        self.topics, self.clock.seconds = {}, state.seconds
        for topic, its in state.topics.items():
            try:
                self._join(topic, ordered=False).load(its)
            except (UsageError, CapacityExceeded):
                continue

    def _join(self, topic: str, *, ordered: bool) -> Membership:
        if topic not in self.topics:
            check_topic(topic)
            if len(self.topics) >= TOPICS_MAX:
                raise CapacityExceeded(f"{TOPICS_MAX} topics at one peer: leave one first")
            order = preference(topic, self.supervisors, self.secret)
            self.topics[topic] = Membership(
                Subscriber(topic, self.id, order, self._rng, self.pace_max),
                self._history(topic, ordered=ordered),
            )
            if self.clock.seconds is not None:  # it may be in before the clock is read again
                self.topics[topic].history.read_clock(self.clock.seconds)
        return self.topics[topic]

    def _history(self, topic: str, *, ordered: bool) -> History:
        retention, admission = self.retention.get(topic, FOREVER), self.admission(topic)
        what = (topic, self.id, self._rng, retention, self.store(topic))
        history = History(*what, ordered=ordered, admission=admission)
        history.horizon.clock = self.clock
        return history

    def _know_supervisors(self, command: Supervisors) -> Effects:
        """Other supervisors than before: every topic has its own order of them."""
        self.supervisors = tuple(dict.fromkeys(command.ids))
        for topic, membership in self.topics.items():
            membership.subscriber.prefer(preference(topic, self.supervisors, self.secret))
        return ()

    def _subscribe(self, command: Subscribe) -> Effects:
        """Join the ring of one topic; `Joined` follows when it has let me in."""
        pattern = command.pattern
        if has_wildcard(check_filter(pattern)):
            raise UsageError(f"ring has no wildcards ({pattern!r}): name each topic, or use gossip")
        if command.where is not None:
            raise UsageError("ring has no conditions (`where`): choose on delivery, or use content")
        if command.client:
            raise UsageError(
                "ring serves one client for each peer: share its deliveries among them"
            )
        return self._join(pattern, ordered=command.ordered).subscribe()

    def _unsubscribe(self, command: StopSubscribing) -> Effects:
        """Leave the ring of one topic."""
        found = self.topics.get(command.pattern)
        return found.subscriber.leave() if found else ()

    def _leave(self, command: Leave) -> Effects:
        """Leave all rings."""
        return [send for one in self.topics.values() for send in one.subscriber.leave()]

    def _publish(self, command: Publish) -> Effects:
        """Publish on a topic I am subscribed to."""
        return self._subscribed(command.topic).publish(_draft(command))

    def _publish_many(self, command: PublishMany) -> Effects:
        """Publish several at once on a topic I am subscribed to."""
        membership = self._subscribed(command.topic)
        drafts = _drafts(command.publications)
        return membership.publish(*drafts) if drafts else ()

    def _subscribed(self, topic: str) -> Membership:
        membership = self.topics.get(topic)
        if membership is None or membership.subscriber.leaving:
            raise UsageError(f"subscribe to {topic!r} before publishing on it")
        return membership

    def _entrust(self, command: Entrust) -> Effects:
        """Deposit a record at members of its topic, which do not wait for the disk of this one."""
        effects: list[Effect] = []
        if self.id in command.members:
            membership = self.topics.get(command.topic)
            key = command.record.key
            effects += (
                [answer(command.topic, self.id, self.id, key, STRANGER)]
                if membership is None
                else membership.entrust(command)
            )
        others = [member for member in command.members if member != self.id]
        return [*(deposit(command, self.id, member) for member in others), *effects]

    def _consult(self, command: Consult) -> Effects:
        """Ask members of a topic what they have of a manifest, this node itself first."""
        effects: list[Effect] = []
        if self.id in command.members:
            membership, key = self.topics.get(command.topic), command.manifest.key
            effects += (
                [answer(command.topic, self.id, self.id, key, STRANGER)]
                if membership is None
                else membership.consult(command)
            )
        others = [member for member in command.members if member != self.id]
        return [*(Send(it, question(command, self.id, it)) for it in others), *effects]

    def _read_clock(self, command: Clock) -> Effects:
        """The time for every topic; one that rests reads it when it is looked at, if nobody moved
        the clock meanwhile."""
        topics, seconds = self.topics.values(), command.seconds
        if self.clock.moved(seconds):
            awake = [*topics]
        else:
            awake = [one for one in topics if not one.subscriber.pace.resting]
        for one in awake:
            one.history.horizon.catch_up()
        self.clock.seconds = seconds
        found = [one.history.read_clock(seconds) for one in awake]
        return [effect for effects in found for effect in effects]

    def _link_down(self, command: LinkDown) -> Effects:
        """A neighbour, or a supervisor, may be gone."""
        found = [one.on_link_down(command.peer) for one in self.topics.values()]
        return [effect for effects in found for effect in effects]

    def _link_up(self, command: LinkUp | Ready) -> Effects:
        """A neighbour can be sent to again; what it lacks it gets by anti-entropy."""
        found = [one.on_link_up(command.peer) for one in self.topics.values()]
        return [effect for effects in found for effect in effects]

    def _link_full(self, command: Busy) -> Effects:
        """A neighbour's share of broadcasts goes to others meanwhile."""
        for membership in self.topics.values():
            membership.history.broadcast.link_full(command.peer)
        return ()

    def _decline(self, message: Message) -> Effects:
        """I am not in that ring: say so to whoever believes it."""
        if isinstance(message, Greeting | IntroduceShortcut):
            return [Send(message.sender[1], RemoveConnections(message.topic, self.id))]
        if isinstance(message, SetData) and message.label is not None:
            return [Send(message.supervisor, Unsubscribe(message.topic, self.id))]
        if isinstance(message, Deposit):
            key = record_key(message.record)
            return [answer(message.topic, self.id, message.sender, key, STRANGER)]
        if isinstance(message, Review | Settle):
            key = record_key(message.manifest)
            return [answer(message.topic, self.id, message.sender, key, STRANGER)]
        if isinstance(message, Held | NotHeld):
            return [answered(message)]
        if isinstance(message, Reviewed):
            return [Consulted(message)]
        return ()


def _draft(command: Publish) -> Draft:
    """What to publish, as records hold it."""
    if command.attributes:
        raise UsageError("ring has no conditions: put attributes into headers, or use content")
    headers, timestamp = command.headers, command.timestamp
    if not headers and timestamp is None:
        return Draft(command.payload, command.key)
    return Draft(
        command.payload,
        command.key,
        tuple((name, value.encode()) for name, value in headers.items()) if headers else (),
        None if timestamp is None else timestamp * MILLISECOND,
    )


def _drafts(commands: Sequence[Publish]) -> list[Draft]:
    """The same of many: of payloads and keys alone, as nearly always, past the calls that the
    constructor of a named tuple takes, which are half of the time.
    """
    new = tuple.__new__
    return [
        new(Draft, (it.payload, it.key, (), None))
        if it.timestamp is None and not it.headers and not it.attributes
        else _draft(it)
        for it in commands
    ]


_COMMANDS: dict[type[Command], Callable[[Peer, Any], Effects]] = {
    Subscribe: Peer._subscribe,
    StopSubscribing: Peer._unsubscribe,
    Leave: Peer._leave,
    Publish: Peer._publish,
    Entrust: Peer._entrust,
    Consult: Peer._consult,
    PublishMany: Peer._publish_many,
    Clock: Peer._read_clock,
    LinkDown: Peer._link_down,
    LinkUp: Peer._link_up,
    Supervisors: Peer._know_supervisors,
    Busy: Peer._link_full,
    Ready: Peer._link_up,
}
