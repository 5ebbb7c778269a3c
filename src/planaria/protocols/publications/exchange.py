"""What one subscriber remembers of its exchanges with peers."""

from msgspec import Struct, field

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.publications.push import PUSH_FRAMES_MAX
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
    theirs: int = 0  # the peer's digest when it began; 0: not told

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


class Coming:
    """Counts the frames of records that come in an exchange, which may be over but for these.

    An answer that is as long as answers may be was perhaps cut: whoever got all of it asks again at
    once, and need not wait for a digest. A hint, and no state: without it the digest comes.
    """

    __slots__ = ("_frames", "_peers_max")

    def __init__(self, peers_max: int) -> None:
        self._frames: dict[NodeId, tuple[Exchange, int]] = {}
        self._peers_max = peers_max

    def cut(self, peer: NodeId, number: int, current: Exchange | None) -> Exchange | None:
        """A frame came: its exchange, if no other may come in it. `current` is open still."""
        exchange, frames = self._frames.pop(peer, (current, 0))
        if current is not None and current is not exchange:  # numbers of both ends may be equal
            exchange, frames = current, 0
        if exchange is None or exchange.number != number:
            return None
        self._frames[peer] = (exchange, frames + 1)
        if len(self._frames) > self._peers_max:
            del self._frames[next(iter(self._frames))]
        return exchange if frames + 1 == PUSH_FRAMES_MAX and exchange.sound else None


class AntiEntropyState(State):
    """Exchanges under way, and what was learned of peers."""

    number: int
    exchanges: dict[int, Exchange]
    peers: dict[int, tuple[int, int]]
    agreed: dict[int, int] = field(default_factory=dict)
