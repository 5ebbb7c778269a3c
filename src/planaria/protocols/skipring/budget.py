"""How many configurations one supervisor process may send between two timeouts, over all topics."""

from collections.abc import Sequence
from sys import maxsize

from planaria.core.state import State, Stateful

TOPIC_SHARE = 2  # configurations per timeout for each topic: one in turn, one that was asked for


class BudgetState(State):
    """What may be sent before the next timeout, by all and by the topic whose turn it is."""

    limit: int
    cap: int
    spent: int


class Budget(Stateful):
    """What the topics of one process share; without limits until it is first refilled.

    A topic alone is bounded by its own rate. Many topics together get what one topic with as many
    members would: all members within about log n timeouts; but each enough to come to rest.
    """

    __slots__ = ("cap", "limit", "spent")

    state_type = BudgetState

    def __init__(self) -> None:
        self.limit = maxsize
        self.cap = maxsize
        self.spent = 0

    def refill(self, sizes: Sequence[int], rate: int) -> None:
        """A timeout: topics of these sizes, the fastest of which has `rate`, share n / log n.

        With less than `TOPIC_SHARE` for each, members of many small topics ask again before they
        are answered: queues grow, and no topic ever calms down.
        """
        n = max(0, sum(sizes))
        shared = max(n // max(1, n.bit_length()), TOPIC_SHARE * len(sizes))
        self.limit, self.cap = max(rate, shared), maxsize
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
