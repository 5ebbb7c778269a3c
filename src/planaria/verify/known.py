"""Sets of very many numbers."""

import numpy as np
from numpy.typing import NDArray

from planaria.verify.fair import Flags

Codes = NDArray[np.uint64]


class Known:
    """A set of numbers as sorted arrays, each at most half as long as the one before it."""

    def __init__(self) -> None:
        self.runs: list[Codes] = []

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def fresh(self, codes: Codes) -> Codes:
        """Those of these (sorted) that are not in it."""
        for run in self.runs:
            codes = codes[~_in(run, codes)]
        return codes

    def holds(self, codes: Codes) -> Flags:
        """Which of these are in it."""
        found = np.zeros(len(codes), dtype=np.bool_)
        for run in self.runs:
            found |= _in(run, codes)
        return found

    def add(self, codes: Codes) -> None:
        """Put in sorted numbers that are not in it."""
        if len(codes):
            self.runs.append(codes)
        while len(self.runs) > 1 and 2 * len(self.runs[-1]) > len(self.runs[-2]):
            self._join()

    def _join(self) -> None:
        """Make one run of the last two."""
        last = self.runs.pop()
        self.runs[-1] = np.concatenate([self.runs[-1], last])
        self.runs[-1].sort(kind="stable")

    def all(self) -> Codes:
        """Every number, sorted."""
        while len(self.runs) > 1:
            self._join()
        return self.runs[0] if self.runs else np.zeros(0, dtype=np.uint64)


def _in(run: Codes, codes: Codes) -> Flags:
    """Which of these numbers are in a sorted array that is not empty."""
    place = np.searchsorted(run, codes)
    place[place == len(run)] = 0
    found: Flags = run[place] == codes
    return found
