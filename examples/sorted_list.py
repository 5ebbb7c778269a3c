"""A complete self-stabilizing protocol in one page: nodes sort themselves into a line by id.

Rule (linearization): of the neighbours on one side keep the closest; hand every farther one on to
it. Who has nobody on the left asks at the meeting point, node 0, which never fails. So whatever
the nodes point at in the beginning, and whoever crashes, the living end up sorted.

    planaria sim examples/sorted_list.py:SortedListOverlay --n 12 --start corrupt --seed 1
"""

from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.ids import NODE_ID_MAX, NodeId, is_node_id
from planaria.core.message import Message
from planaria.core.node import Command, Effects, LinkDown, Node, Send
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State

MEETING_POINT = 0


class Introduce(Message, frozen=True, tag="sorted_list.introduce"):
    """There is a node called `id`."""

    id: NodeId


class SortedState(State):
    """What a node remembers; a fault may put any number there."""

    left: int | None
    right: int | None


class SortedNode(Node):
    """Knows its closest neighbour on each side, as far as it can tell."""

    __slots__ = ("left", "right")
    state_type = SortedState

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.left: NodeId | None = None
        self.right: NodeId | None = None

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Somebody was introduced, perhaps by garbage: keep the closer one, hand the other on."""
        effects = self._repair()
        if isinstance(message, Introduce):
            effects += self._linearize(message.id)
        return effects

    def on_timeout(self) -> Effects:
        """Introduce myself to both neighbours, so that they can tell me of closer ones."""
        effects = self._repair()
        left = self.left
        if left is None and self.id != MEETING_POINT:
            left = MEETING_POINT
        effects += [Send(n, Introduce(self.id)) for n in (left, self.right) if n is not None]
        return effects

    def on_command(self, command: Command) -> Effects:
        """A neighbour out of reach is forgotten; if it lives, it will introduce itself."""
        effects = self._repair()
        if isinstance(command, LinkDown):
            self.left = None if self.left == command.peer else self.left
            self.right = None if self.right == command.peer else self.right
        return effects

    def _repair(self) -> list[Send]:
        """A neighbour on the wrong side is not thrown away: it may be the only link to it."""
        wrong = []
        if self.left is not None and not 0 <= self.left < self.id:
            wrong.append(self.left)
            self.left = None
        if self.right is not None and not self.id < self.right <= NODE_ID_MAX:
            wrong.append(self.right)
            self.right = None
        return [send for other in wrong for send in self._linearize(other)]

    def _linearize(self, other: NodeId) -> list[Send]:
        if other == self.id or not is_node_id(other):
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
    messages = (Introduce,)

    def spawn(self, id: NodeId, rng: Random) -> SortedNode:
        """A newcomer knows nobody and will ask at the meeting point."""
        return SortedNode(id)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Everybody points at the next id on either side."""
        nodes: list[Node] = []
        for id in range(n):
            node = SortedNode(id)
            node.left, node.right = (id - 1 if id else None), (id + 1 if id < n - 1 else None)
            nodes.append(node)
        return nodes

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary neighbours, oneself included, or none."""
        assert isinstance(node, SortedNode)
        node.left, node.right = rng.choice([*ids, None]), rng.choice([*ids, None])

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Somebody is introduced to somebody."""
        return rng.choice(ids), Introduce(rng.choice(ids))

    def may_crash(self, node: Node) -> bool:
        """All but the meeting point."""
        return node.id != MEETING_POINT

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Compare with the sorted line of the live ids; nobody may yet hear of one who is gone."""
        line = sorted(states)
        expected = zip(line, [None, *line], [*line[1:], None], strict=False)
        found = []
        for id, left, right in expected:
            state = states[id]
            assert isinstance(state, SortedState)
            if (state.left, state.right) != (left, right):
                detail = f"has {state.left}, {state.right}; should have {left}, {right}"
                found.append(Violation("sorted", id, detail))
        for target, message in channel:
            if isinstance(message, Introduce) and target in states and message.id not in states:
                found.append(Violation("channel", target, f"will hear of {message.id}"))
        return found
