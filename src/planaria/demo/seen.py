"""What the demo has seen so far: deliveries that were late, came twice or are missing, and which
invariants failed because of each fault. The verdict at the end is `chaos`'s, which counts anew."""

from math import inf

from planaria.chaos.faults import Injection
from planaria.chaos.run import LATE_INTERVALS, Run
from planaria.chaos.watch import Look


class Seen:
    """Reads on from where it was at each `look`: the lists of a run only grow."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.late = self.twice = self.missing = 0
        self._looks: list[Look] = []  # a watch forgets old ones
        self._had: set[tuple[int, bytes]] = set()
        self._asked: dict[bytes, float] = {}
        self._given = 0

    def look(self) -> None:
        """Take in what is new."""
        last = self._looks[-1].began if self._looks else -inf
        self._looks += [it for it in self.run.watch.looks if it.began > last]
        self._deliveries()
        self.missing = self._missing()

    def failed(self, fault: Injection) -> list[str]:
        """The invariants that did not hold, from the fault until all was right again."""
        end = inf if fault.seconds is None else fault.ended + fault.seconds
        looks = [it for it in self._looks if it.ended >= fault.began and it.began < end]
        return [*dict.fromkeys(name for it in looks for name in it.invariants)]

    def _deliveries(self) -> None:
        applications = self.run.applications
        for one in applications.asked[len(self._asked) :]:
            self._asked[one.payload] = one.asked
        new = applications.given[self._given :]
        self._given += len(new)
        for it in new:
            pair = it.reader, it.id
            self.twice += pair in self._had
            self._had.add(pair)
            self.late += it.time > self._asked.get(it.payload, inf) + LATE_INTERVALS

    def _missing(self) -> int:
        """Deliveries of what was acknowledged a while ago that have not come yet."""
        applications = self.run.applications
        old = applications.time - LATE_INTERVALS
        owed = {it.id for it in applications.acknowledged if it.asked < old}
        had = applications.had
        return sum(len(owed - had.get(it, set())) for it in applications.readers)
