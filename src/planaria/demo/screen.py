"""One screen of 80 columns: what was broken, what fails now, what was published and delivered.

In a terminal it is drawn again and again; elsewhere a line tells each thing once.
"""

from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from planaria.chaos.run import Run
from planaria.demo.aggregate import Aggregate
from planaria.demo.seen import Seen
from planaria.demo.story import STORY

WIDTH = 80
CARRIERS_SHOWN = 6
WRONG_SHOWN = 3
VICTIMS_SHOWN = 6
HEAD = ("what was broken", "invariants that failed", "healed in")
NOTHING = "none that a look saw"  # it was whole again before the doctor came


class Screen:
    """What a person sees of the demo."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False, width=WIDTH)
        self._live: Live | None = None
        self._shown = 0
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def say(self, line: str) -> None:
        """Tell something once."""
        self._console.print(line)

    def show(self, run: Run, seen: Seen, spark: Aggregate) -> None:
        """Draw how it is now; without a terminal, tell what is new."""
        if self._live is not None:
            self._live.update(picture(run, seen, spark), refresh=True)
            return
        for at in range(self._shown, len(run.injections)):
            found = run.injections[at]
            if found.seconds is None:
                return
            where = ", ".join(found.victims) if len(found.victims) < VICTIMS_SHOWN else "all"
            self.say(f"{STORY[at].title} ({where})")
            self.say(f"  failed: {', '.join(seen.failed(found)) or NOTHING}")
            self.say(f"  healed in {found.seconds:.1f} s")
            for line in counts(run, seen, spark):
                self.say(f"  {line}")
            self._shown += 1

    def stop(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def picture(run: Run, seen: Seen, spark: Aggregate) -> Group:
    """The whole screen."""
    wrong = run.watch.wrong[:WRONG_SHOWN] if run.watch.looks else []
    state = Text("legitimate: every invariant holds at every node", style="green")
    if wrong:
        shown = [line if len(line) < WIDTH - 2 else line[: WIDTH - 3] + "…" for line in wrong]
        state = Text("\n".join(["not legitimate:", *(f"  {it}" for it in shown)]), style="red")
    numbers = Text("\n".join(counts(run, seen, spark)))
    return Group(Text(""), chapters(run, seen), Text(""), state, Text(""), numbers, delays(spark))


def chapters(run: Run, seen: Seen) -> Table:
    """What was broken, what failed then, and how long it took; the next ones in grey."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, width=WIDTH)
    broken, failed, healed = HEAD
    table.add_column(broken, no_wrap=True)
    table.add_column(failed, no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(healed, no_wrap=True, justify="right")
    for at, chapter in enumerate(STORY):
        if at < len(run.injections):
            found = run.injections[at]
            done = "…" if found.seconds is None else f"{found.seconds:.1f} s"
            names = ", ".join(seen.failed(found)) or ("" if found.seconds is None else NOTHING)
            table.add_row(chapter.title, names, done)
        elif at == len(run.injections):
            table.add_row(Text(chapter.title, style="bold"), "", "now")
        else:
            table.add_row(Text(chapter.title, style="dim"), "", "")
    return table


def counts(run: Run, seen: Seen, spark: Aggregate) -> list[str]:
    """How much of everything, in two lines."""
    applications = run.applications
    published = len(applications.asked)
    held = len(applications.acknowledged)
    given = len(applications.given)
    return [
        f"published {published:,}, acknowledged {held:,}, delivered {given:,}, "
        f"Spark counted {spark.answer.flights:,}",
        f"late {seen.late:,}, twice {seen.twice:,}, still missing {seen.missing:,}",
    ]


def delays(spark: Aggregate) -> Text:
    """Spark's running aggregate, in one line."""
    if spark.failure is not None:
        return Text(f"Spark: {spark.failure}", style="red")
    if not spark.answer.rows:
        return Text("Spark is starting", style="dim")
    shown = [
        f"{name} {'-' if mean is None else f'{mean:.1f}'}"
        for name, _, mean in spark.answer.rows[:CARRIERS_SHOWN]
    ]
    return Text("mean delay in minutes, by carrier: " + "  ".join(shown), style="dim")
