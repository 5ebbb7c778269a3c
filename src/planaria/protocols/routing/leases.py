"""The routing table with second-chance leases (paper 4, section 3.1).

An entry is one lease for each (id, destination): whoever renews it over one link leaves those of
other links alone. A broker's clock runs from 0 to pi - 1; when it overruns, entries that were not
renewed since the last overrun go. So an entry renewed within pi stays, another lives 2 pi at most.
Where links differ, each has a pi of its own (3.5), and a clock to go with it.

A cancel is remembered for as long as links may deliver it before the lease that it ends: else that
lease, coming late, would live its 2 pi and not stabilize in delta.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct

from planaria.core.state import State, Stateful
from planaria.filters.filters import Attributes, Filter, is_well_formed
from planaria.filters.matching import MatchingIndex
from planaria.protocols.routing.messages import LEASE_ID_MAX, STAMPS

LEASES_PER_DESTINATION_MAX = 1_000_000  # 0.5 kB each: a broker refuses more over one link
CANCELS_MAX = 100_000  # remembered, for a few timeouts
DESTINATIONS_MAX = 4_096  # links and clients of one broker, with those gone but not yet expired

Destination = int  # a neighbour's id, or a local client as a negative number
Table = dict[Destination, dict[int, "Lease"]]
Answer = TypeVar("Answer")
Cancel = tuple[int, int]  # the number of its message, and for how many timeouts to remember it


def client_destination(client: int) -> Destination:
    """Local clients are negative destinations, neighbours are not."""
    return -1 - client


class Lease(Struct):
    """A routing entry: filter, flag, and the number of the message that brought it."""

    filter: Filter
    flag: int = 1
    stamp: int = 0


class LeaseTableState(State):
    """Entries, cancels, clocks, and the filters that the index knows, which may be others."""

    entries: Table
    cancelled: dict[tuple[Destination, int], Cancel]
    clock: int
    clocks: dict[Destination, int]
    indexed: dict[tuple[Destination, int], Filter]


class LeaseTable(Stateful):
    """The entries of one broker, its clock, and an index to match with."""

    __slots__ = ("_index", "cancelled", "clock", "clocks", "entries", "late", "pi", "pis")

    state_type = LeaseTableState

    def __init__(
        self, pi: int, pis: Mapping[Destination, int] | None = None, late: int = 1
    ) -> None:
        self.pi, self.pis = pi, pis or {}  # for all, and for links with delays of their own
        self.late = late
        self.cancelled: dict[tuple[Destination, int], Cancel] = {}
        self.clock = 0
        self.clocks: dict[Destination, int] = {}
        self.entries: Table = {}
        self._index = MatchingIndex()

    def insert(self, destination: Destination, id: int, filter: Filter, stamp: int = 0) -> bool:
        """Remove what has this id for this destination, then insert; says if that was news.

        Removing first is essential: a renewal that only set the flag would keep a corrupted filter
        for ever (3.1).
        """
        cancel = self.cancelled.get((destination, id)) if self.cancelled else None
        leases = self.entries.get(destination)
        if cancel is not None and not newer(stamp, cancel[0]) and id not in (leases or {}):
            return False
        if leases is None:
            if len(self.entries) >= DESTINATIONS_MAX:
                return False
            leases = self.entries[destination] = {}
        old = leases.get(id)
        if old is None and len(leases) >= LEASES_PER_DESTINATION_MAX:
            return False
        if old is not None and old.flag == 1 and newer(old.stamp, stamp):
            stamp = old.stamp  # a late message renews, but an even later cancel must not end it
        leases[id] = Lease(filter, 1, stamp)
        if old is not None and old.filter == filter:
            return False
        self._indexed(lambda: self._index.add((destination, id), filter))
        return True

    def remove(self, destination: Destination, id: int) -> bool:
        """Cancel one lease; says if there was one."""
        leases = self.entries.get(destination, {})
        if leases.pop(id, None) is None:
            return False
        self._indexed(lambda: self._index.remove((destination, id)))
        return True

    def cancel(self, destination: Destination, id: int, stamp: int) -> bool:
        """End a lease unless a newer message renewed it; says if there was one to end."""
        lease = self.get(destination, id)
        if lease is not None and newer(lease.stamp, stamp):
            return False
        if len(self.cancelled) < CANCELS_MAX:
            self.cancelled[destination, id] = (stamp, self.late)
        return self.remove(destination, id)

    def forgive(self, destination: Destination, stamp: int) -> None:
        """A neighbour begins anew with this number: those that it gave before mean nothing."""
        self.cancelled = {it: kept for it, kept in self.cancelled.items() if it[0] != destination}
        for lease in self.of(destination).values():
            lease.stamp = stamp

    def get(self, destination: Destination, id: int) -> Lease | None:
        """The lease with this id over this link."""
        return self.entries.get(destination, {}).get(id)

    def of(self, destination: Destination) -> dict[int, Lease]:
        """All leases of one destination."""
        return self.entries.get(destination, {})

    def destinations(self, attributes: Attributes) -> list[Destination]:
        """Where a notification with these attributes is wanted."""
        found = self._indexed(lambda: self._index.match(attributes))
        return list(dict.fromkeys(key[0] for key in found))  # type: ignore[index]

    def _indexed(self, ask: Callable[[], Answer]) -> Answer:
        """What the index answers; one that a fault made contradict itself is made anew first."""
        try:
            return ask()
        except Exception:  # whatever a damaged index raises: the entries are what counts
            self.reindex()
            return ask()

    def tick(self) -> list[Destination] | None:
        """Time passes. At an overrun: those that lost an entry to it; None if there was none."""
        self.cancelled = {
            it: (stamp, left - 1)
            for it, (stamp, left) in self.cancelled.items()
            if 1 < left <= self.late
        }
        self.clock = _advanced(self.clock, self.pi)
        self.clocks = {it: _advanced(self.clocks.get(it, 0), pi) for it, pi in self.pis.items()}
        over = [
            destination
            for destination in self.entries
            if self.clocks.get(destination, self.clock) == 0
        ]
        if self.clock != 0 and not over:
            return None
        lost = [destination for destination in over if self._overrun(destination)]
        self.reindex()
        return lost

    def _overrun(self, destination: Destination) -> bool:
        """Remove what was not renewed since the last time; says if there was something."""
        leases = self.entries[destination]
        kept = {id: lease for id, lease in leases.items() if lease.flag == 1}
        for lease in kept.values():
            lease.flag = 0
        self.entries[destination] = kept
        if not kept:
            del self.entries[destination]
        return len(kept) < len(leases)

    def state(self) -> LeaseTableState:
        """The entries, the cancels, the clocks, and what the index knows."""
        known: dict[tuple[Destination, int], Filter] = self._index.filters  # type: ignore[assignment]
        return LeaseTableState(self.entries, self.cancelled, self.clock, self.clocks, known)

    def load(self, state: State) -> None:
        """Take these variables; the index is made of the filters that it is said to know."""
        assert isinstance(state, LeaseTableState)
        self.entries, self.cancelled = state.entries, state.cancelled
        self.clock, self.clocks = state.clock, state.clocks
        self._index = MatchingIndex()
        for key, filter in state.indexed.items():
            self._index.add(key, filter)

    def reindex(self) -> None:
        """Make the index anew from the entries: it may have been corrupted with them.

        What nobody can have subscribed for goes: it cannot be indexed or told.
        """
        self._index = MatchingIndex()
        for destination, leases in self.entries.items():
            for id in [it for it, lease in leases.items() if not is_sound(it, lease.filter)]:
                del leases[id]
            for id, lease in leases.items():
                self._index.add((destination, id), lease.filter)


def is_sound(id: int, filter: Filter) -> bool:
    """Can this be leased and told to others?"""
    return 0 <= id <= LEASE_ID_MAX and is_well_formed(filter)


def newer(stamp: int, other: int) -> bool:
    """Was this message sent after the other? Numbers go round."""
    return 0 < (stamp - other) % STAMPS < STAMPS // 2


def _advanced(clock: int, pi: int) -> int:
    """One step on; a clock that a fault set outside its range overruns at once, not pi later."""
    return (clock + 1) % pi if 0 <= clock < pi else 0
