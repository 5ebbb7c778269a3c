"""Overlays and drivers with one bug each, to show that the checks bite.

planaria sim tests/broken.py:DeafToFailure --n 12 --nemesis crash
"""

from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Deliver, Effects, Node, Send
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.simulator.engine import Entry, Simulator
from toys import Note, sorted_list

SortedList = type(sorted_list())
SortedNode = type(sorted_list().spawn(1, Random(1)))


class ForgetfulNode(SortedNode):  # type: ignore[valid-type,misc]
    """Drops the farther neighbour instead of handing it on."""

    def _linearize(self, other: NodeId) -> list[Send]:
        super()._linearize(other)
        return []


class DeafNode(SortedNode):  # type: ignore[valid-type,misc]
    """Does not care about links that are down."""

    def on_command(self, command: Command) -> Effects:
        return []


class HashingNode(SortedNode):  # type: ignore[valid-type,misc]
    """Sends in the order of a set of strings."""

    def on_timeout(self) -> Effects:
        texts = {f"{effect.target}" for effect in super().on_timeout()} | {"0", "1", "2", "3"}
        return [Send(int(text), Note(self.id)) for text in texts]


class RaisingNode(SortedNode):  # type: ignore[valid-type,misc]
    """Takes a false message for an error."""

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        raise KeyError("who is that?")


class RepeatingNode(SortedNode):  # type: ignore[valid-type,misc]
    """Hands one publication to its application again and again."""

    def on_timeout(self) -> Effects:
        return [Deliver.one("news", b"id", b"again"), *super().on_timeout()]


class _Broken(SortedList):  # type: ignore[valid-type,misc]
    node: type[Node]

    def spawn(self, id: NodeId, rng: Random) -> Node:
        return self.node(id)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        nodes = [self.node(right.id) for right in super().legitimate(n, rng)]
        for node, right in zip(nodes, super().legitimate(n, rng), strict=True):
            node.restore(right.snapshot())
        return nodes


class Forgetful(_Broken):
    name, node = "tests/broken.py:Forgetful", ForgetfulNode


class DeafToFailure(_Broken):
    name, node = "tests/broken.py:DeafToFailure", DeafNode


class HashOrder(_Broken):
    name, node = "tests/broken.py:HashOrder", HashingNode


class Raising(_Broken):
    name, node = "tests/broken.py:Raising", RaisingNode


class Repeating(_Broken):
    name, node = "tests/broken.py:Repeating", RepeatingNode


class ChattyState(State):
    """Whether it is sane."""

    sane: bool


class ChattyNode(Node):
    """Tells itself what it hears, so its inbox is never empty; repairs itself at timeouts."""

    state_type = ChattyState

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.sane = False

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        return [Send(self.id, message)]

    def on_timeout(self) -> Effects:
        self.sane = True
        return []


class Chatty(Overlay):
    """Nodes that talk without end. Nothing is wrong with it: a fair driver heals it."""

    name = "tests/broken.py:Chatty"

    def spawn(self, id: NodeId, rng: Random) -> Node:
        return ChattyNode(id)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        return [self.spawn(id, rng) for id in range(n)]

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        assert isinstance(node, ChattyNode)
        node.sane = False

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        return rng.choice(ids), Note(1)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        return [
            Violation("sane", id, "is not")
            for id, state in states.items()
            if isinstance(state, ChattyState) and not state.sane
        ]


class UnfairSimulator(Simulator):
    """Runs a timeout only when nothing is on its way to the node."""

    def _run_timeout(self, entry: Entry) -> None:
        if any(target == entry.target for target, _ in self.channel()):
            self._put(self.tick + 1, entry)
        else:
            super()._run_timeout(entry)
