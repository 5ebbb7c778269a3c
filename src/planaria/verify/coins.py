"""Chance as an adversary sees it: every outcome of every coin, one after the other."""

from collections.abc import Iterator
from random import Random
from typing import Any

ALL_MAX = 12  # of a larger range the ends, their neighbours and the middle stand for all
BELOW, ABOVE = 0.0, 1 - 2**-53  # a coin of probability p falls on either side of any p


class Coins(Random):
    """A source of chance that repeats a script, and then takes the first of what is possible."""

    def __init__(self) -> None:
        super().__init__(0)
        self.script: list[int] = []
        self.widths: list[int] = []  # how many outcomes each draw of this run had
        self.thinned = False  # was a range too large to be tried in full?

    def begin(self, script: list[int]) -> None:
        """Make these choices, then the first one of each draw."""
        self.script, self.widths = script, []

    def _choose(self, width: int) -> int:
        at = len(self.widths)
        self.widths.append(width)
        return self.script[at] if at < len(self.script) else 0

    def random(self) -> float:
        """Below every probability, or above it."""
        return (BELOW, ABOVE)[self._choose(2)]

    def _randbelow(self, n: int) -> int:
        if n <= ALL_MAX:
            return self._choose(n) if n > 1 else 0
        self.thinned = True
        kept = (0, 1, n // 2, n - 2, n - 1)
        return kept[self._choose(len(kept))]

    def getrandbits(self, k: int) -> int:
        """A number below 2^k."""
        return self._randbelow(1 << k)

    def scripts(self) -> Iterator[list[int]]:
        """Scripts for every outcome of whatever is run between two of them."""
        waiting: list[list[int]] = [[]]
        while waiting:
            script = waiting.pop()
            self.begin(script)
            yield script
            taken = [*script, *[0] * (len(self.widths) - len(script))]
            for at in range(len(script), len(taken)):
                waiting += [[*taken[:at], other] for other in range(1, self.widths[at])]

    def __getstate__(self) -> Any:
        raise TypeError("coins belong to one search and are not stored")
