"""How far a trial is: one line on stderr that is overwritten, in a terminal only."""

import sys
import time
from typing import TextIO

from planaria.core.overlay import Violation
from planaria.simulator.trial import Trial

FIRST_SECONDS = 0.5  # a trial that ends sooner needs no line
NEXT_SECONDS = 0.1  # a person reads no faster
CLEAR = "\r\x1b[K"


class Ticker:
    """The line itself; silent where nobody watches."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._due = time.monotonic() + FIRST_SECONDS
        self._shown = False

    def show(self, text: str) -> None:
        """Replace the line, if it is time for it."""
        now = time.monotonic()
        if self._terminal and now >= self._due:
            self._due, self._shown = now + NEXT_SECONDS, True
            self._stream.write(f"{CLEAR}{text[:79]}")
            self._stream.flush()

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._shown:
            self._shown = False
            self._stream.write(CLEAR)
            self._stream.flush()


class Ticking(Trial):
    """A trial that shows how far it is whenever it looks at its network."""

    ticker: Ticker | None = None

    def violations(self) -> list[Violation]:
        """As in any trial."""
        found = super().violations()
        if self.ticker is not None:
            at = f"interval {self.simulator.interval:,}, {self.simulator.sent:,} messages"
            state = f"{len(found):,} broken" if found else "all invariants hold"
            self.ticker.show(f"planaria: {at}: {state}")
        return found
