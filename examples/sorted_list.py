"""A complete self-stabilizing protocol in one page: nodes sort themselves into a line by id.

Rule (linearization): of the neighbours on one side keep the closest; hand every farther one on to
it. Whatever the nodes point at in the beginning, if they hang together they end up sorted.

    planaria sim examples/sorted_list.py:SortedListOverlay --n 12 --start corrupt --seed 1
"""

from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Node, Send
from planaria.core.overlay import Channel, Overlay, Violation


class Introduce(Message, frozen=True, tag="sorted_list.introduce"):
    """There is a node called `id`."""

    id: NodeId


class SortedNode(Node):
    """Knows its closest neighbour on each side, as far as it can tell."""

    __slots__ = ("left", "right")
    variables = ("left", "right")

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.left: NodeId | None = None
        self.right: NodeId | None = None

    def on_message(self, message: Message) -> Effects:
        """Somebody was introduced, perhaps by garbage: keep the closer one, hand the other on."""
        effects = self._repair()
        if isinstance(message, Introduce):
            effects += self._linearize(message.id)
        return effects

    def on_timeout(self) -> Effects:
        """Introduce myself to both neighbours, so that they can tell me of closer ones."""
        effects = self._repair()
        effects += [Send(n, Introduce(self.id)) for n in (self.left, self.right) if n is not None]
        return effects

    def _repair(self) -> list[Send]:
        """A neighbour on the wrong side is not thrown away: it may be the only link to it."""
        wrong = []
        if self.left is not None and self.left >= self.id:
            wrong.append(self.left)
            self.left = None
        if self.right is not None and self.right <= self.id:
            wrong.append(self.right)
            self.right = None
        return [send for other in wrong for send in self._linearize(other)]

    def _linearize(self, other: NodeId) -> list[Send]:
        if other == self.id:
            return []
        side = "left" if other < self.id else "right"
        known = getattr(self, side)
        if known is None:
            setattr(self, side, other)
            return []
        if other == known:
            return []
        closer, farther = sorted((known, other), key=lambda it: abs(it - self.id))
        setattr(self, side, closer)
        return [Send(closer, Introduce(farther))]


class SortedListOverlay(Overlay):
    """How to make, break and judge a network of `SortedNode`."""

    name = "examples/sorted_list.py:SortedListOverlay"

    def spawn(self, id: NodeId, rng: Random) -> SortedNode:
        """A newcomer knows one member: here, the one before it."""
        node = SortedNode(id)
        node.left = id - 1 if id else None
        return node

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Everybody points at the next id on either side."""
        nodes: list[Node] = []
        for id in range(n):
            node = SortedNode(id)
            node.left, node.right = (id - 1 if id else None), (id + 1 if id < n - 1 else None)
            nodes.append(node)
        return nodes

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary neighbours, oneself included.

        One link to the next id is kept: no protocol can find nodes that nobody knows.
        """
        assert isinstance(node, SortedNode)
        node.left = rng.choice([*ids, None])
        node.right = ids[(list(ids).index(node.id) + 1) % len(ids)]

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Somebody is introduced to somebody."""
        return rng.choice(ids), Introduce(rng.choice(ids))

    def violations(self, nodes: Mapping[NodeId, Node], channel: Channel) -> list[Violation]:
        """Compare with the sorted line of the live ids."""
        line = sorted(nodes)
        expected = zip(line, [None, *line], [*line[1:], None], strict=False)
        found = []
        for id, left, right in expected:
            node = nodes[id]
            assert isinstance(node, SortedNode)
            if (node.left, node.right) != (left, right):
                detail = f"has {node.left}, {node.right}; should have {left}, {right}"
                found.append(Violation("sorted", id, detail))
        return found
