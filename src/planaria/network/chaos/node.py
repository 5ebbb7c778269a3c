"""How a running node is broken in all its overlays: as the simulator breaks each of them."""

from collections.abc import Sequence
from random import Random

from planaria.core.composite import Composite
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.network.chaos.parts import BREAKABLE, BreakablePart
from planaria.network.chaos.ring import BreakableRing
from planaria.network.overlays.part import LivePart


class BreakableNode:
    """A node that runs: its `ring`, and its parts in other overlays that are awake."""

    def __init__(self, ring: BreakableRing, node: Composite) -> None:
        self._ring, self._node = ring, node

    def corrupt(self, topics: Sequence[str], nodes: Sequence[NodeId], rng: Random) -> int:
        """Overwrite everything; how much of it looks different then."""
        changed = self._ring.corrupt(topics, nodes, rng)
        for part in self._parts():
            changed += part.corrupt(topics, [*nodes, self._node.id], rng)
        return changed

    def forge(self, nodes: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message] | None:
        """A message of any overlay in which this node is awake."""
        part = rng.choice([None, *self._parts()])
        known = [*nodes, self._node.id]
        return self._ring.forge(nodes, rng) if part is None else part.forge(known, rng)

    def held(self, topic: str) -> list[tuple[NodeId, bytes, int, int]]:
        """Of rings: the others hold nothing by position."""
        return self._ring.held(topic)

    def _parts(self) -> list[BreakablePart]:
        awake = [part for part in self._node.awake() if isinstance(part, LivePart)]
        return [BREAKABLE[part.overlay](part) for part in awake]
