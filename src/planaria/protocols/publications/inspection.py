"""Judges again what is held: a fault put it there, or it is not admitted any more.

A little at each timeout, more when something is in doubt; all of it, by the seconds of records
alone, when a charter or a revocation came. What is dropped and was published peers bring again.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.core.node import Effect, Notice
from planaria.protocols.publications.admission import Admission, Times
from planaria.protocols.publications.holdings import Holdings
from planaria.records.lanes import Entry
from planaria.records.record import Place, Record
from planaria.records.store import Store

Scope = tuple[Times, Mapping[bytes, int] | None]  # when, and how far in each stream

INSPECTED = 4  # records verified per timeout: half a millisecond
INSPECTED_MAX = 128  # when something is in doubt: a neighbour that lies can keep it so


class Inspection:
    """Judges what one member holds of a topic."""

    __slots__ = ("_admission", "_due", "_edition", "_holdings", "_last", "_topic", "refused")

    def __init__(self, topic: str, holdings: Holdings, admission: Admission) -> None:
        self._topic, self._holdings, self._admission = topic, holdings, admission
        self.refused = 0  # since the last timeout
        self._edition = admission.edition
        self._due = 0  # records of the pass that a doubt began
        self._last: Place = 0  # the last one verified; whatever it is, a pass comes round

    def admits(self, record: Record) -> bool:
        """May this be stored, delivered and passed on? What is held was judged before."""
        judge = self._admission
        if not judge.judges or record.place in self._holdings.store or judge.admits(record):
            return True
        self.refused += 1
        return False

    def admitted(self, records: Sequence[Record]) -> Sequence[Record]:
        """Those of these that may."""
        if not self._admission.judges:
            return records
        return [record for record in records if self.admits(record)]

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
        """What is to be verified now: of a doubt, all that is held is soon."""
        order = self._holdings.store.index.order
        self._due = len(order) if self._holdings.audit_due > 0 else min(self._due, len(order))
        count = INSPECTED_MAX if self._due > 0 else INSPECTED
        self._due -= count
        start = bisect_right(order, self._last)
        places = order[start : start + count]
        self._last = places[-1] if places else 0
        return places

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
