"""Judges again what is held: a fault put it there, or it is not admitted any more.

A little at each timeout, more when something is in doubt, first of all what a neighbour refused;
all of it, by the seconds of records alone, when a charter or a revocation came. What is dropped and
was published peers bring again.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.core.node import Effect, Notice
from planaria.protocols.publications.admission import Admission, Times
from planaria.protocols.publications.antientropy_messages import PLACE_BYTES, REFUSED_MAX
from planaria.protocols.publications.holdings import Holdings
from planaria.records.lanes import Entry
from planaria.records.record import Place, Record
from planaria.records.store import Store

Scope = tuple[Times, Mapping[bytes, int] | None]  # when, and how far in each stream

INSPECTED = 4  # records verified per timeout: half a millisecond
INSPECTED_MAX = 128  # when something is in doubt: a neighbour that lies can keep it so


class Inspection:
    """Judges what one member holds of a topic."""

    __slots__ = (
        "_admission", "_due", "_edition", "_holdings", "_last", "_suspects", "_topic", "refused",
    )  # fmt: skip

    def __init__(self, topic: str, holdings: Holdings, admission: Admission) -> None:
        self._topic, self._holdings, self._admission = topic, holdings, admission
        self.refused = 0  # since the last timeout
        self._edition = admission.edition
        self._due = 0  # records of the pass that a doubt began
        self._last: Place = 0  # the last one verified; whatever it is, a pass comes round
        self._suspects: list[Place] = []  # to be verified next

    def admits(self, record: Record) -> bool:
        """May this be stored, delivered and passed on? What is held was judged before."""
        judge = self._admission
        if not judge.judges or record.place in self._holdings.store or judge.admits(record):
            return True
        self.refused += 1
        return False

    def sift(self, records: Sequence[Record]) -> tuple[Sequence[Record], list[bytes]]:
        """Those of these that may, and the places of those that may not, for a refusal."""
        if not self._admission.judges:
            return records, []
        judged = [(record, self.admits(record)) for record in records]
        refused = [it.place.to_bytes(PLACE_BYTES, "big") for it, good in judged if not good]
        return [it for it, good in judged if good], refused[:REFUSED_MAX]

    def suspect(self, places: Sequence[bytes]) -> None:
        """A neighbour refused these: verify them next. Its word alone drops nothing."""
        if self._admission.judges:
            named = [int.from_bytes(it, "big") for it in places]
            self._suspects = [*self._suspects, *named][:INSPECTED_MAX]

    def admits_staged(self, record: Record) -> bool:
        """May this be held outside of the history?"""
        admitted = self._admission.admits_staged(record)
        self.refused += not admitted
        return admitted

    def stamp(self, present: int) -> int:
        """The second with which this node seals."""
        return self._admission.stamp(present)

    def on_timeout(self) -> list[Effect]:
        """Verify the next records; judge all by their times if what they are judged by changed.

        Tells what was not admitted since the last timeout.
        """
        if not self._admission.judges:
            return []
        edition = self._admission.edition
        if edition != self._edition:
            self._edition = edition
            self._refuse(self._holdings.ask(self._outside))
        places = self._next()
        found = self._holdings.at(places)
        self._refuse([it.place for it in found if not self._admission.admits(it)])
        refused, self.refused = self.refused, 0
        return [Notice(self._topic, "forged", {"records": refused})] if refused > 0 else []

    def _next(self) -> list[Place]:
        """What is to be verified now: of a doubt, all that is held is soon.

        A pass goes from the youngest to the oldest: what is published meanwhile is behind it, or
        before it only until it has come to the present, and it ends however much that is.
        """
        order = self._holdings.store.index.order
        self._due = len(order) if self._holdings.audit_due > 0 else min(self._due, len(order))
        count = INSPECTED_MAX if self._due > 0 else INSPECTED
        self._due -= count
        end = bisect_left(order, self._last)
        below = order[max(0, end - count) : end]
        above = order[max(end, len(order) - count + len(below)) :]  # where the next pass begins
        self._last = (above or below or [0])[0]
        suspects, self._suspects = self._suspects, []
        return suspects + below + above

    def _refuse(self, places: list[Place]) -> None:
        self.refused += len(places)
        self._holdings.refuse(places)

    def _outside(self, store: Store) -> list[Place]:
        """What is held of seconds, or at positions, at which its publisher is not admitted.

        A publisher has one certificate: one of its records tells it for all.
        """
        known: dict[NodeId, Scope | None] = {}
        found = []
        for place, entry in [*store.index.shown.items(), *store.index.hidden.items()]:
            who = entry.publisher
            if who not in known:
                known[who] = self._scope(store, entry)
            scope = known[who]
            if scope is not None and not _within(scope, entry):
                found.append(place)
        return found

    def _scope(self, store: Store, entry: Entry) -> Scope | None:
        record = next(iter(store.get([entry.place])), None)
        judge = self._admission
        return None if record is None else (judge.times(record), judge.ends(record))


def _within(scope: Scope, entry: Entry) -> bool:
    """Is a record of the seconds and the numbers at which its publisher is admitted?"""
    times, ends = scope
    if ends is not None and entry.end > ends.get(entry.stream[1], 0):
        return False
    return any(lo <= entry.time < hi for lo, hi in times)
