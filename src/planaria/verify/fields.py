"""A state as one number of 64 bits: a digit for each node, and who has had its timeout."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np
from numpy.typing import NDArray

from planaria.core.errors import UsageError

BITS = 64


class Full(UsageError):
    """A node has more cells than its digit has values; `Wide` makes room for them."""


class Fields:
    """A digit for each node, the first lowest; above them, with rounds, a bit for each."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        *self.units, self.top = accumulate(self.sizes, mul, initial=1)

    @classmethod
    def equal(cls, n: int, *, rounds: bool) -> "Fields":
        """As many values for one node as for any other."""
        return cls([1 << _bits(n, rounds) // n] * n)

    def wider(self, counts: Sequence[int], *, rounds: bool) -> "Fields":
        """Room for so many cells of each node; what is left over is shared out.

        Raises UsageError if there is no room.
        """
        left = (1 << _bits(len(counts), rounds)) / prod(counts)
        if left < 1:
            raise UsageError(f"{list(counts)} cells of the nodes: no room in {BITS} bits")
        more = left ** (1 / len(counts)) * (1 - 1e-9)  # rather less than a product too large
        return Fields([max(it, int(it * more)) for it in counts])

    def place(self, code: int, at: int) -> int:
        """The cell of one node in a state."""
        return code // self.units[at] % self.sizes[at]

    def of(self, codes: NDArray[np.uint64], at: int) -> NDArray[np.int64]:
        """The cell of one node in each of these states."""
        above = codes // np.uint64(self.units[at])
        size = np.uint64(self.sizes[at])
        return (above - above // size * size).astype(np.int64)  # `%` takes four times as long

    def put(self, cells: NDArray[np.int64], at: int) -> NDArray[np.uint64]:
        """These cells of one node (or how much further) in its digit, and nothing in the others."""
        return cells.astype(np.uint64) * np.uint64(self.units[at])

    def had(self, codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Who has had its timeout in each of these states."""
        return codes // np.uint64(self.top)

    def moved(self, codes: NDArray[np.uint64], fields: "Fields") -> NDArray[np.uint64]:
        """The same states in other fields, in the same order."""
        found = self.had(codes) * np.uint64(fields.top)
        for at in range(len(self.sizes)):
            found += fields.put(self.of(codes, at), at)
        return found


def _bits(n: int, rounds: bool) -> int:
    """What is left for cells; one bit less than there are, so that `top` is a number, too."""
    return BITS - max(1, n * rounds)
