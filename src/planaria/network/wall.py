"""The wall clock of one node, which is wrong in a driver's test and never by itself."""

from time import time


class WallClock:
    """Seconds since 1970, `ahead` of what the system says."""

    __slots__ = ("ahead",)

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        """What this node takes for the time."""
        return time() + self.ahead
