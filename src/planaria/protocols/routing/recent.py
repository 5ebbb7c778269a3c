"""What a broker remembers of notifications: ids against duplicates, recent ones for replay.

Both are kept in two generations: the older one is thrown away when the younger is old enough. So
whatever a fault put there is gone after two of its periods.
"""

from collections.abc import Container, Iterator
from copy import deepcopy
from typing import Any

from msgspec import Struct, structs

from planaria.core.ids import NodeId
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.notifications import is_sound

SEEN_MAX = 200_000  # ids of one generation, 20 MB; more in one period are refused
RECENT_MAX = 20_000  # notifications of one generation kept for replay
GENERATIONS = 4  # of ids: three full periods and the one that is running
REPLAYED_PERIODS = 2  # a notification is replayed while it is younger


class Recent(Struct):
    """A notification and the neighbours that have it, as far as this broker did its part."""

    message: Notify
    holders: list[NodeId]
    arrived: int = 0  # the memory's age when it came


class Memory:
    """Ids seen for at least 3 periods, notifications kept for at least one.

    A notification is replayed for two periods of its life at most, wherever it spends them, and
    takes less than a third one to get everywhere: whoever had it still knows its id.
    """

    __slots__ = ("age", "period", "recent", "seen")

    def __init__(self, period: int) -> None:
        self.period = period
        self.age = 0
        self.seen: list[dict[bytes, None]] = [{} for _ in range(GENERATIONS)]
        self.recent: list[dict[bytes, Recent]] = [{} for _ in range(REPLAYED_PERIODS)]

    @property
    def full(self) -> bool:
        """Are there as many ids of this period as can be remembered? One more could come twice."""
        return len(self.seen[0]) >= SEEN_MAX

    def repair(self) -> None:
        """As many generations as there must be, whatever a fault made of them."""
        if len(self.seen) != GENERATIONS:
            self.seen = [*self.seen, *({} for _ in range(GENERATIONS))][:GENERATIONS]
        if len(self.recent) != REPLAYED_PERIODS:
            self.recent = [*self.recent, *({} for _ in range(REPLAYED_PERIODS))][:REPLAYED_PERIODS]

    def tick(self) -> None:
        """Time passes; at the end of a period the oldest generation is forgotten."""
        self.age += 1
        if not 0 <= self.age < self.period:
            self.age = 0
            self.seen = [{}, *self.seen[: GENERATIONS - 1]]
            self.recent = [{}, *self.recent[:1]]

    def knows(self, id: bytes) -> bool:
        """Has this notification been here lately?"""
        return any(id in generation for generation in self.seen)

    def remember(self, message: Notify, holders: list[NodeId]) -> None:
        """Keep a notification that was just handled."""
        if len(self.recent[0]) >= RECENT_MAX:
            self.recent = [{}, *self.recent[:1]]
        self.seen[0][message.id] = None
        self.recent[0][message.id] = Recent(message, holders, self.age)

    def too_old(self, message: Notify) -> bool:
        """Has brokers' keeping made this notification older than their memory for ids allows?"""
        return not 0 <= message.age < REPLAYED_PERIODS * self.period

    def lately(self) -> list[Recent]:
        """The notifications kept for replay, oldest first."""
        return [it for generation in reversed(self.recent) for it in generation.values()]

    def replayed(self, holder: NodeId, known: Container[bytes] = ()) -> Iterator[Notify]:
        """What `holder` does not have, each as old as it is; the caller says what it takes.

        Payloads that are `known` are left out before anything dear is done with them.
        """
        for generation, kept in ((1, self.recent[1]), (0, self.recent[0])):
            for it in kept.values():
                if holder in it.holders or it.message.payload in known:
                    continue
                if not self.too_old(it.message):
                    # When it came may be false: the earlier, the sooner it is too old.
                    arrived = it.arrived if 0 <= it.arrived < self.period else 0
                    waited = max(0, self.age + generation * self.period - arrived)
                    message = structs.replace(it.message, age=it.message.age + waited)
                    if not self.too_old(message) and is_sound(message):
                        yield message

    def sent(self, message: Notify, holder: NodeId) -> None:
        """`holder` was sent this."""
        for generation in self.recent:
            if message.id in generation:
                generation[message.id].holders.append(holder)

    def forget_holder(self, neighbour: NodeId) -> None:
        """A link came up or went down: what was sent over it may not have arrived."""
        for it in self.lately():
            if neighbour in it.holders:
                it.holders.remove(neighbour)

    def snapshot(self) -> dict[str, Any]:
        """A copy of what is remembered."""
        return deepcopy({"age": self.age, "seen": self.seen, "recent": self.recent})

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored memory."""
        copied = deepcopy(snapshot)
        self.age, self.seen, self.recent = copied["age"], copied["seen"], copied["recent"]
