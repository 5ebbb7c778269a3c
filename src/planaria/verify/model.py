"""What a search needs to know of a protocol, and the small constants it is searched with."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from random import Random
from typing import Any, ClassVar

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Node
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.verify.coins import Coins

Flying = tuple[NodeId | None, NodeId, Message]  # on whose link, to whom, what
Constants = Mapping[str, Any]  # 'module:NAME' of a constant of a protocol, and its value


class First(Struct):
    """A first state: the variables of every node, and what is in flight."""

    states: dict[NodeId, State]
    channel: tuple[Flying, ...] = ()


class Model(ABC):
    """One protocol as a search sees it: who takes part, where it starts, what is right.

    `covered` says in one sentence what the starts are; `constants` are the protocol's own, made
    small; what is sent to nobody alive is lost.
    """

    name: ClassVar[str]
    messages: ClassVar[tuple[type[Message], ...]] = ()
    small: ClassVar[Constants] = {}
    starts: ClassVar[tuple[str, ...]] = ("all",)
    passing: ClassVar[tuple[type[Message], ...]] = ()  # may leave their hearer as it is, always

    def __init__(self, n: int, start: str = "all") -> None:
        if start not in self.starts:
            raise UsageError(f"no starts {start!r}: one of {', '.join(self.starts)}")
        self.n, self.start = n, start

    @property
    def constants(self) -> Constants:
        """The protocol's own constants, made small."""
        return self.small

    @property
    @abstractmethod
    def covered(self) -> str:
        """What the starts are, exactly."""

    @abstractmethod
    def nodes(self, coins: Coins) -> list[Node]:
        """Everybody alive, as made; the search loads the states."""

    @abstractmethod
    def choices(self) -> Mapping[NodeId, Sequence[State]]:
        """What each node may be in a first state."""

    def firsts(self) -> Iterator[First]:
        """Every first state of the set: every choice of every node."""
        choices = self.choices()
        for states in product(*choices.values()):
            yield First(dict(zip(choices, states, strict=True)))

    def draw(self, choices: Mapping[NodeId, Sequence[State]], rng: Random) -> First:
        """One of them at random, where there are too many to try them all."""
        return First({id: rng.choice(states) for id, states in choices.items()})

    @abstractmethod
    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """What is not legitimate; empty: legitimate."""

    def outline(self, state: State) -> Any:
        """All that `hopeless` reads of one node's state."""
        return None

    def hopeless(self, states: Mapping[NodeId, State]) -> bool:
        """Is something not legitimate, whatever these nodes hold beside their outlines?

        A judge that stops there says so of very many states at once.
        """
        return False

    def plain(self, state: State) -> State:
        """The same state without what no rule reads (totals, say), so that equal states meet."""
        return state

    def shifted(self, states: list[State]) -> list[State] | None:
        """The same states counted from elsewhere, where rules read differences alone; None: as is.

        Asked only while nothing is in flight.
        """
        return None

    def forbidden(self, before: State, after: State, effects: Iterable[Effect]) -> str:
        """What one step of a node did that no step may do; empty: nothing."""
        return ""

    def broken(self, states: Mapping[NodeId, State]) -> str:
        """What is never so in any state, legitimate or not, yet is; empty: nothing."""
        return ""


@contextmanager
def constants(values: Constants) -> Iterator[None]:
    """Let the protocols run with these constants, and put the right ones back."""
    before = []
    try:
        for place, value in values.items():
            module, _, name = place.partition(":")
            owner: Any = import_module(module)
            *path, last = name.split(".")
            for part in path:
                owner = getattr(owner, part)
            if not hasattr(owner, last):
                raise UsageError(f"no constant {place}")
            before.append((owner, last, owner.__dict__[last]))
            setattr(owner, last, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)
