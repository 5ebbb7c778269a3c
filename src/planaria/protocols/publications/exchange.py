"""What one subscriber remembers of its exchanges with peers."""

from collections.abc import Iterable

from msgspec import Struct, field

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.publications.antientropy_messages import IDS_MAX, AntiEntropyMessage
from planaria.protocols.publications.holdings import ID_BITS, id_of
from planaria.protocols.publications.push import PUSH_FRAMES_MAX
from planaria.protocols.publications.sketch import Cells
from planaria.records.record import TIME_MAX, Record

NUMBER_MAX = 2**63 - 1  # what a message can carry
WANT_BITS = 32  # of an id, in a request
COMING_MAX = 64  # peers whose frames are counted: as many as exchanges


class Begun(Struct):
    """What tells an exchange with a peer from others: numbers of both ends may be equal."""

    number: int
    lo: int
    cut: int
    started: bool  # by me

    @property
    def sound(self) -> bool:
        """Could this have begun with a message? Memory can hold anything."""
        times = 0 <= self.lo <= TIME_MAX and 0 <= self.cut <= TIME_MAX
        return times and 0 <= self.number <= NUMBER_MAX


class Exchange(Begun):
    """An exchange with one peer, as far as it has come."""

    age: int = 0  # own timeouts since the peer last spoke
    life: int = 0  # own timeouts since it began
    more: int = 0  # times that more cells were asked for
    sent: int = 0  # cells that I sent
    inventory: tuple[int, int, int, int, bytes] | None = None  # of the peer, when it made its cells
    cells: list[bytes] = []  # that I got, in the parts in which they came
    theirs: int = 0  # the peer's digest when it began; 0: not told

    def received(self) -> Cells | None:
        """The cells that I got; None if memory holds what are none."""
        whole = Cells(0)
        for part in self.cells:
            longer = whole.extended(part)
            if longer is None:
                return None
            whole = longer
        return whole


class Coming(Begun):
    """The frames of records that came in an exchange, which may be over but for these.

    An answer that is as long as answers may be was perhaps cut: whoever got all of it asks again at
    once for the rest of what it wants, and need not wait for a digest. If count or rest is false,
    the digest comes.
    """

    frames: int = 0
    want: list[int] = []  # beginnings of ids that I asked for and that have not come
    held: int = 0  # the version of what I held when the answer began

    def counts(self, exchange: Exchange) -> bool:
        """Are these the frames of `exchange`?"""
        own = (self.number, self.lo, self.cut, self.started)
        return own == (exchange.number, exchange.lo, exchange.cut, exchange.started)

    def ask(self, want: list[int], held: int) -> None:
        """An answer is to bring these to who holds that."""
        self.frames, self.want, self.held = 0, want, held

    def got(self, records: Iterable[Record]) -> None:
        """These came; whether or not they are taken, they are not asked for again."""
        if self.want:
            came = {begin_of(id_of(record.place)) for record in records}
            self.want = [id for id in self.want if id not in came]

    def rest(self) -> list[int]:
        """What a message can ask for. Memory can hold anything."""
        return [id for id in self.want if 0 <= id < 1 << WANT_BITS][:IDS_MAX]


def begin_of(id: int) -> int:
    """How a request names the record of this id."""
    return id >> (ID_BITS - WANT_BITS)


def count_frame(
    coming: dict[NodeId, Coming],
    frame: AntiEntropyMessage,
    current: Exchange | None,
    records: Iterable[Record],
    held: int,
) -> Coming | None:
    """A frame came to who holds that: its exchange, if no other may come in it. `current` is open
    still."""
    one = coming.pop(frame.sender, None)
    if current is not None and (one is None or not one.counts(current)):
        one = Coming(current.number, current.lo, current.cut, current.started, held=held)
    if one is None or not (one.sound and one.frames >= 0):
        return None
    one.got(records)
    coming[frame.sender] = one
    if len(coming) > COMING_MAX:
        del coming[next(iter(coming))]
    if one.number != frame.exchange:  # the last of an earlier answer
        return None
    one.frames = min(one.frames, PUSH_FRAMES_MAX) + 1
    return one if one.frames == PUSH_FRAMES_MAX else None


class AntiEntropyState(State):
    """Exchanges under way, and what was learned of peers."""

    number: int
    exchanges: dict[int, Exchange]
    peers: dict[int, tuple[int, int]]
    agreed: dict[int, int] = field(default_factory=dict)
    coming: dict[int, Coming] = field(default_factory=dict)
    crossing: dict[int, bool] = field(default_factory=dict)
