"""How far a sweep is: a bar in a terminal, a line now and then elsewhere. All on stderr."""

import sys
import time
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

LINE_SECONDS = 10.0  # between two plain lines: a log should not be flooded


class Bars:
    """Where meters show what they count: one bar below the other, if this is a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.shown: Progress | None = None
        if self.stream.isatty():
            self.shown = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rest]}"),
                console=Console(file=self.stream),
                transient=True,
            )

    def __enter__(self) -> Self:
        if self.shown is not None:
            self.shown.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown is not None:
            self.shown.stop()


class Meter:
    """Shows done of total, rate, time left and failures; `show` may be called at any rate."""

    def __init__(self, what: str, total: int, before: int, bars: Bars) -> None:
        self.what, self.total, self.before = what, total, before
        self._started = self._said = time.monotonic()
        self._last = (-1, -1)
        self._stream, self._bars = bars.stream, bars.shown

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bar = self._bars.add_task(
                self.what, total=self.total, completed=self.before, rest=""
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.refresh()  # what was counted last
            self._bars.remove_task(self._bar)

    def show(self, done: int, failed: int) -> None:
        """`done` cells, of which `failed`, since this run began."""
        if self._bars is not None:
            rest = self._rest(done, failed)
            self._bars.update(self._bar, completed=self.before + done, rest=rest)
            return
        now, finished = time.monotonic(), self.before + done == self.total
        due = now - self._said >= LINE_SECONDS or finished
        if due and (done, failed) != self._last:
            self._said, self._last = now, (done, failed)
            counted = f"{self.before + done:,} of {self.total:,}"
            print(
                f"planaria: {self.what}: {counted}, {self._rest(done, failed)}",
                file=self._stream,
                flush=True,
            )

    def per_minute(self, done: int) -> float:
        """Cells a minute since this run began."""
        return 60 * done / max(1e-9, time.monotonic() - self._started)

    def _rest(self, done: int, failed: int) -> str:
        rate = self.per_minute(done)
        left = "?" if not done else duration(60 * (self.total - self.before - done) / rate)
        return f"{rate:,.0f} a minute, {left} left, {failed:,} failed"


def duration(seconds: float) -> str:
    """As people say it: 12 s, 3 min 5 s, 2 h 7 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
