"""Where in 64 bits the cell of each node is, and who has had its timeout."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planaria.core.errors import UsageError

BITS = 64


class Full(UsageError):
    """A node has more cells than its field has numbers; `Wide` makes it wider."""


class Fields:
    """A field for each node, the first lowest, and above them a bit of each node with rounds."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.widths = tuple(widths)
        self.shifts = [sum(self.widths[:at]) for at in range(len(self.widths))]
        self.top = sum(self.widths)

    @classmethod
    def equal(cls, n: int, *, rounds: bool) -> "Fields":
        """As wide for one node as for any other."""
        return cls([(BITS - n * rounds) // n] * n)

    def wider(self, counts: Sequence[int], *, rounds: bool) -> "Fields":
        """Fields for so many cells of each node; what is left over is shared out.

        Raises UsageError if there is no room.
        """
        need = [max(count - 1, 0).bit_length() for count in counts]
        left = BITS - len(need) * rounds - sum(need)
        if left < 0:
            raise UsageError(f"{list(counts)} cells of the nodes: no room in {BITS} bits")
        return Fields([it + left // len(need) for it in need])

    def place(self, code: int, at: int) -> int:
        """The cell of one node in a state."""
        return code >> self.shifts[at] & ((1 << self.widths[at]) - 1)

    def of(self, codes: NDArray[np.uint64], at: int) -> NDArray[np.int64]:
        """The cell of one node in each of these states."""
        mask = np.uint64((1 << self.widths[at]) - 1)
        return (codes >> np.uint64(self.shifts[at]) & mask).astype(np.int64)

    def put(self, cells: NDArray[np.int64], at: int) -> NDArray[np.uint64]:
        """These cells of one node in its field, and nothing in the others."""
        return cells.astype(np.uint64) << np.uint64(self.shifts[at])

    def moved(self, codes: NDArray[np.uint64], fields: "Fields") -> NDArray[np.uint64]:
        """The same states with other fields, sorted if they were."""
        found = codes >> np.uint64(self.top) << np.uint64(fields.top)
        for at in range(len(self.widths)):
            found |= fields.put(self.of(codes, at), at)
        return found
