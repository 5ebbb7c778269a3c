"""A network that heals before one's eyes: which invariants fail, interval by interval.

A picture that moves in a terminal; elsewhere a line whenever a phase of the healing is over.
"""

import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from planaria.cli.tables import WIDTH
from planaria.core.overlay import Violation
from planaria.simulator.trial import Trial

FRAME_SECONDS = 0.08  # slow enough to see, over in seconds
HISTORY_SHOWN = 40  # intervals: with names and counts they fit into 80 columns
HEIGHTS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-:=+*#"  # the same where a terminal has no bars


class Watched(Trial):
    """A trial that shows what fails whenever it looks."""

    screen: "Screen | None" = None

    def violations(self) -> list[Violation]:
        """As ever, but seen."""
        found = super().violations()
        if self.screen is not None:
            self.screen.show(self.simulator.interval, found)
        return found


class Screen:
    """What a person sees of one trial."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self.what = what
        self.history: dict[str, list[int]] = {}
        self.looks = 0
        self._console = Console(file=stream, highlight=False)
        self._bars = HEIGHTS if self._console.encoding.startswith("utf") else PLAIN
        self._live: Live | None = None
        self._shown: Counter[str] | None = None
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def show(self, interval: int, found: Sequence[Violation]) -> None:
        """The state at the end of an interval."""
        counts = Counter(violation.invariant for violation in found)
        for name in counts:
            self.history.setdefault(name, [0] * self.looks)
        for name, past in self.history.items():
            past.append(counts[name])
        self.looks += 1
        if self._live is not None:
            self._live.update(self._picture(interval), refresh=True)
            time.sleep(FRAME_SECONDS)
        elif self._shown is None or news(self._shown, counts):
            self._shown = counts
            text = f"{self.what}: interval {interval}: "
            text += broken(counts, WIDTH - len(text))
            self._console.print(text, soft_wrap=True, markup=False)

    def stop(self) -> None:
        """Nothing moves any more."""
        if self._live is not None:
            self._live.stop()

    def end(self, text: str, *, good: bool) -> None:
        """How it ended, below what was seen."""
        style = "bold green" if good else "bold red"
        self._console.print(text, style=style, soft_wrap=True, markup=False)

    def _picture(self, interval: int) -> Group:
        grid = Table.grid(padding=(0, 2))
        for name, past in self.history.items():
            colour = "red" if past[-1] else "green"
            grid.add_row(
                Text(name),
                Text(heights(past[-HISTORY_SHOWN:], max(past), self._bars), style=colour),
                Text(f"{past[-1]:,} broken" if past[-1] else "holds", style=colour),
            )
        return Group(Text(f"{self.what}, interval {interval}", style="bold"), grid)


def heights(past: Sequence[int], most: int, bars: str = HEIGHTS) -> str:
    """A line of bars: nothing where nothing fails, the tallest where most does."""
    top, none = len(bars) - 1, "·" if bars is HEIGHTS else " "
    return "".join(bars[-(-count * top // most)] if count else none for count in past)


def news(before: Counter[str], now: Counter[str]) -> bool:
    """Is `now` worth a line after `before`? Half of it is gone, or most of it is new."""
    return now.total() <= before.total() / 2 > 0 or (now - before).total() > now.total() / 2


def broken(counts: Counter[str], width: int = WIDTH) -> str:
    """Which invariants fail how often, worst first, as many as fit into `width`."""
    if not counts:
        return "all invariants hold"
    named = [f"{name} {count:,}" for name, count in counts.most_common()]
    for shown in range(len(named), 0, -1):
        rest = [] if shown == len(named) else ["..."]
        text = f"{counts.total():,} broken ({', '.join(named[:shown] + rest)})"
        if len(text) <= width:
            break
    return text
