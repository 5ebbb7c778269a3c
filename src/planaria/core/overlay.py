"""What a driver, a checker or a campaign needs to know of an overlay: make it, break it, judge it.

Each protocol family implements `Overlay` once. Legitimacy is part of the product: `doctor` prints
it, tests and sweeps stand on it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from planaria.core.errors import unknown
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Node, Subscribe
from planaria.core.state import State

if TYPE_CHECKING:
    from planaria.core.book import Book
    from planaria.core.workload import Ask

Channel = Iterable[tuple[NodeId, Message]]  # messages in flight, each with its target


GARBAGE_NAMED = 0.75  # of it comes from whom it names


class Violation(Struct, frozen=True):
    """One invariant of the legitimate state that does not hold, and where."""

    invariant: str
    node: NodeId | None
    detail: str

    def __str__(self) -> str:
        where = "" if self.node is None else f" at {self.node}"
        return f"{self.invariant}{where}: {self.detail}"


class Start(Struct):
    """A first state: nodes, messages already in flight, and faults that belong to the start."""

    nodes: list[Node]
    channel: list[tuple[NodeId, Message]] = []
    schedule: str = ""


class Overlay(ABC):
    """One family of nodes that form a network together."""

    name: ClassVar[str]
    messages: ClassVar[tuple[type[Message], ...]] = ()  # what its nodes say to each other
    starts: ClassVar[tuple[str, ...]] = ("fresh", "legitimate", "corrupt")
    # Legitimate interval ends in a row before we believe it: one may be luck, and a counter that
    # a fault left half-way (a suspicion, say) must have run out.
    calm: ClassVar[int] = 3
    # The longest a message may take, in intervals, for `bound` to be a promise: a failure detector
    # that waits cannot tell a slower one from a dead sender. Beyond it safety alone is judged.
    delay_max: ClassVar[float] = inf

    # Is nothing delivered twice, even while it heals? Otherwise `violations` is what judges it.
    delivers_once: ClassVar[bool] = True

    @abstractmethod
    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A new node that knows nothing but how to join."""

    @abstractmethod
    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """A network of `n` members that is legitimate from the first tick on."""

    @abstractmethod
    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Give the variables of `node` arbitrary values; `ids` are the ids that may be named."""

    @abstractmethod
    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An arbitrary message in flight to one of `ids`."""

    def speaker(self, message: Message) -> NodeId | None:
        """In whose name `message` speaks; None: in nobody's, or rules do not ask who sent it."""
        return None

    def link_of(self, message: Message, ids: Sequence[NodeId], rng: Random) -> NodeId | None:
        """On whose link a start or a fault leaves `message`, which is garbage; None: on nobody's.

        Often on the link of the node it names, or rules that ask would never meet garbage.
        """
        named = self.speaker(message)
        if named is not None and rng.random() < GARBAGE_NAMED:
            return named
        return rng.choice([None, *ids])

    @abstractmethod
    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Every invariant of the legitimate state that fails; empty means legitimate.

        A function of its arguments alone: asked twice it says the same.
        """

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """`n` members that all join at once."""
        return [self.spawn(id, rng) for id in range(n)]

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """The first state called `name`: `rng` draws the state, `protocol` goes to the nodes."""
        if name not in self.starts:
            raise unknown("start", name, self.starts)
        if name == "fresh":
            return Start(self.fresh(n, protocol))
        nodes = self.legitimate(n, protocol)
        if name == "legitimate":
            return Start(nodes)
        ids = [node.id for node in nodes]
        for node in nodes:
            self.corrupt(node, ids, rng)
        return Start(nodes, [self.forge(ids, rng) for _ in range(2 * n)])

    def bound(self, n: int, delay: float) -> int:
        """Intervals after the last fault within which a network of `n` nodes is legitimate.

        `delay` is the longest that a message takes, in intervals. An overlay that states no bound
        of its own is given a hundred waits, and time for news to walk a line of all nodes there
        and back, twice.
        """
        return ceil((1 + delay) * (100 + 4 * n))

    def unnoticed(self, n: int) -> int:
        """Intervals that it may take longer where nobody is told that a send failed."""
        return 0

    def leave(self, node: Node) -> Command | None:
        """The command with which `node` leaves in good order; None if it may not leave."""
        return None

    def may_crash(self, node: Node) -> bool:
        """May a schedule crash this node and still expect the rest to heal?"""
        return True

    def publication(self, id: NodeId, number: int) -> Command | None:
        """What the application at `id` publishes as the `number`-th of a workload.

        None: there is none at `id`, or it publishes nothing. A node that cannot refuses.
        """
        return None

    def subscriptions(self, id: NodeId) -> Sequence[Subscribe]:
        """What the application at a new node `id` is subscribed to from the beginning."""
        return ()

    def everyday(self, interval: int) -> "Sequence[Ask]":
        """What applications ask for in this interval of a run, besides what a scenario says."""
        return ()

    def arrival(self, delay: float) -> float:
        """Intervals in which a publication arrives if no message takes longer than `delay`."""
        return 0

    def book(self) -> "Book | None":
        """A new book for a run, if what the applications get is to be judged; None: it is not."""
        return None

    def observer(self) -> Any:
        """Who must watch a run of this overlay, from its first node on; None: nobody.

        A world in which nodes move needs the driver's time, say.
        """
        return None

    def called(self, id: NodeId) -> str:
        """What people call a node in a sentence: its number, or what it is."""
        return str(id)

    def whereabouts(self) -> Mapping[NodeId, tuple[float, float]]:
        """Where nodes are now, x and y from 0 to 1, for who draws them; empty: it has no map."""
        return {}

    def population(self, states: Mapping[NodeId, State]) -> int:
        """How many the network is there for; a supervisor, say, only serves them."""
        return len(states)

    def totals(self, states: Mapping[NodeId, State]) -> dict[str, int]:
        """Counts that only grow; a trial reports them, and their rates once legitimate."""
        return {}

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """Figures about the present state, for people and programs."""
        return {"nodes": len(states)}
