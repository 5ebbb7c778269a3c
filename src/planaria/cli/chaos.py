"""`planaria chaos`: break a running network, watch it heal, and judge what became of it all."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles

import click
from msgspec import json

from planaria.chaos.draw import draw
from planaria.chaos.faults import Injection
from planaria.chaos.local import own_network
from planaria.chaos.names import load
from planaria.chaos.run import Report, Run, Verdict
from planaria.chaos.target import Target
from planaria.cli.access import JSON, reaches_network, run
from planaria.cli.tables import aligned
from planaria.core.errors import UsageError
from planaria.core.scenario import Schedule, print_schedule
from planaria.network.client.overlays import OVERLAYS
from planaria.network.context import Context
from planaria.network.local import NODES_MAX

FAULTS_DEFAULT = 20
TOPIC = "chaos"


@click.command()
@click.argument("schedule", required=False, metavar="[SCHEDULE|NAME]")
@click.option("--seed", type=int, default=0, help="Draws faults, victims and values [0].")
@click.option("--up", type=click.IntRange(2, NODES_MAX), help="Start so many nodes to break.")
@click.option("--supervisors", type=click.IntRange(1), default=2, help="How many of them [2].")
@click.option("--overlay", type=click.Choice(OVERLAYS), default="ring", help="Of which overlay.")
@click.option("--interval", type=float, help="Seconds between timeouts of nodes of --up [0.5].")
@click.option("--faults", type=click.IntRange(1, 10_000), help="Draw so many faults [20].")
@click.option("--topic", help="What to publish on [chaos/SEED].")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the files of --up here; without: forget them at the end.",
)
@click.option("--show", is_flag=True, help="Print the schedule and do nothing.")
@JSON
@reaches_network
def chaos(
    context: Context,
    schedule: str | None,
    seed: int,
    up: int | None,
    supervisors: int,
    overlay: str,
    interval: float | None,
    faults: int | None,
    topic: str | None,
    directory: Path | None,
    show: bool,
    as_json: bool,
) -> int:
    """Break a network that was started with --allow-chaos, or one of its own (--up).

    SCHEDULE is a file as the simulator reads it, or the name of one fault (kill, corrupt, …);
    without one, faults are drawn from the seed. Publishes and reads all the while. Exit 0: every
    promise held; 1: one did not, or a fault affected nothing.
    """
    if schedule is not None and faults is not None:
        raise UsageError("a schedule or --faults, not both: the faults of a schedule are in it")
    planned = load(schedule) if schedule is not None else draw(seed, faults or FAULTS_DEFAULT)
    if show:
        click.echo(print_schedule(planned), nl=False)
        return 0
    topic = topic or f"{TOPIC}/{seed}"
    plan = Plan(planned, seed, topic, overlay, in_turn=schedule is None, quiet=as_json)
    found = run(plan.own(up, supervisors, interval, directory) if up else plan.running(context))
    if as_json:
        click.echo(json.encode(found.report).decode())
    else:
        click.echo("\n".join(table(found)))
    for line in found.wrong:
        click.echo(f"planaria chaos: {line}", err=True)
    return 1 if found.wrong else 0


class Plan:
    """What is to be done, and to which network."""

    def __init__(
        self,
        schedule: Schedule,
        seed: int,
        topic: str,
        overlay: str,
        *,
        in_turn: bool,
        quiet: bool,
    ) -> None:
        self.schedule, self.seed, self.topic, self.overlay = schedule, seed, topic, overlay
        self.in_turn, self.quiet = in_turn, quiet

    async def own(
        self, nodes: int, supervisors: int, interval: float | None, directory: Path | None
    ) -> Verdict:
        """On a network of its own."""
        with tempfile.TemporaryDirectory(prefix="planaria-chaos-") as named:
            here = Path(named)
            count = min(supervisors, nodes)
            async with own_network(directory or here / "net", nodes, count, interval) as target:
                return await self._break(target, here / "copies")

    async def running(self, context: Context) -> Verdict:
        """On one that runs."""
        target = Target(context)
        with tempfile.TemporaryDirectory(prefix="planaria-chaos-") as named:
            try:
                return await self._break(target, Path(named))
            finally:
                await target.close()

    async def _break(self, target: Target, copies: Path) -> Verdict:
        await target.find()
        work = Run(target, self.topic, self.seed, copies, self._say, overlay=self.overlay)
        async with work:
            return await (work.in_turn if self.in_turn else work.timed)(self.schedule)

    def _say(self, line: str) -> None:
        if not self.quiet:
            click.echo(line)


def table(found: Verdict) -> list[str]:
    """What people read at the end: times by kind of fault, then what became of publications."""
    rows = [("fault", "times", "affected", "p50 s", "p99 s")]
    for kind in dict.fromkeys(it.action.kind for it in found.injections):
        its = [it for it in found.injections if it.action.kind == kind]
        p50, p99 = _times(its)
        rows.append((kind, str(len(its)), str(sum(it.affected for it in its)), p50, p99))
    report = found.report
    names = [it for it in Report.__struct_fields__ if it not in ("faults", "healed")]
    figures = [tuple(names), tuple(str(getattr(report, name)) for name in names)]
    verdict = "every promise held" if not found.wrong else "a promise was broken"
    return [*aligned(rows), "", *aligned(figures), "", verdict]


def _times(injections: Sequence[Injection]) -> tuple[str, str]:
    """Median and 99th percentile of the seconds until legitimate."""
    times = sorted(it.seconds for it in injections if it.seconds is not None)
    if not times:
        return "-", "-"
    if len(times) == 1:
        return f"{times[0]:.1f}", f"{times[0]:.1f}"
    cuts = quantiles(times, n=100, method="inclusive")
    return f"{cuts[49]:.1f}", f"{cuts[98]:.1f}"
