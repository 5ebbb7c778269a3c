"""`planaria demo`: break a real network in every way, and watch it heal."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from planaria.cli.main import BROKEN
from planaria.cli.streams import needed_stdout
from planaria.cli.tables import aligned
from planaria.core.errors import UsageError

if TYPE_CHECKING:
    from planaria.demo.run import Outcome


@click.command()
@click.option("--master", metavar="URL", help="Where Spark runs; as in reproduce.")
def demo(master: str | None) -> int:
    """Break a real network in every way, and watch it heal.

    Starts a dozen processes, publishes real flights on a topic, lets Spark keep a running
    aggregate of them, and breaks one thing after the other. Exit code 0: nothing was lost or
    delivered twice, all healed, and Spark has the right answer.
    """
    from planaria.spark.sessions import choose_master, require

    require()
    choose_master(master)  # a wrong master is an error now, not after all has started
    try:
        from planaria.demo.flights import flights
        from planaria.demo.run import play
        from planaria.demo.story import STORY
    except ModuleNotFoundError as error:
        raise UsageError(f"the demo needs {error.name}: pip install 'planaria[demo]'") from None
    next(flights())
    outcome = asyncio.run(play(needed_stdout(), master))
    titles = [chapter.title for chapter in STORY]
    click.echo("\n".join(["", *table(titles, outcome), "", *closing(outcome)]))
    return 0 if outcome.good else BROKEN


def table(titles: Sequence[str], outcome: "Outcome") -> list[str]:
    """Each fault by its title, what failed, and how long it took to heal."""
    from planaria.demo.screen import HEAD, NOTHING

    rows = [HEAD]
    for words, fault, failed in zip(titles, outcome.report.faults, outcome.failed, strict=True):
        seconds = "never" if fault.seconds is None else f"{fault.seconds:.1f} s"
        rows.append((words, ", ".join(failed) or NOTHING, seconds))
    return aligned(rows, right=[2], wrapped=1)


def because(failure: str | None) -> str:
    """Why, if that is known."""
    return "" if failure is None else f" ({failure})"


def closing(outcome: "Outcome") -> list[str]:
    """What became of everything, and the same with a plain broker."""
    report, broker = outcome.report, outcome.broker
    right = "right" if outcome.spark else f"NOT right{because(outcome.failure)}"
    lines = [
        f"published {report.published:,}, acknowledged {report.acknowledged:,}, delivered "
        f"{report.delivered:,} times ({report.late:,} late),",
        f"lost {report.lost}, delivered twice {report.twice}, "
        f"destroyed with all their copies {report.destroyed}",
        f"Spark counted {outcome.counted:,} flights by carrier: its answer is {right}",
        "",
        "The same with a plain broker (simulated): clients announce their interest once,",
        f"the broker restarts without memory. {broker.lost_after:.0%} of what is published then",
        "reaches nobody, and both ends call their connection healthy.",
    ]
    return lines + [f"WRONG: {line}" for line in outcome.wrong]
