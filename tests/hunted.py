"""Protocols with bugs that only time brings out, for the hunt to find.

planaria hunt tests/hunted.py:Relapsing --seeds 100
"""

from broken import SortedNode, _Broken
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Send

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


class Relapsing(_Broken):
    """Sorted lists of nodes that age."""

    name, node = "tests/hunted.py:Relapsing", AgeingNode


class EchoingNode(SortedNode):  # type: ignore[valid-type,misc]
    """Says everything to itself once more, twice."""

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        return [*super().on_message(message, sender), *[Send(self.id, message)] * 2]


class Storming(_Broken):
    """A few messages become more than any machine can deliver."""

    name, node = "tests/hunted.py:Storming", EchoingNode
