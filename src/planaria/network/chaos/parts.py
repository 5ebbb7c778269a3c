"""How a running node's parts in `gossip`, `content` and `mobile` are broken: as in simulations."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random

from planaria.core.composite import Composite
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Delivery
from planaria.network.chaos.agent import NAMED, Breakable
from planaria.network.chaos.ring import BreakableRing
from planaria.network.client.overlays import RING
from planaria.network.overlays.content import OVERLAY, ContentPart
from planaria.network.overlays.gossip import GossipPart
from planaria.network.overlays.mobile import MobilePart
from planaria.network.overlays.part import LivePart
from planaria.protocols.gossip.arbitrary import corrupt_process, forge_message
from planaria.protocols.gossip.messages import speaker as gossip_speaker
from planaria.protocols.mobile.arbitrary import forged, scramble, scramble_heights
from planaria.protocols.mobile.messages import Item
from planaria.protocols.skipring.node import RingNode


class BreakablePart(ABC):
    """A part of a node that runs; one that sleeps has nothing to be broken."""

    def __init__(self, part: LivePart) -> None:
        self._part = part

    def corrupt(self, topics: Sequence[str], nodes: Sequence[NodeId], rng: Random) -> int:
        """Overwrite its variables, those of all topics; is it another one then?"""
        if not self._part.awake:
            return 0
        before = self._part.node.snapshot()
        self._corrupt([*nodes], rng)
        return int(self._part.node.snapshot() != before)

    def forge(self, nodes: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message] | None:
        """Any message, often on the link of whom it names."""
        message = self._forge([*nodes], rng) if self._part.awake else None
        if message is None:
            return None
        named = self._speaker(message)
        if named is not None and rng.random() < NAMED:
            return named, message
        return rng.choice([*nodes]), message

    def held(self, topic: str) -> list[tuple[NodeId, bytes, int, int]]:
        """Nothing that has a position."""
        return []

    @abstractmethod
    def _corrupt(self, nodes: list[NodeId], rng: Random) -> None:
        """Give all variables arbitrary values."""

    @abstractmethod
    def _forge(self, nodes: list[NodeId], rng: Random) -> Message | None:
        """Any message; None: there is nothing to speak of."""

    def _speaker(self, message: Message) -> NodeId | None:
        return None


class BreakableGossip(BreakablePart):
    """A member of groups."""

    _part: GossipPart

    def _topics(self) -> list[str]:
        return [*self._part.node.subscribed, *self._part.node.publishing, "ghost"]

    def _corrupt(self, nodes: list[NodeId], rng: Random) -> None:
        corrupt_process(self._part.node, nodes, self._topics(), rng)

    def _forge(self, nodes: list[NodeId], rng: Random) -> Message:
        return forge_message(nodes, self._topics(), rng)

    def _speaker(self, message: Message) -> NodeId | None:
        return gossip_speaker(message)


class BreakableContent(BreakablePart):
    """A broker on the tree of the DHT."""

    _part: ContentPart

    def _corrupt(self, nodes: list[NodeId], rng: Random) -> None:
        OVERLAY.corrupt(self._part.node, nodes, rng)

    def _forge(self, nodes: list[NodeId], rng: Random) -> Message:
        return OVERLAY.forge(nodes, rng)[1]

    def _speaker(self, message: Message) -> NodeId | None:
        return OVERLAY.speaker(message)


class BreakableMobile(BreakablePart):
    """Layers among neighbours."""

    _part: MobilePart

    def _corrupt(self, nodes: list[NodeId], rng: Random) -> None:
        node = self._part.node
        node.reach = dict.fromkeys(id for id in (*node.reach, *nodes[:2]) if rng.random() < 0.8)
        for layer in node.layers.values():
            scramble(layer, nodes, rng, scramble_heights)

    def held(self, topic: str) -> list[tuple[NodeId, bytes, int, int]]:
        """Where all publications stand that it would replay; nobody is their publisher."""
        layer = self._part.node.layers.get(topic)
        kept = {} if layer is None else layer.news.store
        items = [Item(id, it.generation, it.body) for id, it in kept.items()]
        records = [self._part.record(Delivery(it.id, it.payload)) for it in items]
        return [(it.publisher, it.incarnation, it.first, it.end) for it in records if it]

    def _forge(self, nodes: list[NodeId], rng: Random) -> Message | None:
        topics = self._part.wishes()
        return forged(rng.choice(topics), nodes, rng) if topics else None


BREAKABLE: dict[str, type[BreakablePart]] = {
    "gossip": BreakableGossip,
    "content": BreakableContent,
    "mobile": BreakableMobile,
}


def breakable(ring: RingNode, node: Composite) -> dict[str, Breakable]:
    """Each part of a node, by its overlay."""
    parts = [it for it in node.parts.values() if isinstance(it, LivePart)]
    return {RING: BreakableRing(ring), **{it.overlay: BREAKABLE[it.overlay](it) for it in parts}}
