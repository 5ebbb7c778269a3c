"""What applications do in a simulation, whatever goes wrong meanwhile: asks, each at its time."""

from collections.abc import Iterable, Sequence
from random import Random

from planaria.core.chance import stream
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.overlay import Overlay
from planaria.core.workload import Ask, offers
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator, WrongHandler


def put(
    simulator: Simulator,
    ask: Ask,
    overlay: Overlay | None,
    rng: Random,
    number: int = 0,
    among: Sequence[NodeId] | None = None,
) -> bool | None:
    """Ask the node that is named, or others (`among` these) until one can; was it accepted?

    None: there was nobody to ask. `number` is how many publications were asked for before.
    """
    members = sorted(simulator.nodes) if among is None else among
    answer = None
    for id, command in offers(ask, members, overlay, rng, number):
        try:
            simulator.command(id, command)
            return True
        except WrongHandler:
            raise
        except UsageError:
            answer = False  # not this one
        except CapacityExceeded:
            return False  # a full node says no: its publisher is told, nothing was published
    return answer


class Applications:
    """Lets time pass in a simulation, and asks for what is planned and what `everyday` says."""

    def __init__(self, simulator: Simulator, overlay: Overlay) -> None:
        self.simulator, self.overlay = simulator, overlay
        self.refused = 0  # asks that no node accepted
        self._rng = stream(simulator.seed, "applications")
        self._due: list[Ask] = []
        self._planned = 0  # intervals
        self._asked = 0

    def plan(self, asks: Iterable[Ask]) -> None:
        """Ask for these too, each at its time; at once if that is past."""
        self._due = sorted([*self._due, *asks], key=lambda it: it.at)

    def run(self, ticks: int) -> None:
        """Let so many ticks pass."""
        simulator, end = self.simulator, self.simulator.tick + ticks
        while self._planned * INTERVAL < end:
            self.plan(self.overlay.everyday(self._planned))
            self._planned += 1
        while self._due and round(self._due[0].at * INTERVAL) <= end:
            ask = self._due.pop(0)
            simulator.run(max(0, round(ask.at * INTERVAL) - simulator.tick))
            for _ in range(ask.count):
                done = put(simulator, ask, self.overlay, self._rng, self._asked)
                self.refused += done is not True
                self._asked += 1
        simulator.run(end - simulator.tick)
