"""How a broker notices that it was cut off for longer than anybody remembers publications.

The root of a tree draws a number now and then, a beat, which goes to everybody in the tree. Two
brokers that become neighbours show each other the beats of the last period of the memory. If both
have been hearing beats for longer than that and have none in common, they were in different trees
for so long that publications of either side may be gone before they could be replayed: a gap.
"""

from collections.abc import Sequence

from planaria.core.state import State, Stateful
from planaria.protocols.routing.messages import BEATS_MAX, ID_BYTES

BEATS_PER_PERIOD = 8  # often enough that one of them is younger than any change of the tree
REPORTED = 2  # periods in which a gap is reported once: trees that meet do so over many links


class ContactState(State):
    """The beats heard with their ages, a counter to the next one, timeouts to the next report."""

    beats: dict[bytes, int]
    turn: int
    quiet: int


class Contact(Stateful):
    """The beats of one broker; `period` is its memory's."""

    __slots__ = ("beats", "period", "quiet", "turn")

    state_type = ContactState

    def __init__(self, period: int) -> None:
        self.period = period
        self.beats: dict[bytes, int] = {}
        self.turn = 0
        self.quiet = 0

    @property
    def settled(self) -> bool:
        """Has this broker been hearing beats for longer than a period?"""
        return any(age > self.period for age in self.beats.values())

    def tick(self, *, root: bool) -> bool:
        """Time passes; says if it is time for a root to draw a beat."""
        self.repair()
        self.beats = {id: age + 1 for id, age in self.beats.items() if age < REPORTED * self.period}
        self.quiet = max(0, self.quiet - 1)
        self.turn = (self.turn + 1) % max(1, self.period // BEATS_PER_PERIOD)
        return root and self.turn == 0

    def hear(self, id: bytes) -> bool:
        """Remember a beat; says if it was new."""
        if id in self.beats or len(id) != ID_BYTES:
            return False
        self.beats[id] = 0
        if len(self.beats) > BEATS_MAX:
            # The oldest stays: it says for how long there has been a tree.
            young = sorted(self.beats.items(), key=lambda it: it[1])[: BEATS_MAX - 1]
            oldest = max(self.beats.items(), key=lambda it: it[1])
            self.beats = dict([oldest, *young])
        return True

    def shown(self) -> tuple[bytes, ...]:
        """The beats that a new neighbour is shown."""
        found = [id for id, age in self.beats.items() if age <= self.period]
        return tuple(id for id in found if len(id) == ID_BYTES)[:BEATS_MAX]

    def apart(self, beats: Sequence[bytes], *, settled: bool) -> bool:
        """Were we and whoever shows these beats apart for too long? Reported once."""
        recent = self.shown()
        if not (settled and self.settled) or any(id in recent for id in beats):
            return False
        first, self.quiet = self.quiet == 0, REPORTED * self.period
        return first

    def repair(self) -> None:
        """Drop what no broker draws, and bring counters back into their ranges."""
        limit = REPORTED * self.period
        if self.beats and not self._drawn(limit):
            self.beats = {
                id: age
                for id, age in [*self.beats.items()][:BEATS_MAX]
                if 0 <= age <= limit and len(id) == ID_BYTES
            }
        if not 0 <= self.quiet <= limit:
            self.quiet = 0

    def _drawn(self, limit: int) -> bool:
        """Could brokers have drawn all of these, up to `limit` timeouts ago?"""
        ages = self.beats.values()
        return (
            len(ages) <= BEATS_MAX
            and min(ages) >= 0
            and max(ages) <= limit
            and {*map(len, self.beats)} == {ID_BYTES}
        )
