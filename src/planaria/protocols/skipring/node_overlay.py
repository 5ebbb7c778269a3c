"""The `ring` overlay made of nodes of the live network, as drivers and checkers see it.

`planaria sim planaria.protocols.skipring.node_overlay:RingNodeOverlay` runs it. Peers with even
ids subscribe to the topic by its name, the others to a pattern: those must find it.
"""

from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Node, Publish, Subscribe, Unsubscribe
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.core.topics import matches
from planaria.protocols.skipring.arbitrary_charters import any_charter_message, corrupt_charters
from planaria.protocols.skipring.arbitrary_directory import (
    any_directory_message,
    corrupt_directory,
    corrupt_wildcards,
)
from planaria.protocols.skipring.directory import KEPT_MAX, SWEEP_EVERY
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.node import RingNode, RingNodeState
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.walk import ANSWER_MAX, DOUBLINGS_MAX, REST_MAX


class RingNodeOverlay(RingOverlay):
    """One topic's ring among nodes that are peer, supervisor and directory in one."""

    name = "ring-nodes"
    starts = ("fresh", "legitimate", "corrupt", "wiped")

    def __init__(self, supervisors: int = 2, *, histories: bool = True, pace: int = 1) -> None:
        super().__init__(supervisors, histories=histories, pace=pace)
        self.pattern = f"{self.topic}/#"

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A peer that subscribes at once, by name or by pattern, or a supervisor."""
        supervise = id in self.supervisors
        node = RingNode(id, self.supervisors, rng, supervise=supervise, pace_max=self.pace)
        for subscription in self.subscriptions(id):
            node.on_command(subscription)
        return node

    def subscriptions(self, id: NodeId) -> Sequence[Subscribe]:
        """The topic's name, or a pattern."""
        if id in self.supervisors:
            return ()
        return (Subscribe(self.pattern if id % 2 else self.topic),)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """SR(n), and everybody who looks for the topic knows it."""
        joining = self.fresh(n, rng)
        for node in joining[1:n:2]:
            assert isinstance(node, RingNode)
            node.peer.on_command(Subscribe(self.topic))
            node.wildcards.joined[self.topic] = True
            node.wildcards.awaited = {}
            node.directory.known[self.topic] = 0
        return self.placed(joining, n)

    def leave(self, node: Node) -> Command | None:
        """Peers leave by ending their subscription."""
        found = super().leave(node)
        return Unsubscribe(self.pattern) if found is not None and node.id % 2 else found

    def publication(self, id: NodeId, number: int) -> Command | None:
        """Those publish that have named the topic: others may not have found it yet."""
        found = super().publication(id, number)
        return found if isinstance(found, Publish) and not id % 2 else None

    def peer(self, node: Node) -> Peer | None:
        """The part of a node that is a peer, unless it supervises only."""
        plain = isinstance(node, RingNode) and node.supervisor is None
        return node.peer if plain else None  # type: ignore[attr-defined]

    def supervisor(self, node: Node) -> Supervisor | None:
        """The part of a node that is a supervisor."""
        return node.supervisor if isinstance(node, RingNode) else None

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """What is wrong with the topic's ring and with directories."""
        ring = topic_violations(self.topic, self.supervisors, states, channel)
        return ring + directory_violations(states)

    def bound(self, n: int, delay: float) -> int:
        """A topic is found in the pause that a supervisor seems to need, and then joined."""
        pause = (ANSWER_MAX << DOUBLINGS_MAX) + REST_MAX
        return super().bound(n, delay) + pause + KEPT_MAX + SWEEP_EVERY

    def _corrupt(self, node: Node, peers: Sequence[NodeId], rng: Random) -> None:
        super()._corrupt(node, peers, rng)
        assert isinstance(node, RingNode)
        corrupt_directory(node.directory, [self.topic], [*peers, *self.supervisors], rng)
        corrupt_wildcards(node.wildcards, rng)
        corrupt_charters(node.charters, [self.topic], rng)

    def _forge(
        self, ids: Sequence[NodeId], peers: Sequence[NodeId], rng: Random
    ) -> tuple[NodeId, Message]:
        if rng.random() < 0.2:
            named = [*peers, *self.supervisors]
            forge = rng.choice((any_directory_message, any_charter_message))
            return rng.choice(ids), forge([self.topic], named, rng)
        return super()._forge(ids, peers, rng)


def directory_violations(states: Mapping[NodeId, State]) -> list[Violation]:
    """Every node knows, and is in, all topics that match its patterns, and knows no others."""
    nodes = {id: it for id, it in states.items() if isinstance(it, RingNodeState)}
    served = [it.supervisor.topics for it in nodes.values() if it.supervisor is not None]
    there = {topic for topics in served for topic, it in topics.items() if it.database.entries}
    found = []
    for id, node in nodes.items():
        patterns, known = node.wildcards.patterns, set(node.directory.known)
        wanted = {topic for topic in there if any(matches(it, topic) for it in patterns)}
        mine = {it for it, one in node.peer.topics.items() if not one.subscriber.leaving}
        for kind, topics in (
            ("knows wrongly", known - there),
            ("does not know", wanted - known),
            ("is not in", wanted - mine),
        ):
            if topics:
                found.append(Violation("directory", id, f"{kind} {sorted(topics)[:5]}"))
    return found
