"""The dials of one topic (paper 2, section V) and what follows from them for a group of S."""

from math import ceil, log

from msgspec import Struct

from planaria.core.errors import UsageError

B_MIN = 1.5  # with shorter views groups fall apart by chance, without any fault
VIEW_MIN = 3  # in the smallest groups the formula gives less than a connected graph needs
SIZE_MAX = 1 << 62  # no group is larger, whatever a corrupted estimate says
VIEW_MAX = 64  # (b+1) ln S for ten million members at b = 3; a wrong estimate cannot ask for more


class Parameters(Struct, frozen=True):
    """g relays per group, a of z superprocesses each, views of (b+1) ln S, fanout ln S + c.

    With fewer than `tau` superprocesses known to be alive, new ones are asked for.
    """

    g: float = 5.0
    a: int = 1
    z: int = 3
    b: float = 3.0
    c: float = 5.0
    tau: int = 3

    def __post_init__(self) -> None:
        if not (self.g >= 1 and 1 <= self.a <= self.z <= 64 and 0 <= self.tau <= self.z):
            raise UsageError(f"{self}: need g >= 1, 1 <= a <= z <= 64 and 0 <= tau <= z")
        if not (B_MIN <= self.b <= 32 and -32 <= self.c <= 64):
            raise UsageError(f"{self}: need {B_MIN} <= b <= 32 and -32 <= c <= 64")

    def p_sel(self, size: float) -> float:
        """The probability g/S that a member elects itself as a relay to the supergroup."""
        return min(1.0, self.g / max(1, min(size, SIZE_MAX)))

    def fanout(self, size: float) -> int:
        """How many members of its group a process sends an event to: ln S + c, rounded up."""
        return max(0, min(ceil(log(max(1.0, size)) + self.c - 1e-9), int(size) - 1))

    def view(self, size: float) -> int:
        """How many members of its group a process knows: (b+1) ln S, rounded up, within bounds."""
        return max(VIEW_MIN, min(ceil((self.b + 1) * log(max(1.0, size)) - 1e-9), VIEW_MAX))
