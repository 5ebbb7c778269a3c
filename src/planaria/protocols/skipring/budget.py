"""How many configurations one supervisor process may send between two timeouts, over all topics."""

from collections.abc import Iterable
from sys import maxsize

from planaria.core.state import State, Stateful


class BudgetState(State):
    """What may be sent before the next timeout, by all and by the topic whose turn it is."""

    limit: int
    cap: int
    spent: int


class Budget(Stateful):
    """What the topics of one process share; without limits until it is first refilled.

    A topic alone is bounded by its own rate. Many topics together get what one topic with as many
    members would: all members within about log n timeouts.
    """

    __slots__ = ("cap", "limit", "spent")

    state_type = BudgetState

    def __init__(self) -> None:
        self.limit = maxsize
        self.cap = maxsize
        self.spent = 0

    def refill(self, sizes: Iterable[int], rate: int) -> None:
        """A timeout: topics of these sizes, the fastest of which has `rate`, share n / log n."""
        n = max(0, sum(sizes))
        self.limit, self.cap = max(rate, n // max(1, n.bit_length())), maxsize
        self.spent = 0

    def share(self, topics: int) -> None:
        """Let the next of `topics` that still wait have its part and no more."""
        left = max(0, self.limit - self.spent)
        self.cap = self.spent + -(-left // max(1, topics))

    def open(self) -> None:
        """Whoever comes first may have what is left."""
        self.cap = maxsize

    def left(self, rate: int) -> int:
        """How many a topic with this rate may still send."""
        return max(0, min(max(self.limit, rate), self.cap) - self.spent)
