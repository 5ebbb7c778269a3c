"""How often a topic speaks: less and less while it is calm, in every interval while it is not.

Speaking is slowed, and with it the timeouts of the history, in which then nothing is under way. The
counters of the place run with the intervals, and whoever speaks promises when it speaks next: so
one in doubt, in every interval, and its calm neighbours, each sixteenth, have the same patience
with each other. That a process is gone its links tell, whatever its topics do.

A calm topic is not looked at either before it speaks again: the intervals are made up for at
once, before the next look or whatever happens to it. A thousand topics cost next to nothing so.
"""

from typing import Annotated

from msgspec import Meta

from planaria.core.state import State, Stateful

PACE_MAX = 16  # intervals: 8 s at the default interval

REST_MAX = PACE_MAX - 1  # without a look: a fault in memory is seen when it is time to speak

Promise = Annotated[int, Meta(ge=1, le=PACE_MAX)]  # intervals until the next word


class PaceState(State):
    """Intervals between two words, those left until the next, what was last shown, for how many
    intervals nobody need look, and how many of them have passed."""

    pace: int
    left: int
    shown: int
    rest: int = 0
    rested: int = 0


class Pace(Stateful):
    """The pace of one topic at one node: doubles up to `longest`, falls back at the first doubt."""

    __slots__ = ("left", "longest", "pace", "rest", "rested", "shown")
    state_type = PaceState

    def __init__(self, longest: int = 1) -> None:
        self.longest = longest
        self.pace = 1
        self.left = 1
        self.shown = 0
        self.rest = self.rested = 0

    @property
    def spoke(self) -> bool:
        """Did the last timeout say something?"""
        return self.left == self.pace

    def reset(self) -> None:
        """Something happened: speak in the next interval, and in the one after."""
        self.pace = self.left = 1
        self.rest = 0

    @property
    def resting(self) -> bool:
        """Is there nothing to do in the next interval?"""
        return 0 <= self.rested < self.rest <= REST_MAX

    def rests(self) -> bool:
        """An interval passes: if there is nothing to do in it, it is only counted."""
        resting = self.resting
        self.rested += resting
        return resting

    def make_up(self) -> int:
        """How many intervals were only counted; from now on they have passed."""
        passed, self.rested = self.rested if 0 < self.rested <= REST_MAX else 0, 0
        if passed:
            self.rest = max(0, self.rest - passed)
            self.left = max(1, self.left - passed)
        return passed

    def lie_down(self, intervals: int = REST_MAX) -> None:
        """All is well: look again after at most so many intervals, and when it is time to speak."""
        self.rest = max(0, min(intervals, REST_MAX, self.left - 1))

    def on_timeout(self, *, doubt: bool, shown: int = 0) -> int:
        """An interval passed: the promise to give with what is said now; 0: say nothing.

        `shown` names what would be said; something new is said at once.
        """
        if doubt or shown != self.shown or not 0 < self.left <= self.pace <= self.longest:
            self.shown = shown
            self.reset()
            return 1
        self.left -= 1
        if self.left:
            return 0
        self.pace = self.left = min(2 * self.pace, self.longest)
        return self.pace
