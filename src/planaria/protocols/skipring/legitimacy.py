"""Is a topic's skip ring legitimate, and if not, which invariant fails where? (Theorem 13)

Compares database, labels, ring, shortcuts (labels and references) and messages in flight with the
plain reference. A public API: `doctor` prints it.

It judges states, which it neither changes nor remembers: asked twice it says the same. What it
calls legitimate stays so: nothing that is pending, no suspicion, no patience nearly spent,
no belief about a closer supervisor, may undo it, as long as messages keep the bound of delays in
docs/guarantees.md.
"""

from collections.abc import Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.protocols.publications.deliveries import position_id
from planaria.protocols.publications.push import sound
from planaria.protocols.ring.messages import RingMessage
from planaria.protocols.skipring.inquiry import PATIENCE
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    Greeting,
    IntroduceShortcut,
    Moved,
    ProbeReply,
    Ref,
    RemoveConnections,
    RingTopicMessage,
    SetData,
    Unsubscribe,
)
from planaria.protocols.skipring.node import RingNodeState
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.reference import RightPlace, skip_ring
from planaria.protocols.skipring.subscriber import SubscriberState
from planaria.protocols.skipring.supervisor import SupervisorState
from planaria.protocols.skipring.topic_supervisor import PATIENCE as ANSWER_PATIENCE
from planaria.protocols.skipring.topic_supervisor import TopicSupervisorState


