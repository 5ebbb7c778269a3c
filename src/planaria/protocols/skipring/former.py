"""Whom a member lost when a supervisor that rebuilds the ring moved it: flooded for a while.

Such a supervisor knows nobody at first: it tells the first member that it is alone, the next that
it has one neighbour. What these publish or pass on would reach only each other. No rule of the ring
reads it, but that their topic is not calm: broadcasts do, whose receivers take nothing twice.
"""

from collections.abc import Iterable

from planaria.core.ids import NodeId, is_node_id
from planaria.core.state import State, Stateful

FORMER_MAX = 256  # a node has at most 2 * 62 neighbours, and a few places while a ring is rebuilt
FORMER_TIMEOUTS = 8  # for which each is flooded: the ring around it is known again by then


class FormerState(State):
    """The former neighbours, each with the intervals for which it is still flooded."""

    left: dict[int, int]


class Former(Stateful):
    """The former neighbours of node `id`: at most `FORMER_MAX`, each for `FORMER_TIMEOUTS`."""

    __slots__ = ("id", "left")
    state_type = FormerState

    def __init__(self, id: NodeId) -> None:
        self.id = id
        self.left: dict[NodeId, int] = {}

    def __bool__(self) -> bool:
        return bool(self.left)

    def lose(self, ids: Iterable[NodeId]) -> None:
        """These are neighbours no more; of too many the last to be lost are kept."""
        for id in ids:
            self.left.pop(id, None)
            self.left[id] = FORMER_TIMEOUTS
        self.repair()

    def forget(self, id: NodeId) -> None:
        """A send to `id` failed: do without it."""
        self.left.pop(id, None)

    def age(self, intervals: int = 1) -> None:
        """So many intervals have passed."""
        if self.left:
            self.repair()
            self.left = {id: left - intervals for id, left in self.left.items() if left > intervals}

    def repair(self) -> None:
        """Keep what may have been a neighbour, for as long as one is kept, and no more of them."""
        kept = [(id, left) for id, left in self.left.items() if self._sound(id, left)]
        self.left = dict(kept[-FORMER_MAX:])

    def _sound(self, id: NodeId, left: int) -> bool:
        return 0 < left <= FORMER_TIMEOUTS and id != self.id and is_node_id(id)
