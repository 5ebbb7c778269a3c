"""A peer process: one subscriber per topic it wants, or is still leaving."""

from collections.abc import Sequence
from random import Random
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effects, LinkDown, Node, Send, Subscribe
from planaria.core.node import Unsubscribe as Leave
from planaria.protocols.ring.messages import RingMessage
from planaria.protocols.skipring.messages import (
    Check,
    IntroduceShortcut,
    Moved,
    RemoveConnections,
    RingTopicMessage,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.subscriber import Subscriber

TOPICS_MAX = 1 << 12  # rings one process takes part in: each costs about four messages an interval


class Peer(Node):
    """Takes part in the ring of every topic it subscribes to."""

    __slots__ = ("_rng", "supervisors", "topics")

    def __init__(self, id: NodeId, supervisors: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id)
        self.supervisors = tuple(supervisors)
        self.topics: dict[str, Subscriber] = {}
        self._rng = rng

    def on_message(self, message: Message) -> Effects:
        """Hand a message to the ring it is about; decline if I am not in that ring."""
        if isinstance(message, RingMessage):
            found = self.topics.get(message.group)
            return found.on_ring_message(message) if found else ()
        if not isinstance(message, RingTopicMessage):
            return ()
        subscriber = self.topics.get(message.topic)
        if subscriber is None:
            return self._decline(message)
        if isinstance(message, Check):
            return subscriber.on_check(message)
        if isinstance(message, IntroduceShortcut):
            return subscriber.on_introduce_shortcut(message)
        if isinstance(message, SetData):
            return subscriber.on_set_data(message)
        if isinstance(message, Wake):
            return subscriber.on_wake(message)
        if isinstance(message, RemoveConnections):
            return subscriber.on_remove_connections(message)
        if isinstance(message, Moved):
            return subscriber.on_moved(message)
        return ()

    def on_timeout(self) -> Effects:
        """Every ring's timeout; a ring that let me go is forgotten."""
        effects: list[Send] = []
        for topic, subscriber in list(self.topics.items()):
            effects += subscriber.on_timeout()
            if subscriber.leaving and not subscriber.member:
                del self.topics[topic]
        return effects

    def on_command(self, command: Command) -> Effects:
        """Subscribe, unsubscribe, publish; or the driver lost a connection."""
        if isinstance(command, Subscribe):
            self._join(command.topic)
            return ()
        if isinstance(command, Leave):
            subscriber = self.topics.get(command.topic)
            return subscriber.leave() if subscriber else ()
        if isinstance(command, LinkDown):
            return [e for s in self.topics.values() for e in s.on_link_down(command.peer)]
        return ()

    def snapshot(self) -> dict[str, Any]:
        """The state of every ring I am in."""
        return {topic: subscriber.snapshot() for topic, subscriber in self.topics.items()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Be in the rings of a stored state, in whatever state."""
        self.topics = {}
        for topic, state in snapshot.items():
            self._join(topic).restore(state)

    def _join(self, topic: str) -> Subscriber:
        if topic not in self.topics:
            order = preference(topic, self.supervisors)
            self.topics[topic] = Subscriber(topic, self.id, order, self._rng)
        self.topics[topic].leaving = False
        return self.topics[topic]

    def _decline(self, message: RingTopicMessage) -> Effects:
        """I am not in that ring: say so to whoever believes it."""
        if isinstance(message, Check | IntroduceShortcut):
            return [Send(message.sender[1], RemoveConnections(message.topic, self.id))]
        if isinstance(message, SetData) and message.label is not None:
            return [Send(message.supervisor, Unsubscribe(message.topic, self.id))]
        return ()
