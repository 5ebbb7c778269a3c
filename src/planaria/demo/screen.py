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
from planaria.demo.story import STORY

WIDTH = 80
CARRIERS_SHOWN = 6
WRONG_SHOWN = 3
VICTIMS_SHOWN = 6


class Screen:
    """What a person sees of the demo; `address` is the dashboard's."""

    def __init__(self, stream: TextIO, address: str | None) -> None:
        self.address = address
        self._console = Console(file=stream, highlight=False, width=WIDTH)
        self._live: Live | None = None
        self._told = 0
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def say(self, line: str) -> None:
        """Tell something once."""
        self._console.print(line)

    def show(self, run: Run, spark: Aggregate) -> None:
        """Draw how it is now; without a terminal, tell what is new."""
        if self._live is not None:
            self._live.update(self._picture(run, spark), refresh=True)
            return
        for at in range(self._told, len(run.injections)):
            found = run.injections[at]
            if found.seconds is None:
                return
            where = ", ".join(found.victims) if len(found.victims) < VICTIMS_SHOWN else "all"
            self.say(f"{STORY[at].told} ({where})")
            self.say(f"  legitimate after {found.seconds:.1f} s")
            self.say(f"  {counts(run, spark)}")
            self._told += 1

    def stop(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _picture(self, run: Run, spark: Aggregate) -> Group:
        table = Table(box=None, padding=(0, 1), pad_edge=False)
        for name in ("what was broken", "affected", "legitimate after"):
            table.add_column(name, justify="left" if name == "what was broken" else "right")
        for at, chapter in enumerate(STORY):
            if at < len(run.injections):
                found = run.injections[at]
                done = "…" if found.seconds is None else f"{found.seconds:.1f} s"
                table.add_row(chapter.told, f"{found.affected:,}", done)
            elif at == len(run.injections):
                table.add_row(Text(chapter.told, style="bold"), "", "now")
            else:
                table.add_row(Text(chapter.told, style="dim"), "", "")
        wrong = run.watch.wrong[:WRONG_SHOWN] if run.watch.looks else []
        state = Text("legitimate: every invariant holds", style="green")
        if wrong:
            shown = [line if len(line) < WIDTH - 2 else line[: WIDTH - 3] + "…" for line in wrong]
            state = Text("\n".join(["not legitimate:", *(f"  {it}" for it in shown)]), style="red")
        head = Text(f"dashboard: {self.address}\n" if self.address else "")
        return Group(
            head, table, Text(""), state, Text(""), Text(counts(run, spark)), delays(spark)
        )


def counts(run: Run, spark: Aggregate) -> str:
    """How much of everything, in one line."""
    applications = run.applications
    published = len(applications.asked)
    held = len(applications.acknowledged)
    given = len(applications.given)
    return (
        f"published {published:,}, acknowledged {held:,}, delivered {given:,}, "
        f"Spark counted {spark.answer.flights:,}"
    )


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
