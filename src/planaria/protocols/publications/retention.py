"""How long a topic keeps its publications, so that all subscribers agree and nothing comes back.

A record carries the second it was published in; a topic's setting only moves a window over
that order. The present is a median of clocks, so one wrong clock moves nobody. What falls out of
the window is hidden at once, but deleted only after a grace in which nobody near showed it: a
wrong clock, and a wrong setting, can be taken back.
"""

from collections.abc import Iterable
from statistics import median_low
from typing import Annotated

from msgspec import Meta, Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.state import State, Stateful
from planaria.protocols.publications.antientropy_messages import RecordKey
from planaria.records.record import TIME_MAX
from planaria.records.window import LIMIT_MAX, Window

STEPS = 16  # a window moves by a sixteenth of the age: neighbours show the same nearly always
GRACE_SECONDS = 86_400  # hidden for a day, or for the age if that is shorter, before it is deleted
SLOTS = 16  # parts of the grace of which is known what was shown in them
# A digest leaves alone what is younger: two intervals for the broadcast, and two more since a
# publisher knows the time to the second, and as of its last timeout.
ON_ITS_WAY_SECONDS = 4
READINGS = 4  # in one slot, at least: so a clock that jumps does not shorten the grace
SETTINGS_MAX = 8  # in one slot; an operator who tries more of them keeps the first
VOTERS_MAX = 256  # a node has at most 2 * 62 neighbours and a few that are changing
VOTE_TIMEOUTS = 8  # a neighbour advertises its clock in every interval, or promises when
PROMISE_MAX = 16  # intervals between two words of a calm neighbour
READING_SECONDS_MAX = 2  # between two readings of a clock that nobody moved
UNREAD_SECONDS_MAX = 32  # for which a calm topic does not read it: sixteen intervals of two seconds

_Positive = Annotated[int, Meta(ge=1)]


