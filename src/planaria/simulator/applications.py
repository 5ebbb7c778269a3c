"""What applications do all the time of a trial, whatever goes wrong meanwhile."""

from collections import deque

from planaria.core.chance import stream
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.overlay import Overlay
from planaria.core.workload import Ask, offers
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator


class Applications:
    """Lets time pass in a simulation, and asks for what `Overlay.everyday` says."""

    def __init__(self, simulator: Simulator, overlay: Overlay) -> None:
        self.simulator, self.overlay = simulator, overlay
        self._rng = stream(simulator.seed, "applications")
        self._due: deque[Ask] = deque()
        self._planned = 0  # intervals
        self._asked = 0

    def run(self, ticks: int) -> None:
        """Let so many ticks pass."""
        simulator, end = self.simulator, self.simulator.tick + ticks
        while self._planned * INTERVAL < end:
            self._due += sorted(self.overlay.everyday(self._planned), key=lambda it: it.at)
            self._planned += 1
        while self._due and round(self._due[0].at * INTERVAL) <= end:
            ask = self._due.popleft()
            simulator.run(max(0, round(ask.at * INTERVAL) - simulator.tick))
            self._ask(ask)
        simulator.run(end - simulator.tick)

    def _ask(self, ask: Ask) -> None:
        members = sorted(self.simulator.nodes)
        for id, command in offers(ask, members, self.overlay, self._rng, self._asked):
            try:
                self.simulator.command(id, command)
                break
            except (UsageError, CapacityExceeded):
                continue  # not this one, or not now
        self._asked += 1
