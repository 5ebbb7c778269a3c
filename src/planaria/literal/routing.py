"""Leased routing as printed (paper 4, sections 3.1 to 3.4): flags decide what is forwarded.

A chain of brokers, hierarchical, in whole milliseconds. A filter is a set of classes. The readings
that the text leaves open, or that a reader might prefer, are switches of `Printed`.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from msgspec import Struct

Classes = frozenset[str]
DELAY = 25  # of every link, as in section 4.1

Destination = tuple[str, int]  # ("client", number) or ("broker", place in the chain)


class Entry(Struct):
    """A routing entry with its second-chance flag."""

    filter: Classes
    destination: Destination
    flag: int = 1


class Printed:
    """One broker that forwards by flags, as sections 3.1 and 3.4 say.

    `covering`: covering-based instead of identity-based. `reinserts`: before an entry is inserted,
    entries with its id are removed (3.1); without it a renewal sets the flag of what is there.
    """

    def __init__(self, *, covering: bool = False, reinserts: bool = True) -> None:
        self.covering, self.reinserts = covering, reinserts
        self.table: dict[int, Entry] = {}

    def overrun(self) -> None:
        """Delete all entries with flag 0, then set the remaining flags to 0."""
        self.table = {id: entry for id, entry in self.table.items() if entry.flag == 1}
        for entry in self.table.values():
            entry.flag = 0

    def subscribe(self, id: int, filter: Classes, destination: Destination) -> bool:
        """Insert a new or renewed subscription; says if it is forwarded (d = 0)."""
        forward = self._alone(filter, destination)
        if self.covering and any(
            it.filter > filter and it.destination != destination for it in self.table.values()
        ):
            forward = False
        old = self.table.get(id)
        if old is not None and not self.reinserts:
            old.flag = 1
            return forward
        self.table[id] = Entry(filter, destination)
        return forward

    def unsubscribe(self, id: int, filter: Classes, destination: Destination) -> bool:
        """Remove the entry with this id; forwarded by the same count of flags as a subscription."""
        self.table.pop(id, None)
        return self._alone(filter, destination)

    def wants(self, one: str) -> bool:
        """Would a notification of this class be sent on?"""
        return any(one in entry.filter for entry in self.table.values())

    def _alone(self, filter: Classes, destination: Destination) -> bool:
        return not any(
            it.filter == filter and it.destination != destination and it.flag == 1
            for it in self.table.values()
        )


class Chain:
    """Brokers in a line; clients at the first, each forwards to the next."""

    def __init__(self, brokers: list[Printed], pi: int, phases: list[int]) -> None:
        self.brokers = brokers
        self.now = 0
        self._number = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        for broker, phase in zip(brokers, phases, strict=True):
            self._every(phase, pi, broker.overrun, None)

    def client(
        self, id: int, filter: Classes, first: int, rho: int, leaves: int | None = None
    ) -> None:
        """A client that renews every `rho` from `first` on, until it unsubscribes or for ever."""
        destination = ("client", id)
        self._every(first, rho, lambda: self._subscribe(0, id, filter, destination), leaves)
        if leaves is not None:
            self._at(leaves, lambda: self._unsubscribe(0, id, filter, destination))

    def missing(self, place: int, one: str, until: int) -> list[tuple[int, int]]:
        """Run, and list when broker `place` had no entry for class `one`, from its first on."""
        found: list[tuple[int, int]] = []
        seen, lost = False, None
        while self._events and self._events[0][0] <= until:
            self.now, _, action = heappop(self._events)
            action()
            present = self.brokers[place].wants(one)
            if present and lost is not None:
                found.append((lost, self.now))
            if not present and seen and lost is None:
                lost = self.now
            if present:
                seen, lost = True, None
        return found if lost is None else [*found, (lost, until)]

    def _subscribe(self, place: int, id: int, filter: Classes, destination: Destination) -> None:
        if self.brokers[place].subscribe(id, filter, destination):
            self._pass(place, lambda: self._subscribe(place + 1, id, filter, ("broker", place)))

    def _unsubscribe(self, place: int, id: int, filter: Classes, destination: Destination) -> None:
        if self.brokers[place].unsubscribe(id, filter, destination):
            self._pass(place, lambda: self._unsubscribe(place + 1, id, filter, ("broker", place)))

    def _pass(self, place: int, action: Callable[[], None]) -> None:
        if place + 1 < len(self.brokers):
            self._at(self.now + DELAY, action)

    def _at(self, time: int, action: Callable[[], None]) -> None:
        self._number += 1
        heappush(self._events, (time, self._number, action))

    def _every(self, first: int, period: int, action: Callable[[], None], end: int | None) -> None:
        def again(time: int) -> None:
            if end is None or time < end:
                action()
                self._at(time + period, lambda: again(time + period))

        self._at(first, lambda: again(first))
