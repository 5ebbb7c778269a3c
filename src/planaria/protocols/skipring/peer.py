"""A peer process: for every topic it wants, a place in the topic's ring and the topic's history."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Clock,
    Command,
    Effect,
    Effects,
    LinkDown,
    Node,
    Publish,
    Send,
    Stateful,
    Subscribe,
)
from planaria.core.node import Unsubscribe as Leave
from planaria.core.topics import check_topic
from planaria.protocols.publications.retention import Retention
from planaria.protocols.ring.messages import RingMessage
from planaria.protocols.skipring.broadcast import View, view
from planaria.protocols.skipring.broadcast_messages import Nack
from planaria.protocols.skipring.history import History, PublicationMessage
from planaria.protocols.skipring.messages import (
    Check,
    IntroduceShortcut,
    Moved,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.subscriber import Subscriber

TOPICS_MAX = 1 << 12  # rings one process takes part in: each costs about four messages an interval
FOREVER = Retention()


class Membership(Stateful):
    """One topic at one peer: its place in the ring, and what it holds and delivers."""

    __slots__ = ("history", "subscriber")

    def __init__(self, subscriber: Subscriber, history: History) -> None:
        self.subscriber, self.history = subscriber, history

    def on_message(self, message: Message) -> list[Effect]:
        """Any message about this topic."""
        subscriber = self.subscriber
        if isinstance(message, Check | IntroduceShortcut):
            return self._greeted(message)
        if isinstance(message, SetData):
            return [*subscriber.on_set_data(message)]
        if isinstance(message, Wake):
            return [*subscriber.on_wake(message)]
        if isinstance(message, PublicationMessage):
            if isinstance(message, Nack):
                subscriber.doubt(message.sender, message.label)
            return self.history.on_message(self._view(), message)
        if isinstance(message, RemoveConnections):
            return [*subscriber.on_remove_connections(message)]
        if isinstance(message, Moved):
            return [*subscriber.on_moved(message)]
        if isinstance(message, RingMessage):
            return [*subscriber.on_ring_message(message)]
        return []

    def on_timeout(self) -> list[Effect]:
        """The ring's timeout, with the history's digest on every message; then the history's."""
        effects: list[Effect] = [*self.subscriber.on_timeout(self.history.digest())]
        neighbours = [id for _, id in self.subscriber.neighbours()]
        return effects + self.history.on_timeout(neighbours)

    def publish(self, payload: bytes) -> list[Effect]:
        """Publish on this topic."""
        return self.history.publish(self._view(), payload)

    def on_link_down(self, peer: NodeId) -> list[Effect]:
        """A send to `peer` failed."""
        effects = self.history.link_down(self._view(), peer)
        return [*effects, *self.subscriber.on_link_down(peer)]

    def snapshot(self) -> dict[str, Any]:
        """Place and history."""
        return {
            "subscriber": self.subscriber.snapshot(),
            "history": self.history.snapshot(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take any stored state."""
        self.subscriber.restore(snapshot.get("subscriber", {}))
        self.history.restore(snapshot.get("history", {}))

    def _greeted(self, message: Check | IntroduceShortcut) -> list[Effect]:
        subscriber = self.subscriber
        effects: list[Effect]
        if isinstance(message, Check):
            effects = [*subscriber.on_check(message)]
        else:
            effects = [*subscriber.on_introduce_shortcut(message)]
        if message.digest is not None and subscriber.member and not subscriber.leaving:
            effects += self.history.on_digest(message.sender[1], message.digest)
        return effects

    def _view(self) -> View:
        one = self.subscriber
        one.repair()
        return view(one.label, one.id, one.neighbours(), one.alarmed)


class Peer(Node):
    """Takes part in the ring of every topic it subscribes to.

    `retention` says what each topic keeps; all subscribers of a topic must say the same.
    """

    __slots__ = ("_rng", "retention", "supervisors", "topics")
    reads_clock = True

    def __init__(
        self,
        id: NodeId,
        supervisors: Sequence[NodeId],
        rng: Random,
        retention: Mapping[str, Retention] | None = None,
    ) -> None:
        super().__init__(id)
        self.supervisors = tuple(supervisors)
        self.retention = dict(retention or {})
        self.topics: dict[str, Membership] = {}
        self._rng = rng

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Hand a message to the topic it is about; decline if I am not in that ring."""
        topic = getattr(message, "group" if isinstance(message, RingMessage) else "topic", None)
        membership = None if topic is None else self.topics.get(topic)
        return self._decline(message) if membership is None else membership.on_message(message)

    def on_timeout(self) -> Effects:
        """Every topic's timeout; a ring that let me go is forgotten."""
        effects: list[Effect] = []
        for topic, membership in list(self.topics.items()):
            effects += membership.on_timeout()
            if membership.subscriber.leaving and not membership.subscriber.member:
                del self.topics[topic]
        return effects

    def on_command(self, command: Command) -> Effects:
        """Subscribe, unsubscribe, publish; or the driver reports its clock or a lost peer."""
        if isinstance(command, Clock):
            for membership in self.topics.values():
                membership.history.read_clock(command.seconds)
        elif isinstance(command, Subscribe):
            self._join(command.pattern, ordered=command.ordered).subscriber.leaving = False
        elif isinstance(command, Leave):
            if command.pattern in self.topics:
                return self.topics[command.pattern].subscriber.leave()
        elif isinstance(command, Publish):
            return self._publish(command)
        elif isinstance(command, LinkDown):
            found = [one.on_link_down(command.peer) for one in self.topics.values()]
            return [effect for effects in found for effect in effects]
        return ()

    def retain(self, topic: str, retention: Retention) -> None:
        """Keep another amount of a topic from now on; its other subscribers must do the same."""
        self.retention[topic] = retention
        if topic in self.topics:
            self.topics[topic].history.retain(retention)

    def snapshot(self) -> dict[str, Any]:
        """The state of every topic."""
        return {topic: membership.snapshot() for topic, membership in self.topics.items()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Be in the rings of a stored state, in whatever state."""
        self.topics = {}
        for topic, state in snapshot.items():
            self._join(topic, ordered=False).restore(state)

    def _join(self, topic: str, *, ordered: bool) -> Membership:
        if topic not in self.topics:
            check_topic(topic)
            if len(self.topics) >= TOPICS_MAX:
                raise CapacityExceeded(f"{TOPICS_MAX} topics at one peer: leave one first")
            retention = self.retention.get(topic, FOREVER)
            self.topics[topic] = Membership(
                Subscriber(topic, self.id, preference(topic, self.supervisors), self._rng),
                History(topic, self.id, self._rng, retention, ordered=ordered),
            )
        return self.topics[topic]

    def _publish(self, command: Publish) -> Effects:
        membership = self.topics.get(command.topic)
        if membership is None or membership.subscriber.leaving:
            raise UsageError(f"subscribe to {command.topic!r} before publishing on it")
        return membership.publish(command.payload)

    def _decline(self, message: Message) -> Effects:
        """I am not in that ring: say so to whoever believes it."""
        if isinstance(message, Check | IntroduceShortcut):
            return [Send(message.sender[1], RemoveConnections(message.topic, self.id))]
        if isinstance(message, SetData) and message.label is not None:
            return [Send(message.supervisor, Unsubscribe(message.topic, self.id))]
        return ()
