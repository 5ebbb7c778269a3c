"""Two toy nodes of which the answer of every search is known by hand."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Node, Send
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.verify.coins import Coins
from planaria.verify.model import Flying, Model

STEP = 1


class Word(Message, frozen=True, tag="toy.word"):
    """A number."""

    value: int


class ToyState(State):
    """A number."""

    value: int


class Toy(Node):
    """Two of them; `rule` says what they do."""

    state_type = ToyState

    def __init__(self, id: NodeId, rule: str, rng: Random) -> None:
        super().__init__(id)
        self.rule, self.rng, self.value = rule, rng, 0

    def on_timeout(self) -> Effects:
        if self.rule == "swaps":  # for ever 1, 2, 1, 2
            self.value = 3 - self.value if self.value else 0
        elif self.rule == "coin" and self.value:
            self.value = 0 if self.rng.random() < 0.1 else 3 - self.value
        elif self.rule == "tells":
            return [Send(1 - self.id, Word(0))]
        elif self.rule == "leaves":
            self.value = (self.value + STEP) % 3
        elif self.rule == "raises" and self.value == 2:
            raise ZeroDivisionError("two")
        elif self.rule == "chats" and self.value:
            return [Send(1 - self.id, Word(7))]
        return []

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        assert isinstance(message, Word)
        if message.value == 7:
            return [Send(1 - self.id, Word(7))]
        self.value = message.value
        return []


class ToyModel(Model):
    """Legitimate: both at 0."""

    name = "toy"
    messages = (Word,)
    starts: ClassVar[tuple[str, ...]] = (
        "swaps",
        "coin",
        "tells",
        "stuck",
        "leaves",
        "raises",
        "chats",
    )

    @property
    def covered(self) -> str:
        return "all values of 0..2"

    def nodes(self, coins: Coins) -> list[Node]:
        return [Toy(id, self.start, coins) for id in (0, 1)]

    def choices(self) -> dict[NodeId, list[State]]:
        values: list[State] = [ToyState(it) for it in range(3)]
        return {0: values, 1: values}

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        wrong = [id for id, it in states.items() if it != ToyState(0)]
        return [Violation("zero", id, "is not") for id in wrong]
