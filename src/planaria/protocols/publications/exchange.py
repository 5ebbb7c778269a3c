"""What one subscriber remembers of its exchanges with peers."""

from msgspec import Struct, field

from planaria.core.state import State
from planaria.protocols.publications.sketch import Cells
from planaria.records.record import TIME_MAX

NUMBER_MAX = 2**63 - 1  # what a message can carry


class Exchange(Struct):
    """An exchange with one peer, as far as it has come."""

    number: int
    lo: int
    cut: int
    started: bool  # by me
    age: int = 0  # own timeouts since the peer last spoke
    life: int = 0  # own timeouts since it began
    more: int = 0  # times that more cells were asked for
    sent: int = 0  # cells that I sent
    inventory: tuple[int, int, int, int, bytes] | None = None  # of the peer, when it made its cells
    cells: list[bytes] = []  # that I got, in the parts in which they came

    @property
    def sound(self) -> bool:
        """Could this have begun with a message? Memory can hold anything."""
        times = 0 <= self.lo <= TIME_MAX and 0 <= self.cut <= TIME_MAX
        return times and 0 <= self.number <= NUMBER_MAX

    def received(self) -> Cells | None:
        """The cells that I got; None if memory holds what are none."""
        whole = Cells(0)
        for part in self.cells:
            longer = whole.extended(part)
            if longer is None:
                return None
            whole = longer
        return whole


class AntiEntropyState(State):
    """Exchanges under way, and what was learned of peers."""

    number: int
    exchanges: dict[int, Exchange]
    peers: dict[int, tuple[int, int]]
    agreed: dict[int, int] = field(default_factory=dict)
