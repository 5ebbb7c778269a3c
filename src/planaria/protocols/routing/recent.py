"""What a broker remembers of notifications: ids against duplicates, recent ones for replay.

Both are kept in generations: the oldest is thrown away when the youngest is old enough. So
whatever a fault put there is gone after as many periods.
"""

from collections.abc import Container, Iterator, Sequence

from msgspec import Struct, structs

from planaria.core.ids import NodeId
from planaria.core.state import State, Stateful
from planaria.protocols.routing.notifications import Notification, is_sound

SEEN_MAX = 200_000  # ids of one generation, 20 MB; more in one period are refused
RECENT_MAX = 20_000  # notifications of one generation kept for replay
GENERATIONS = 4  # of ids: three full periods and the one that is running
REPLAYED_PERIODS = 2  # a notification is replayed while it is younger


class Recent(Struct):
    """A notification, the neighbours known to hold it, and the memory's age when it came."""

    body: Notification
    holders: list[int]
    arrived: int = 0


class MemoryState(State):
    """Ids and notifications by generation, the youngest first, and the age of the youngest."""

    age: int
    seen: list[dict[bytes, None]]
    recent: list[dict[bytes, Recent]]


class Memory(Stateful):
    """Ids seen for at least 3 periods, notifications kept for at least one.

    A notification is replayed for two periods of its life at most, wherever it spends them, and
    takes less than a third one to get everywhere: whoever had it still knows its id.
    """

    __slots__ = ("age", "period", "recent", "seen")

    state_type = MemoryState

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

    def remember(self, body: Notification, holders: list[NodeId]) -> None:
        """Keep a notification that was just handled."""
        if len(self.recent[0]) >= RECENT_MAX:
            self.recent = [{}, *self.recent[:1]]
        self.seen[0][body.id] = None
        self.recent[0][body.id] = Recent(body, holders, self.age)

    def too_old(self, body: Notification) -> bool:
        """Has brokers' keeping made this notification older than their memory for ids allows?"""
        return too_old(body, self.period)

    def lately(self) -> list[Recent]:
        """The notifications kept for replay, oldest first."""
        return [it for generation in reversed(self.recent) for it in generation.values()]

    def sendable(self, id: bytes) -> Notification | None:
        """A notification as old as it is, if it may still be sent."""
        for generation, kept in enumerate(self.recent):
            if id in kept:
                return _aged(kept[id], generation, self.age, self.period)
        return None

    def can_send(self, id: bytes) -> bool:
        """May this notification still be sent?"""
        for generation, kept in enumerate(self.recent):
            if id in kept:
                return _age(kept[id], generation, self.age, self.period) is not None
        return False

    def replayed(self, holder: NodeId) -> Iterator[Notification]:
        """What `holder` is not known to have, each as old as it is, the oldest first."""
        return replayed(self.age, self.recent, self.period, holder)

    def held(self, id: bytes, holder: NodeId) -> None:
        """`holder` says that it has this."""
        for generation in self.recent:
            if id in generation and holder not in generation[id].holders:
                generation[id].holders.append(holder)

    def forget_holder(self, neighbour: NodeId) -> None:
        """A neighbour begins anew, or is one no more: what it had may be gone."""
        for it in self.lately():
            if neighbour in it.holders:
                it.holders = [id for id in it.holders if id != neighbour]


def replayed(
    age: int, recent: Sequence[dict[bytes, Recent]], period: int, holder: NodeId,
    known: Container[bytes] = (),
) -> Iterator[Notification]:  # fmt: skip
    """What a memory still sends to `holder`; ids that are `known` are left out early."""
    for generation, kept in reversed([*enumerate(recent[:REPLAYED_PERIODS])]):
        for it in kept.values():
            if holder not in it.holders and it.body.id not in known:
                found = _aged(it, generation, age, period)
                if found is not None:
                    yield found


def too_old(body: Notification, period: int) -> bool:
    """Is this older than brokers remember ids for?"""
    return not 0 <= body.age < REPLAYED_PERIODS * period


def _aged(it: Recent, generation: int, age: int, period: int) -> Notification | None:
    """As old as it is now; None if that is too old, or nobody can have published it."""
    now = _age(it, generation, age, period)
    return None if now is None else structs.replace(it.body, age=now)


def _age(it: Recent, generation: int, age: int, period: int) -> int | None:
    """How old it is now; None if that is too old, or nobody can have published it."""
    body = it.body
    if too_old(body, period):
        return None
    # When it came may be false: the earlier, the sooner it is too old.
    arrived = it.arrived if 0 <= it.arrived < period else 0
    now = body.age + max(0, age + generation * period - arrived)
    return now if now < REPLAYED_PERIODS * period and is_sound(body) else None
