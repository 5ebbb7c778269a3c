"""Takes pictures of a trial while it runs, for `planaria trace html`."""

from planaria.core.ids import NodeId
from planaria.core.overlay import Violation
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry
from planaria.simulator.trial import Trial
from planaria.web.snapshots import START, Album


class Photographer:
    """Watches a trial: one picture of its start, and one of the end of each interval."""

    kinds = ("timeout", "verdict")

    def __init__(self, trial: Trial) -> None:
        self.album = Album()
        self._trial = trial
        self._at = START
        self._take(START, self._violations())

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Take a picture when an interval was judged, or is over and was not."""
        at = max(0, tick - 1) // INTERVAL
        if kind == "verdict":
            self._take(at, self._trial.found)
        elif at - 1 > self._at:
            self._take(at - 1, self._violations())

    def _violations(self) -> list[Violation]:
        simulator = self._trial.simulator
        return self._trial.overlay.violations(simulator.states(), simulator.channel())

    def _take(self, at: int, found: list[Violation]) -> None:
        self._at = at
        trial = self._trial
        states, where = trial.simulator.states(), trial.overlay.whereabouts()
        self.album.add(at, states, found, trial.with_names, where)