class Retention(Struct, frozen=True, array_like=True):
    """What a topic keeps; all its subscribers apply the same. None: no limit.

    `age` in seconds, `count` publications in all, `per_publisher` of them by one publisher: without
    that quota one publisher could flush a topic. It decides what is kept, never what is delivered.
    """

    age: _Positive | None = None
    count: _Positive | None = None
    per_publisher: _Positive | None = None

    @property
    def step(self) -> int:
        """By how many seconds the window moves. Clocks should differ by much less than that."""
        return 1 if self.age is None else max(1, -(-self.age // STEPS))

    @property
    def grace(self) -> int:
        """For how many seconds something is hidden before it is deleted."""
        return GRACE_SECONDS if self.age is None else min(self.age, GRACE_SECONDS)

    @property
    def limit(self) -> int:
        """How many publications are shown in all."""
        return LIMIT_MAX if self.count is None else min(self.count, LIMIT_MAX)


class Rejected(Message, frozen=True, tag="publications.rejected"):
    """Your record is older than what is kept here: if you agree, publish it again."""

    topic: str
    sender: NodeId
    key: RecordKey


Limits = tuple[int, int | None]  # a window's count and quota


class WallClock:
    """A node's clock as its driver last read it, for all its topics."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds: int | None = None

    def moved(self, seconds: int) -> bool:
        """Does it show now what it cannot by going on as before?"""
        return self.seconds is None or not 0 <= seconds - self.seconds <= READING_SECONDS_MAX


class HorizonState(State):
    """Clocks, the window's lower end, and what was lately shown here and next door."""

    seconds: int | None
    votes: dict[int, tuple[int, int, int]]
    now: int | None
    lo: int
    elapsed: int
    slots: list[dict[tuple[int, int | None], int]]


class Horizon(Stateful):
    """One subscriber's window: `lo`, the oldest second shown, by the median of the clocks.

    Nothing here is trusted for long: the own clock is read anew before each timeout, votes expire,
    a stored `lo` that is not near the median is reset, and slots pass. A calm topic reads it later
    than the driver did, and takes that into account.
    """

    __slots__ = (
        "clock",
        "elapsed",
        "lo",
        "now",
        "retention",
        "seconds",
        "slots",
        "votes",
    )

    state_type = HorizonState

    def __init__(self, retention: Retention) -> None:
        self.retention, self.clock = retention, WallClock()
        self.seconds: int | None = None  # the last reading of the own clock
        self.votes: dict[NodeId, tuple[int, int, int]] = {}  # peer: clock, lo, timeouts since heard
        self.now: int | None = None  # None while no clock at all is known
        self.lo = 0
        self.elapsed = 0  # own seconds since the last slot began
        self.slots: list[dict[Limits, int]] = [{}]  # in each, the lowest lo under each setting

    def read_clock(self, seconds: int) -> None:
        """The driver read the wall clock. What passed since the last reading counts, but little.

        So the grace survives a clock that jumps, and a machine that slept through it.
        """
        seconds = max(0, min(seconds, TIME_MAX))
        if self.seconds is not None:
            at_most = max(1, self.retention.grace // (SLOTS * READINGS))
            passed = max(0, seconds - self.seconds)
            self.elapsed += min(passed, at_most)
            if 0 < passed <= READING_SECONDS_MAX:
                self._go_on(passed)
        self.seconds = seconds
        self._place_window()

    @property
    def unread(self) -> int:
        """The seconds that have passed on the clock since it was last read for this topic."""
        if self.seconds is None or self.clock.seconds is None:
            return 0
        passed = self.clock.seconds - self.seconds
        return passed if 0 <= passed <= UNREAD_SECONDS_MAX else 0

    def catch_up(self) -> None:
        """Let the seconds pass that were not read, in which nobody moved the clock."""
        passed = self.unread
        if passed and self.seconds is not None:
            self.elapsed += passed
            self._go_on(passed)
            self.seconds += passed

    def hear(self, peer: NodeId, clock: int, lo: int, promise: int = 1) -> None:
        """The neighbour `peer` tells its clock and what it shows; counted at timeouts.

        Its vote counts for longer if it promises to be silent for longer. It goes on with the own
        clock then, from where that was last read.
        """
        if peer in self.votes or len(self.votes) < VOTERS_MAX:
            ahead = self.unread if promise > 1 else 0
            self.votes[peer] = (clock - ahead, lo, VOTE_TIMEOUTS * (1 - promise))

    def _go_on(self, seconds: int) -> None:
        """The clocks of those who promised to be silent go on as the own one does."""
        for peer, (clock, lo, age) in self.votes.items():
            if age < 0:
                self.votes[peer] = (min(clock + seconds, TIME_MAX), lo, age)

    def on_timeout(self, neighbours: list[NodeId]) -> None:
        """Time passed: only recent votes of neighbours count, and the grace goes on."""
        heard = [(peer, self.votes[peer]) for peer in neighbours if peer in self.votes]
        self.votes = {
            peer: (clock, lo, age + 1)
            for peer, (clock, lo, age) in heard
            if -VOTE_TIMEOUTS * PROMISE_MAX < age < VOTE_TIMEOUTS
        }
        self._place_window()
        length = max(1, self.retention.grace // SLOTS)
        if not 0 <= self.elapsed < 2 * length:
            self.elapsed = 0  # no run of timeouts gets there
        if self.elapsed >= length or not self.slots:
            self.slots.append({})
            self.elapsed = max(0, self.elapsed - length)
        del self.slots[: -SLOTS - 1]
        self._note(self.window)

    @property
    def present(self) -> int:
        """The second in which something is published now, whatever a fault made of `now`."""
        return max(0, min((self.now or 0) + self.unread, TIME_MAX))

    @property
    def shown_clock(self) -> int:
        """The own clock, as neighbours are told; 0 if it was never read."""
        return 0 if self.seconds is None else self.seconds + self.unread

    @property
    def cut(self) -> int:
        """What was published since may still be on its way; all is compared without a clock."""
        return TIME_MAX if self.now is None else max(0, self.present - ON_ITS_WAY_SECONDS)

    def oldest(self, windows: Iterable[Window]) -> int:
        """What was last heard of before this second, nothing can bring back, by `windows`."""
        return min(window.lo for window in windows) - (self.retention.age or 0)

    @property
    def window(self) -> Window:
        """What to show now."""
        return Window(self.lo, self.retention.limit, self.retention.per_publisher)

    def windows(self) -> list[Window]:
        """What was shown during the grace, here or by a neighbour: nothing of it is deleted.

        Nothing is deleted for its age before a whole grace has been seen.
        """
        found: dict[Limits, int] = {}
        for slot in self.slots:
            for limits, lo in slot.items():
                found[limits] = min(lo, found.get(limits, lo))
        if len(self.slots) <= SLOTS:
            found = dict.fromkeys(found, 0)
        return [Window(max(0, lo), *limits) for limits, lo in found.items()]

    def retain(self, retention: Retention) -> None:
        """Another setting holds from now on."""
        self.retention = retention
        self._place_window()

    def _note(self, window: Window) -> None:
        """In this slot so much was shown, here or next door."""
        lows = [lo for _, lo, _ in self.votes.values()]
        slot, limits = self.slots[-1], window[1:]
        if limits in slot or len(slot) < SETTINGS_MAX:
            slot[limits] = min([window.lo, slot.get(limits, window.lo), *lows])

    def _place_window(self) -> None:
        """The present is the low median of the raw clocks; lo is an age before it, in steps."""
        clocks = [clock for clock, _, _ in self.votes.values()]
        if self.seconds is not None:
            clocks.append(self.seconds)
        self.now = max(0, min(median_low(clocks), TIME_MAX)) if clocks else None
        step, lowest = self.retention.step, 0
        if self.now is not None and self.retention.age is not None:
            lowest = max(0, (self.now // step - STEPS) * step)
        # Keeping lo when the present steps back by one stops a second from flickering.
        if self.retention.age is None or self.lo != lowest + step:
            self.lo = lowest
