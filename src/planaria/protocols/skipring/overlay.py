"""The `ring` overlay as drivers and checkers see it: how to make, break and judge it."""

from collections.abc import Mapping, Sequence
from math import ceil
from random import Random
from typing import Any, ClassVar

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Node, Publish, Subscribe, Unsubscribe
from planaria.core.overlay import Channel, Overlay, Start, Violation
from planaria.core.state import State
from planaria.protocols.publications.bound import intervals_to_agree
from planaria.protocols.skipring.all_messages import ALL_MESSAGES
from planaria.protocols.skipring.arbitrary import (
    any_message,
    aside,
    corrupt_former,
    corrupt_subscriber,
    corrupt_supervisor,
)
from planaria.protocols.skipring.arbitrary_history import (
    any_publication_message,
    corrupt_history,
    corrupt_view,
)
from planaria.protocols.skipring.inquiry import PATIENCE as ASK_PATIENCE
from planaria.protocols.skipring.inquiry import ROUNDS_MAX
from planaria.protocols.skipring.legitimacy import parts_of, topic_violations
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.messages import WINDOW_MAX, speaker
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.reference import skip_ring
from planaria.protocols.skipring.shape import shape
from planaria.protocols.skipring.subscriber import Subscriber
from planaria.protocols.skipring.supervisor import Supervisor, SupervisorState
from planaria.protocols.skipring.topic_supervisor import PATIENCE, TopicSupervisor

SUPERVISOR_BASE = 1 << 40  # ids of supervisors are above those of all peers
TOPIC = "news"
PACES = 16  # words of a calm topic until each contradiction has been seen by somebody
LEVEL_MAX = 14  # intervals that any start may take for each doubling of n


