"""Doors through which faults reach the engine: the links, and the moment of persisting."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message


class LinkRule(Protocol):
    """A way in which links misbehave: changes the delays of a message's copies, none means lost."""

    def apply(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """The delays in ticks of the copies of `message` that still arrive."""

    def delay_max(self, ticks: int) -> int:
        """The longest that a message takes with this rule, if it took at most `ticks` without."""


class PowerCut(Struct, frozen=True):
    """What becomes of a node at its next `Persist`: nothing that follows is performed.

    `after`: what it persists then is on disk; otherwise only what it persisted before.
    """

    after: bool
    happen: Callable[[], None]