class TopicJudge:
    """Judges one topic of a network: who should be a member, who serves it, what is wrong.

    `supervisors` are all that the peers were told of, alive or not; `secret` keys their order.
    """

    def __init__(
        self,
        topic: str,
        supervisors: Sequence[NodeId],
        states: Mapping[NodeId, State],
        secret: bytes = b"",
    ) -> None:
        self.topic, self.nodes = topic, states
        parts = [(id, part) for id, state in states.items() for part in parts_of(state)]
        self.supervisors = {id: it for id, it in parts if isinstance(it, SupervisorState)}
        self.peers = {id: it for id, it in parts if isinstance(it, PeerState)}
        self.wanted = [
            id
            for id, peer in self.peers.items()
            if topic in peer.topics and not peer.topics[topic].subscriber.leaving
        ]
        self.order = preference(topic, supervisors, secret)
        self.serving = next((id for id in self.order if id in self.supervisors), None)
        rank = len(self.order) if self.serving is None else self.order.index(self.serving)
        self.closer = self.order[:rank]
        self.served = (
            self.supervisors[self.serving].topics.get(topic) if self.serving is not None else None
        )
        self.entries = list(self.served.database.entries) if self.served else []
        self.labels = {id: label for label, id in enumerate(self.entries) if id is not None}

    def violations(self, channel: Channel) -> list[Violation]:
        """Everything that is wrong, database first."""
        found = self.database()
        if found:
            return found
        if self.serving is not None and self.served is not None:
            found = self._pending(self.serving, self.served)
        in_flight = list(channel)
        places, answered = skip_ring(len(self.entries)), self._answered(in_flight)
        for id, label in self.labels.items():
            member = self.peers[id].topics[self.topic].subscriber
            found += self._member(id, member, label, places[label])
            found += self._waits(id, member, answered=id in answered)
        for id, peer in self.peers.items():
            membership = peer.topics.get(self.topic)
            if membership is not None and membership.subscriber.leaving:
                found.append(self._violation("leavers", id, "has not been let go"))
        return found + self._publications() + self._channel(in_flight)

    def database(self) -> list[Violation]:
        """What is wrong with who serves the topic and whom it records."""
        found = []
        if self.serving is None:
            return [self._violation("supervisor", None, "none is alive")]
        for id, supervisor in self.supervisors.items():
            served = supervisor.topics.get(self.topic)
            if id != self.serving and served is not None and served.database.entries:
                found.append(self._violation("supervisor", id, f"{self.serving} should serve it"))
        recorded = [id for id in self.entries if id is not None]
        if len(recorded) != len(self.entries) or len(set(recorded)) != len(recorded):
            found.append(self._violation("database", self.serving, "empty or double entries"))
        elif self.served and self.served.database.labels != self.labels:
            found.append(self._violation("database", self.serving, "remembers other labels"))
        extra = sorted(set(recorded) - set(self.wanted))
        lacking = sorted(set(self.wanted) - set(recorded))
        if extra or lacking:
            detail = f"records {extra[:5]} wrongly, lacks {lacking[:5]}"
            found.append(self._violation("database", self.serving, detail))
        return found

    def _pending(self, serving: NodeId, served: TopicSupervisorState) -> list[Violation]:
        """What the serving supervisor is about to do wrong although its database is right."""
        found = []
        moved = self.supervisors[serving].moved.get(self.topic)
        if moved is not None:
            detail = f"believes that {moved[0]} serves it"
            found.append(self._violation("supervisor", serving, detail))
        for id, patience in served.suspects.items():
            # With more than half of it left it is asked once more, in time to answer.
            if id in self.labels and patience <= ANSWER_PATIENCE // 2:
                detail = f"removes {id} unless it answers within {max(patience, 0) + 1} timeouts"
                found.append(self._violation("suspects", serving, detail))
        return found

    def _asks(self, id: NodeId, member: SubscriberState) -> list[Violation]:
        """Which supervisor it asks."""
        inquiry = member.inquiry
        asks = self.order[inquiry.contact : inquiry.contact + 1]
        if inquiry.contact >= 0 and asks == (self.serving,):
            return []
        detail = f"asks {asks[0] if asks else 'nobody'}, should ask {self.serving}"
        return [self._violation("supervisor", id, detail)]

    def _waits(self, id: NodeId, member: SubscriberState, *, answered: bool) -> list[Violation]:
        """For how long it has been without an answer.

        If none is to come, it asks again when it is due: with half of its patience left, in time.
        One that is not alarmed asks at the next timeout or by then.
        """
        inquiry = member.inquiry
        waits = inquiry.waiting + (0 if answered else max(inquiry.due or 1, 1))
        if inquiry.waiting <= 0 or waits <= PATIENCE // 2:
            return []
        again = "" if inquiry.due is None else f", and asks again in {inquiry.due}"
        detail = f"has been waiting for an answer for {inquiry.waiting} timeouts{again}"
        return [self._violation("patience", id, detail)]

    def _answered(self, channel: Channel) -> set[NodeId]:
        """Whose request is on its way or waits its turn, or whose answer is on its way."""
        served = self.served
        found = set[NodeId]()
        if served is not None:
            found.update(served.answers, served.outbox, served.probes)
        for target, message in channel:
            if not isinstance(message, RingTopicMessage) or message.topic != self.topic:
                continue
            if isinstance(message, GetConfiguration) and target == self.serving:
                found.add(message.sender)
            elif isinstance(message, SetData) and message.supervisor == self.serving:
                found.add(target)
        return found

    def _member(
        self, id: NodeId, member: SubscriberState, label: int, place: RightPlace
    ) -> list[Violation]:
        """One member against its place in SR(n)."""
        if member.label != label:
            return [self._violation("label", id, f"{member.label}, should be {label}")]
        found = self._asks(id, member)
        for side in ("pred", "succ"):
            beside: int | None = getattr(place, side)
            right = None if beside is None else (beside, self.entries[beside])
            if getattr(member, side) != right:
                detail = f"{side} is {getattr(member, side)}, should be {right}"
                found.append(self._violation("ring", id, detail))
        right_shortcuts = {slot: self.entries[slot] for slot in place.shortcuts}
        # In a small ring a shortcut may lead to a ring neighbour: it need not be there, but right.
        right_shortcuts |= {
            beside: self.entries[beside]
            for beside in (place.pred, place.succ)
            if beside is not None and beside in member.shortcuts
        }
        if member.shortcuts != right_shortcuts:
            detail = f"{member.shortcuts}, should be {right_shortcuts}"
            found.append(self._violation("shortcuts", id, detail))
        return found

    def _publications(self) -> list[Violation]:
        """Every member holds every record that any member holds (Theorem 17)."""
        held = {id: held_records(self.peers[id], self.topic) for id in self.labels}
        everything = frozenset().union(*held.values()) if held else frozenset()
        return [
            self._violation("publications", id, f"lacks {len(everything - mine)} of them")
            for id, mine in held.items()
            if len(mine) != len(everything)
        ]

    # Messages in flight that could break a legitimate ring again

    def _channel(self, channel: Channel) -> list[Violation]:
        found = []
        for target, message in channel:
            topic = getattr(message, "topic", getattr(message, "group", None))
            if topic == self.topic and target in self.nodes and self._stale(target, message):
                found.append(self._violation("channel", target, f"stale {message}"))
        return found

    def _stale(self, target: NodeId, message: Message) -> bool:
        if not isinstance(message, RingTopicMessage):
            return isinstance(message, RingMessage)
        if isinstance(message, Greeting):
            return not self._true(message.sender) or self.labels.get(target) != message.believed
        if isinstance(message, IntroduceShortcut):
            return not (self._true(message.sender) and self._true(message.ref))
        if isinstance(message, SetData):
            return self._false_configuration(target, message)
        if isinstance(message, Unsubscribe | RemoveConnections):
            return message.sender in self.labels
        if isinstance(message, GetConfiguration):
            return message.sender not in self.labels or target != self.serving
        if isinstance(message, ProbeReply):
            return target == self.serving and message.sender in self.closer
        return isinstance(message, Moved)

    def _true(self, ref: Ref | None) -> bool:
        return ref is None or self.labels.get(ref[1]) == ref[0]

    def _false_configuration(self, target: NodeId, message: SetData) -> bool:
        label = self.labels.get(target)
        if label is None:
            return message.label is not None
        if message.supervisor != self.serving:
            return True
        place = skip_ring(len(self.entries))[label]
        right = [None if b is None else (b, self.entries[b]) for b in (place.pred, place.succ)]
        return [message.label, message.pred, message.succ] != [label, *right]

    def _violation(self, invariant: str, node: NodeId | None, detail: str) -> Violation:
        return Violation(invariant, node, f"{self.topic}: {detail}")


def parts_of(state: State) -> tuple[State, ...]:
    """A node may be a peer, a supervisor, or both in one."""
    if not isinstance(state, RingNodeState):
        return (state,)
    return (state.peer,) if state.supervisor is None else (state.peer, state.supervisor)


def held_records(peer: PeerState, topic: str) -> frozenset[tuple[int, bytes]]:
    """The records that a subscriber holds of a topic within the topic's window, by place."""
    store = peer.topics[topic].history.holdings.store
    if store is None:
        return frozenset()  # on disk: a judge sees memory alone
    return frozenset((place, store.bodies.get(place, b"")) for place in store.shown)


def held_publications(peer: PeerState, topic: str) -> frozenset[bytes]:
    """The publications in them, by position; what is no record holds none."""
    found = []
    for record in sound(body for _, body in sorted(held_records(peer, topic))):
        who, incarnation = record.stream
        found += [position_id(who, incarnation, at) for at in range(record.first, record.end)]
    return frozenset(found)


def topic_violations(
    topic: str,
    supervisors: Sequence[NodeId],
    states: Mapping[NodeId, State],
    channel: Channel,
    secret: bytes = b"",
) -> list[Violation]:
    """Every invariant of the legitimate state that fails for `topic`; empty means legitimate."""
    return TopicJudge(topic, supervisors, states, secret).violations(channel)
