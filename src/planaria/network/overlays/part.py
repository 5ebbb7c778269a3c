"""What a node's part in an overlay is to its clients: one shape for all overlays beside `ring`.

What is published travels in a record here too: so a repeat is known by its key, wherever it went
in.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from random import Random
from typing import ClassVar

from msgspec.structs import replace

from planaria.core.composite import Part
from planaria.core.ids import NodeId, is_node_id
from planaria.core.message import Message
from planaria.core.node import Delivery, Publish
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.network.status import OverlayStatus, OverlayTopic
from planaria.records.record import MalformedRecord, Record, decode

DOUBTS_SHOWN = 20
NUMBER_MAX = 1 << 53  # a fault may leave any number in memory; JSON's readers know these

Publications = Iterator[tuple[Publish, Record]]


class LivePart(Part):
    """A part, and how clients use it: what they may ask, what they publish, what they are told."""

    kinds: ClassVar[tuple[type[Message], ...]]
    state_type: ClassVar[type[State]]
    has_conditions: ClassVar[bool] = False
    anonymous: ClassVar[bool] = False
    carries: ClassVar[bool] = False  # is it a member of topics for its neighbours' sake?
    durable: ClassVar[bool] = False  # is what this node holds worth a disk before it is told?
    # For which nobody must use what was joined for clients, before it is left.
    release_seconds: ClassVar[float] = 60.0
    full: ClassVar[str] = ""  # what who wants one topic too many is told; empty: ask another node
    invariants: ClassVar[tuple[str, ...]]  # all that `violations` may name
    received = forwarded = 0  # copies of publications, from and to other nodes

    @abstractmethod
    def __init__(self, id: NodeId, rng: Random) -> None:
        """The part of node `id`."""

    @staticmethod
    @abstractmethod
    def copies(message: Message) -> int:
        """How many publications a message carries."""

    def heard(self, message: Message) -> None:
        """Count what comes."""
        self.received += self.copies(message)

    def said(self, message: Message) -> None:
        """Count what goes."""
        self.forwarded += self.copies(message)

    def wish(self, pattern: str) -> str:
        """The subscription that a pattern needs here; several may need the same.

        Raises UsageError if there is none.
        """
        return pattern

    def acquainted(self, topic: str) -> bool:
        """Has it looked long enough for others who want a topic? Before that nobody might get what
        is published."""
        return True

    def has_room(self, topic: str) -> bool:
        """Does it take what is published? With much that waits to be sent, some would be lost."""
        return True

    def joins(self, topic: str) -> str | None:
        """What a node must subscribe to before it can publish on a topic; None: nothing."""
        return None

    @abstractmethod
    def published(self, topic: str, record: Record) -> Publications:
        """The commands that publish a record, each with the record that readers get.

        Raises UsageError for what cannot be carried.
        """

    def record(self, delivery: Delivery) -> Record | None:
        """What was published; None if it is nothing that a node of the live network published."""
        try:
            return decode(delivery.payload)
        except MalformedRecord:
            return None

    def kept(self) -> bytes:
        """What is worth to be on disk when the process begins again."""
        return self.node.snapshot()

    def resume(self) -> None:
        """The process began again with a stored state: nobody's wishes are left but its own."""

    def leaving(self) -> bool:
        """Was it told to leave, and do others still need it?"""
        return False

    def let_go(self) -> set[str]:
        """What neighbours have left since this was last asked: who is in it for them alone leaves
        as well."""
        return set()

    @abstractmethod
    def wishes(self) -> list[str]:
        """What it is subscribed to, or publishes on, for whomever."""

    @staticmethod
    @abstractmethod
    def bound(n: int, delay: float) -> int:
        """Intervals in which `n` nodes heal if no message takes longer than `delay`."""

    @abstractmethod
    def judged(self) -> State:
        """The state that a judge of the whole network needs: without publications."""

    @staticmethod
    @abstractmethod
    def violations(states: Mapping[NodeId, State]) -> list[Violation]:
        """Every invariant that fails in the states of all live parts, taken one after another."""

    @abstractmethod
    def doubts(self) -> Iterator[str]:
        """What it knows to be wrong with its own place."""

    @abstractmethod
    def topics(self) -> dict[str, OverlayTopic]:
        """What it takes part in."""

    @abstractmethod
    def neighbours(self) -> list[NodeId]:
        """Whom it talks to."""

    def status(self) -> OverlayStatus:
        """How it is, as far as it can know."""
        doubts = [*self.doubts()]
        topics = {
            name: replace(it, members=None if it.members is None else _number(it.members))
            for name, it in self.topics().items()
        }
        return OverlayStatus(
            topics=topics,
            neighbours=[id for id in self.neighbours() if is_node_id(id)],
            legitimate=not doubts,
            doubts=doubts[:DOUBTS_SHOWN],
            received=self.received,
            forwarded=self.forwarded,
        )


def _number(value: int) -> int:
    return max(0, min(value, NUMBER_MAX))
