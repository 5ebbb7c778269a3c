"""What one subscriber remembers of an exchange with one peer."""

from planaria.protocols.publications.antientropy_messages import State
from planaria.protocols.publications.publication import TIME_MAX
from planaria.protocols.publications.sketch import Cells

NUMBER_MAX = 2**63 - 1  # what a message can carry


class Exchange:
    """An exchange with one peer, as far as it has come."""

    __slots__ = ("age", "cells", "life", "lo", "more", "number", "sent", "started")

    def __init__(self, number: int, lo: int, *, started: bool) -> None:
        self.number = number
        self.lo = lo
        self.started = started  # by me
        self.age = 0  # own timeouts since the peer last spoke
        self.life = 0  # own timeouts since it began
        self.more = 0  # times that more cells were asked for
        self.sent = 0  # cells that I sent
        self.cells: tuple[State, Cells] | None = None  # cells that I got

    @property
    def sound(self) -> bool:
        """Could this have begun with a message? Memory can hold anything."""
        cells = self.cells is None or self.cells[1].regular
        return cells and 0 <= self.number <= NUMBER_MAX and 0 <= self.lo <= TIME_MAX
