"""How links between nodes misbehave; each rule counts what it did: no fault is a no-op unnoticed.

A frame comes with the seconds after which it is to be processed, a list of one; what a rule returns
are the seconds of all copies that still are. A rule acts where a frame comes in: who hears nothing
of another is cut off from it in one direction.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

from planaria.core.errors import UsageError, unknown
from planaria.core.ids import NodeId
from planaria.network.frames import Kind

MESSAGES = (Kind.CONTROL, Kind.BULK)  # the frames that carry messages of protocols
SECONDS_MAX = 60.0  # for which a frame is held back at most


class Rule(ABC):
    """A rule on all frames that come in from other nodes."""

    def __init__(self, options: Mapping[str, Any], rng: Random) -> None:
        self.affected = 0
        self.rng = rng
        self.nodes: Collection[NodeId] | None = None  # whose frames it is about; None: everybody's
        if "nodes" in options:
            self.nodes = frozenset(options["nodes"])
        self.rate = float(options.get("rate", 0.0))
        self.seconds = min(float(options.get("seconds", 0.0)), SECONDS_MAX)

    def about(self, sender: NodeId) -> bool:
        """Is it about frames of this node?"""
        return self.nodes is None or sender in self.nodes

    def holds(self, sender: NodeId, kind: int) -> bool:
        """Is a frame kept until the rule ends, and all that follow it?"""
        return False

    def body(self, kind: int, data: bytes) -> bytes:
        """What stands in the frame."""
        return data

    @abstractmethod
    def change(self, kind: int, copies: list[float]) -> list[float]:
        """The seconds of the copies that are still processed."""

    def apply(self, sender: NodeId, kind: int, copies: list[float]) -> list[float]:
        """What becomes of the copies of one frame."""
        if not self.about(sender):
            return copies
        changed = self.change(kind, copies)
        self.affected += changed != copies
        return changed


class Partition(Rule):
    """Nothing of `nodes` is heard. As with TCP it is not lost but late, if the link outlives it."""

    def holds(self, sender: NodeId, kind: int) -> bool:
        """Everything."""
        return self.about(sender)

    def change(self, kind: int, copies: list[float]) -> list[float]:
        """What is not held passes."""
        return copies


class Busy(Rule):
    """Messages wait, unacknowledged, until windows are full; the link itself is alive."""

    def holds(self, sender: NodeId, kind: int) -> bool:
        """Messages alone."""
        return kind in MESSAGES and self.about(sender)

    def change(self, kind: int, copies: list[float]) -> list[float]:
        """What is not held passes."""
        return copies


class Loss(Rule):
    """Loses a message with probability `rate`; it counts as processed, which no TCP would say."""

    def change(self, kind: int, copies: list[float]) -> list[float]:
        """Drop copies of messages."""
        if kind not in MESSAGES:
            return copies
        return [it for it in copies if self.rng.random() >= self.rate]


class Duplicate(Rule):
    """Processes a message again with probability `rate`, up to `seconds` later."""

    def change(self, kind: int, copies: list[float]) -> list[float]:
        """Add a copy of a message."""
        if kind in MESSAGES and copies and self.rng.random() < self.rate:
            return [*copies, copies[0] + self.rng.random() * self.seconds]
        return copies


class Slow(Rule):
    """Every frame takes `seconds` longer, in its order."""

    def change(self, kind: int, copies: list[float]) -> list[float]:
        """Delay."""
        return [it + self.seconds for it in copies]


class Reorder(Rule):
    """Holds back a message for up to `seconds` with probability `rate`: later ones overtake it."""

    def change(self, kind: int, copies: list[float]) -> list[float]:
        """Delay a message."""
        if kind in MESSAGES and self.rng.random() < self.rate:
            return [it + self.rng.random() * self.seconds for it in copies]
        return copies


class Scramble(Rule):
    """Loses or doubles a message, or has arbitrary bytes in its place, with probability `rate`.

    Not the same bytes but for one: frames are authenticated, and who could alter one could say
    anything in a publisher's name.
    """

    def body(self, kind: int, data: bytes) -> bytes:
        """Arbitrary bytes for every other message that it is about."""
        if kind not in MESSAGES or not data or self.rng.random() >= self.rate / 2:
            return data
        self.affected += 1
        return self.rng.randbytes(len(data))

    def change(self, kind: int, copies: list[float]) -> list[float]:
        """Lose or double the others."""
        if kind not in MESSAGES or self.rng.random() >= self.rate / 2:
            return copies
        return self.rng.choice(([], [*copies, 0.0]))


RULES: dict[str, type[Rule]] = {
    "partition": Partition,
    "busy": Busy,
    "loss": Loss,
    "duplicate": Duplicate,
    "slow": Slow,
    "reorder": Reorder,
    "scramble": Scramble,
}


def make_rule(name: str, options: Mapping[str, Any], rng: Random) -> Rule:
    """The rule of this name; raises UsageError."""
    if name not in RULES:
        raise unknown("rule", name, RULES)
    try:
        return RULES[name](options, rng)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: {error}") from None