class RingOverlay(Overlay):
    """Peers on one topic's skip ring, and the supervisors that serve it."""

    name = "ring"
    messages = ALL_MESSAGES
    starts: ClassVar[tuple[str, ...]] = (
        "fresh",
        "legitimate",
        "corrupt",
        "wiped",
        "permuted",
        "crash50",
        "swapped",
        "partitioned",
    )

    calm = PATIENCE + 2  # a suspicion that a fault left half-way has been judged by then
    # An accused member has PATIENCE timeouts for two messages: being asked, and its answer.
    delay_max = (PATIENCE - 1) / 2

    def __init__(
        self, supervisors: int = 1, topic: str = TOPIC, *, histories: bool = True, pace: int = 1
    ) -> None:
        self.supervisors = tuple(SUPERVISOR_BASE + number for number in range(supervisors))
        self.topic = topic
        self.pace = pace  # intervals between two words of a calm topic
        self.histories = histories  # are publications corrupted and forged too, or the ring alone?

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A peer that subscribes at once, or a supervisor that knows nobody."""
        if id in self.supervisors:
            return Supervisor(id, self.supervisors, pace_max=self.pace)
        peer = Peer(id, self.supervisors, rng, pace_max=self.pace)
        peer.on_command(Subscribe(self.topic))
        return peer

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """Everybody joins at once."""
        return [self.spawn(id, rng) for id in (*range(n), *self.supervisors)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """SR(n) as the reference has it: label i belongs to peer i."""
        return self.placed(self.fresh(n, rng), n)

    def placed(self, nodes: list[Node], n: int) -> list[Node]:
        """Put `n` peers, and the database, into their places."""
        for id, place in enumerate(skip_ring(n)):
            self.membership(nodes[id]).awaited = False
            one = self.subscriber(nodes[id])
            one.label = id
            one.inquiry.calm()
            one.pred = None if place.pred is None else (place.pred, place.pred)
            one.succ = None if place.succ is None else (place.succ, place.succ)
            one.shortcuts = {slot: slot for slot in sorted(place.shortcuts)}
        self.serving(nodes[n:]).database.entries = list(range(n))
        return nodes

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """The starts of the paper's world: see `starts`."""
        if name in ("fresh", "legitimate") or name not in self.starts:
            return super().start(name, n, rng, protocol)
        nodes = self.legitimate(n, protocol)
        if name == "corrupt":
            return self._corrupted(nodes, rng)
        served = self.serving(nodes[n:])
        if name == "wiped":
            served.database.entries = []
        elif name in ("permuted", "swapped"):
            # The peers agree with each other, down to the last shortcut; the database does not.
            order = list(range(n))
            chosen = order if name == "permuted" else rng.sample(order, min(2, n))
            shuffled = rng.sample(chosen, len(chosen)) if name == "permuted" else chosen[::-1]
            for label, id in zip(chosen, shuffled, strict=True):
                order[label] = id
            served.database.entries = order
        schedule = {
            "crash50": "at 0 crash share=0.5",
            "partitioned": "at 0 publish count=10\nat 0 for 5 partition groups=2\n"
            "at 1 publish count=20",
        }
        return Start(nodes, [], schedule.get(name, ""))

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary values in every variable of a peer or supervisor."""
        self._corrupt(node, self._named(ids), rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Any message to anybody."""
        return self._forge(ids, self._named(ids), rng)

    def _corrupted(self, nodes: list[Node], rng: Random) -> Start:
        """As every overlay has it, and some supervisors are dead, never all.

        Who is a peer is found out once, not for every node.
        """
        ids = [node.id for node in nodes]
        peers = self._named(ids)
        for node in nodes:
            self._corrupt(node, peers, rng)
        forged = 2 * (len(nodes) - len(self.supervisors))
        channel = [self._forge(ids, peers, rng) for _ in range(forged)]
        dead = rng.sample(self.supervisors, rng.randrange(len(self.supervisors)))
        return Start([node for node in nodes if node.id not in dead], channel)

    def _corrupt(self, node: Node, peers: Sequence[NodeId], rng: Random) -> None:
        supervisor, peer = self.supervisor(node), self.peer(node)
        if supervisor is not None:
            corrupt_supervisor(supervisor, self.topic, peers, rng)
        elif peer is not None and self.topic in peer.topics:
            membership = peer.topics[self.topic]
            membership.awaited = rng.random() < 0.5
            corrupt_former(membership.former, peers, aside(rng, "former"))
            corrupt_subscriber(membership.subscriber, peers, rng)
            if self.histories:
                corrupt_history(membership.history, peers, rng)
                corrupt_view(membership, peers, rng)

    def _forge(
        self, ids: Sequence[NodeId], peers: Sequence[NodeId], rng: Random
    ) -> tuple[NodeId, Message]:
        if self.histories and rng.random() < 0.3:
            return rng.choice(ids), any_publication_message(self.topic, peers, rng)
        return rng.choice(ids), any_message(self.topic, peers, self.supervisors, rng)

    def _named(self, ids: Sequence[NodeId]) -> list[NodeId]:
        """Whom a corrupt state may name: all peers of `ids`, and two that have died."""
        peers = [id for id in ids if id not in self.supervisors]
        after = max(peers, default=-1) + 1
        return [*peers, after, after + 1]

    def speaker(self, message: Message) -> NodeId | None:
        """Supervisors and peers speak for themselves; what is passed on is nobody's."""
        return speaker(message)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """What is wrong with the topic's ring."""
        return topic_violations(self.topic, self.supervisors, states, channel)

    def bound(self, n: int, delay: float) -> int:
        """Intervals within which a ring of `n` is legitimate, if failed sends are noticed.

        A corrupt patience makes one give up every supervisor twice over, then ask one after the
        other at the end of a full window; what only the round robin finds takes n configurations,
        and each level of labels a few exchanges. The worst of 600 starts took a fifth of it.
        """
        supervisors = len(self.supervisors)
        failover = ROUNDS_MAX * ASK_PATIENCE * supervisors + WINDOW_MAX * (supervisors + 1)
        levels = LEVEL_MAX * n.bit_length()
        ring = ceil((1 + delay) * (failover + levels)) + 2 * n * self.pace
        return ring + intervals_to_agree(n, delay) + PACES * (self.pace - 1)

    def unnoticed(self, n: int) -> int:
        """Silence alone tells: of a ring neighbour after 8 timeouts, of a database of the dead
        after 64, and the dead who sit side by side are found one after the other.
        """
        return self.pace * (
            152 + 20 * n
        )  # 64, 11 times 8, and two patiences for each that may be dead

    def leave(self, node: Node) -> Command | None:
        """Peers leave by unsubscribing."""
        peer = self.peer(node)
        member = peer is not None and self.topic in peer.topics
        return Unsubscribe(self.topic) if member else None

    def may_crash(self, node: Node) -> bool:
        """Supervisors may crash while another one is left to take over."""
        return self.supervisor(node) is None

    def publication(self, id: NodeId, number: int) -> Command | None:
        """Peers publish what they number; who is about to leave refuses."""
        if id in self.supervisors:
            return None
        return Publish(self.topic, f"publication {number}".encode())

    def subscriptions(self, id: NodeId) -> Sequence[Subscribe]:
        """Every peer's one topic."""
        return () if id in self.supervisors else (Subscribe(self.topic),)

    def called(self, id: NodeId) -> str:
        """Supervisors are numbered on their own."""
        own = id - SUPERVISOR_BASE
        return f"supervisor {own}" if 0 <= own < len(self.supervisors) else str(id)

    def population(self, states: Mapping[NodeId, State]) -> int:
        """Peers."""
        return sum(id not in self.supervisors for id in states)

    def totals(self, states: Mapping[NodeId, State]) -> dict[str, int]:
        """What the supervisors were asked and what they sent."""
        parts = [part for state in states.values() for part in parts_of(state)]
        supervisors = [part for part in parts if isinstance(part, SupervisorState)]
        return {
            "requests": sum(one.requests for one in supervisors),
            "supervisor_messages": sum(one.sent for one in supervisors),
        }

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """The shape of the ring."""
        return shape(states, self.topic)

    def membership(self, node: Node) -> Membership:
        """The part of a peer that deals with the topic."""
        peer = self.peer(node)
        assert peer is not None
        return peer.topics[self.topic]

    def peer(self, node: Node) -> Peer | None:
        """The part of a node that is a peer."""
        return node if isinstance(node, Peer) else None

    def supervisor(self, node: Node) -> Supervisor | None:
        """The part of a node that is a supervisor."""
        return node if isinstance(node, Supervisor) else None

    def subscriber(self, node: Node) -> Subscriber:
        """The part of a peer that takes part in the topic's ring."""
        return self.membership(node).subscriber

    def serving(self, nodes: Sequence[Node]) -> TopicSupervisor:
        """The topic's database at the supervisor that serves it."""
        first = preference(self.topic, self.supervisors)[0]
        node = next(node for node in nodes if node.id == first)
        supervisor = self.supervisor(node)
        assert supervisor is not None
        served = supervisor.serve(self.topic)
        assert served is not None  # it serves nothing else
        return served
