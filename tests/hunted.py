"""A protocol with a bug that only time brings out, for the hunt to find.

planaria hunt tests/hunted.py:Relapsing --seeds 100
"""

from random import Random

from broken import SortedList, SortedNode
from planaria.core.ids import NodeId
from planaria.core.node import Effects, Node

AGE = 14  # timeouts after which a node is confused: long after every network has healed


class AgeingNode(SortedNode):  # type: ignore[valid-type,misc]
    """Forgets its right neighbour for good, once it is old."""

    age = 0

    def on_timeout(self) -> Effects:
        self.age += 1
        effects: Effects = super().on_timeout()
        if self.age > AGE:
            self.right = None
        return effects


class Relapsing(SortedList):  # type: ignore[valid-type,misc]
    """Sorted lists of nodes that age."""

    name = "tests/hunted.py:Relapsing"

    def spawn(self, id: NodeId, rng: Random) -> Node:
        return AgeingNode(id)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        nodes: list[Node] = [AgeingNode(right.id) for right in super().legitimate(n, rng)]
        for node, right in zip(nodes, super().legitimate(n, rng), strict=True):
            node.restore(right.snapshot())
        return nodes
