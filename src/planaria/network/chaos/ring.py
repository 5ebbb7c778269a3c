"""How a running node of the `ring` overlay is broken: the same corruption as the simulator's."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.network.chaos.agent import NAMED
from planaria.protocols.skipring.arbitrary_node import any_node_message, corrupt_node
from planaria.protocols.skipring.messages import speaker
from planaria.protocols.skipring.node import RingNode
from planaria.records.record import TIME_MAX

TOPICS_MAX = 64  # that one fault corrupts
STRANGERS = 4  # ids of nobody that forged messages may come from


class BreakableRing:
    """A ring node that runs."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring

    def corrupt(self, topics: Sequence[str], nodes: Sequence[NodeId], rng: Random) -> int:
        """Overwrite all parts; how many topics look different then."""
        changed = 0
        for topic in self._topics(topics):
            before = self._look(topic)
            corrupt_node(self._ring, topic, [*nodes, self._ring.id], rng)
            changed += self._look(topic) != before
        return changed

    def forge(self, nodes: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message] | None:
        """Any message, often on the link of whom it names: rules ask who says something."""
        topics = self._topics(())
        if not topics:
            return None
        known = [*nodes, self._ring.id]
        message = any_node_message(rng.choice(topics), known, self._ring.supervisors, rng)
        named = speaker(message)
        if isinstance(named, int) and rng.random() < NAMED:
            return named, message
        strangers = [rng.getrandbits(62) for _ in range(STRANGERS)]
        return rng.choice([*known, *strangers]), message

    def held(self, topic: str) -> list[tuple[NodeId, bytes, int, int]]:
        """The positions of all records that it shows."""
        membership = self._ring.peer.topics.get(topic)
        if membership is None:
            return []
        holdings = membership.history.holdings
        records = holdings.at(holdings.places(0, TIME_MAX))
        return [(it.publisher, it.incarnation, it.first, it.end) for it in records]

    def _topics(self, wanted: Sequence[str]) -> list[str]:
        """Those that are wanted of this node's, or all of them."""
        served = () if self._ring.supervisor is None else self._ring.supervisor.topics
        mine = sorted({*self._ring.peer.topics, *served})
        return [it for it in mine if not wanted or it in wanted][:TOPICS_MAX]

    def _look(self, topic: str) -> tuple[bytes, list[int]]:
        """What memory holds of a topic; a store on disk is in no snapshot."""
        membership = self._ring.peer.topics.get(topic)
        shown = [] if membership is None else list(membership.history.holdings.store.index.shown)
        return self._ring.snapshot(), shown
