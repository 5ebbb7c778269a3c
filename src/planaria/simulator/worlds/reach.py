"""The three meanings of reliability, and what else one event's dissemination is judged by.

Which of them the paper's Figures 10 and 11 show is not said; only 'of all' agrees with its text.
"""

from math import sqrt

from msgspec import Struct

NORMAL_95 = 1.96  # of a 95 % interval


class Estimate(Struct, frozen=True):
    """A mean over runs with the half width of its 95 % interval."""

    mean: float
    half: float
    runs: int

    def agrees(self, other: "Estimate", slack: float = 0.0) -> bool:
        """Is the difference within the two errors together (at twice the 95 % half width)?"""
        return abs(self.mean - other.mean) <= 2 * sqrt(self.half**2 + other.half**2) + slack


def estimated(values: list[float]) -> Estimate:
    """The mean of `values` and its 95 % interval; rule of three where all values are alike."""
    n = len(values)
    mean = sum(values) / max(1, n)
    spread = sum((value - mean) ** 2 for value in values) / max(1, n - 1)
    half = NORMAL_95 * sqrt(spread / max(1, n))
    if spread == 0.0:
        half = 3.0 / max(1, n) * max(1.0, abs(mean))
    return Estimate(mean, half, n)


class GroupReach(Struct):
    """What one group saw of one event."""

    members: int
    alive: int
    sent: int = 0
    received: int = 0
    intergroup_sent: int = 0
    intergroup_received: int = 0
    reached: int = 0
    parasites: int = 0
    repeated: int = 0  # times that the event was handed to a member that had it

    @property
    def of_all(self) -> float:
        """The share of all members, failed ones counted as not receiving; 1 if there are none."""
        return self.reached / self.members if self.members else 1.0

    @property
    def of_alive(self) -> float:
        """The share of the members that are alive; 1 if none is."""
        return self.reached / self.alive if self.alive else 1.0

    @property
    def p_all(self) -> float:
        """1 if every member that is alive received the event, else 0."""
        return float(self.reached == self.alive)


MEASURES = (
    "sent",
    "received",
    "intergroup_sent",
    "intergroup_received",
    "of_all",
    "of_alive",
    "p_all",
    "parasites",
)


def summarize(runs: list[GroupReach]) -> dict[str, Estimate]:
    """Every measure over the runs of one group."""
    return {name: estimated([float(getattr(run, name)) for run in runs]) for name in MEASURES}
