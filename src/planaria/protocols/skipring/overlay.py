"""The `ring` overlay as drivers and checkers see it: how to make, break and judge it."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Node, Publish, Subscribe, Unsubscribe
from planaria.core.overlay import Channel, Overlay, Start, Violation
from planaria.protocols.publications.arbitrary import (
    any_publication_message,
    corrupt_history,
)
from planaria.protocols.skipring.arbitrary import (
    any_message,
    corrupt_subscriber,
    corrupt_supervisor,
)
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.reference import skip_ring
from planaria.protocols.skipring.shape import shape
from planaria.protocols.skipring.subscriber import Subscriber
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import PATIENCE

SUPERVISOR_BASE = 1 << 40  # ids of supervisors are above those of all peers
TOPIC = "news"


class RingOverlay(Overlay):
    """Peers on one topic's skip ring, and the supervisors that serve it."""

    name = "ring"
    starts = (
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

    def __init__(self, supervisors: int = 1, topic: str = TOPIC, *, histories: bool = True) -> None:
        self.supervisors = tuple(SUPERVISOR_BASE + number for number in range(supervisors))
        self.topic = topic
        self.histories = histories  # are publications corrupted and forged too, or the ring alone?

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A peer that subscribes at once, or a supervisor that knows nobody."""
        if id in self.supervisors:
            return Supervisor(id, self.supervisors)
        peer = Peer(id, self.supervisors, rng)
        peer.on_command(Subscribe(self.topic))
        return peer

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """Everybody joins at once."""
        return [self.spawn(id, rng) for id in (*range(n), *self.supervisors)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """SR(n) as the reference has it: label i belongs to peer i."""
        nodes = self.fresh(n, rng)
        for id, place in enumerate(skip_ring(n)):
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
        self._corrupt(node, self._peers(ids), rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Any message to anybody."""
        return self._forge(ids, self._peers(ids), rng)

    def _corrupted(self, nodes: list[Node], rng: Random) -> Start:
        """As every overlay has it; but who is a peer is found out once, not for every node."""
        ids = [node.id for node in nodes]
        peers = self._peers(ids)
        for node in nodes:
            self._corrupt(node, peers, rng)
        forged = 2 * (len(nodes) - len(self.supervisors))
        return Start(nodes, [self._forge(ids, peers, rng) for _ in range(forged)])

    def _peers(self, ids: Sequence[NodeId]) -> list[NodeId]:
        return [id for id in ids if id not in self.supervisors] or [0]

    def _corrupt(self, node: Node, peers: Sequence[NodeId], rng: Random) -> None:
        if isinstance(node, Supervisor):
            corrupt_supervisor(node, self.topic, peers, rng)
        elif isinstance(node, Peer) and self.topic in node.topics:
            corrupt_subscriber(node.topics[self.topic].subscriber, peers, rng)
            if self.histories:
                corrupt_history(node.topics[self.topic].history, peers, rng)

    def _forge(
        self, ids: Sequence[NodeId], peers: Sequence[NodeId], rng: Random
    ) -> tuple[NodeId, Message]:
        if self.histories and rng.random() < 0.3:
            return rng.choice(ids), any_publication_message(self.topic, peers, rng)
        return rng.choice(ids), any_message(self.topic, peers, self.supervisors, rng)

    def violations(self, nodes: Mapping[NodeId, Node], channel: Channel) -> list[Violation]:
        """What is wrong with the topic's ring."""
        return topic_violations(self.topic, nodes, channel)

    def leave(self, node: Node) -> Command | None:
        """Peers leave by unsubscribing."""
        member = isinstance(node, Peer) and self.topic in node.topics
        return Unsubscribe(self.topic) if member else None

    def may_crash(self, node: Node) -> bool:
        """Supervisors may crash while another one is left to take over."""
        return isinstance(node, Peer)

    def publish(self, node: Node, number: int) -> Command | None:
        """Subscribers publish what they number."""
        member = isinstance(node, Peer) and self.topic in node.topics
        if not member or self.subscriber(node).leaving:
            return None
        return Publish(self.topic, f"publication {number}".encode())

    def totals(self, nodes: Mapping[NodeId, Node]) -> dict[str, int]:
        """What the supervisors were asked and what they sent."""
        supervisors = [node for node in nodes.values() if isinstance(node, Supervisor)]
        return {
            "requests": sum(one.requests for one in supervisors),
            "supervisor_messages": sum(one.sent for one in supervisors),
        }

    def metrics(self, nodes: Mapping[NodeId, Node]) -> dict[str, Any]:
        """The shape of the ring."""
        return shape(nodes, self.topic)

    def subscriber(self, node: Node) -> Subscriber:
        """The part of a peer that takes part in the topic's ring."""
        assert isinstance(node, Peer)
        return node.topics[self.topic].subscriber

    def serving(self, nodes: Sequence[Node]) -> Any:
        """The topic's database at the supervisor that serves it."""
        first = preference(self.topic, self.supervisors)[0]
        node = next(node for node in nodes if node.id == first)
        assert isinstance(node, Supervisor)
        return node.serve(self.topic)
