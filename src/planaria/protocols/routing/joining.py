"""Which subscriptions wait to be in force: until each neighbour has acknowledged its leases."""

from collections.abc import Collection

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.node import Joined
from planaria.core.state import State, Stateful

JOINING_MAX = 10_000  # subscriptions that wait; of more the first are not reported


class Waiting(Struct):
    """A subscription, and the neighbours that have not acknowledged it: 1 if they were asked."""

    pattern: str
    client: int
    neighbours: dict[int, int]


class JoiningState(State):
    """Who waits for whom, and the stamps that each neighbour has still to acknowledge."""

    waiting: list[Waiting]
    asked: dict[int, list[int]]


class Joining(Stateful):
    """A renewal carries every lease that a neighbour must know. So a subscription is in force at a
    neighbour when it has acknowledged all messages of a renewal that began after it."""

    __slots__ = ("asked", "waiting")

    state_type = JoiningState

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self.asked: dict[int, list[int]] = {}

    def begin(self, pattern: str, client: int, audience: Collection[NodeId]) -> None:
        """A client subscribes; these neighbours must know."""
        self.end(pattern, client)
        self.waiting.append(Waiting(pattern, client, dict.fromkeys(audience, 0)))
        del self.waiting[:-JOINING_MAX]

    def end(self, pattern: str, client: int) -> None:
        """A client unsubscribes."""
        self.waiting = [it for it in self.waiting if (it.pattern, it.client) != (pattern, client)]

    def asks(self, neighbour: NodeId) -> bool:
        """Does anybody wait for this neighbour?"""
        return any(neighbour in it.neighbours for it in self.waiting)

    def ask(self, neighbour: NodeId, stamps: list[int]) -> None:
        """A renewal went out in messages with these stamps; earlier ones need no answer."""
        self.asked[neighbour] = stamps
        for it in self.waiting:
            if neighbour in it.neighbours:
                it.neighbours[neighbour] = 1

    def acknowledge(self, neighbour: NodeId, stamps: Collection[int]) -> None:
        """A neighbour has taken these messages."""
        if neighbour not in self.asked:
            return
        self.asked[neighbour] = [it for it in self.asked[neighbour] if it not in stamps]
        if not self.asked[neighbour]:
            del self.asked[neighbour]
            for it in self.waiting:
                if it.neighbours.get(neighbour) == 1:
                    del it.neighbours[neighbour]

    def joined(self, audience: Collection[NodeId]) -> list[Joined]:
        """Those for whom nobody is waited any more; who is no neighbour now needs not know."""
        self.asked = {it: stamps for it, stamps in self.asked.items() if it in audience}
        found, waiting = [], []
        for it in self.waiting:
            it.neighbours = {id: asked for id, asked in it.neighbours.items() if id in audience}
            if it.neighbours:
                waiting.append(it)
            else:
                found.append(Joined(it.pattern, it.client))
        self.waiting = waiting
        return found
