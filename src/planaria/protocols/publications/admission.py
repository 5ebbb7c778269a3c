"""Which records a member of a topic takes up, and how it seals its own.

A network with keys supplies one that verifies (`planaria.network.admission`); elsewhere, as in
the simulator, all records are admitted and none is signed.
"""

from collections.abc import Mapping

from planaria.records.evidence import Sealer
from planaria.records.record import TIME_MAX, Record

Times = list[tuple[int, int]]  # seconds: from, and before


class Admission:
    """Admits everything. One that judges must be a function of the record and of what is
    replicated, and of no clock: members that judge differently would exchange for ever."""

    judges = False
    sealer: Sealer | None = None  # adds evidence to records of this node's own

    @property
    def edition(self) -> object:
        """Changes with what admission is a function of beside the record."""
        return None

    def stamp(self, present: int) -> int:
        """The second with which this node seals; `present` is the median of all clocks it knows."""
        return present

    def admits(self, record: Record) -> bool:
        """May this be stored, delivered and passed on?"""
        return True

    def admits_staged(self, record: Record) -> bool:
        """May this be held outside of the history: rows of a batch, or a manifest?"""
        return True

    def times(self, record: Record) -> Times:
        """At which seconds records of this one's publisher are admitted, if it signed them."""
        return [(0, TIME_MAX + 1)]

    def ends(self, record: Record) -> Mapping[bytes, int] | None:
        """Before which number each stream of this one's publisher counts; None: wholly."""
        return None


EVERYTHING = Admission()


def every_record(_: str) -> Admission:
    """The admission of a topic where all records count."""
    return EVERYTHING
