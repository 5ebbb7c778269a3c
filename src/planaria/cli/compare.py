"""`planaria compare`: the overlays and their alternatives under one workload, on Spark."""

import json
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from planaria import __version__
from planaria.cli.main import BROKEN, INTERRUPTED
from planaria.cli.tables import aligned, command, filled, folded
from planaria.core.errors import UsageError
from planaria.spark.sessions import LABORATORY, MASTER_HELP, require, session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planaria.studies.compare import Verdict
    from planaria.studies.compare_live import LiveFigures

SIMULATED, LIVE = 24, 8  # nodes, if nobody says how many
SEEDS = 3


@click.command()
@click.option("--n", type=int, help="How many nodes  [default: 24, live 8]")
@click.option("--live", is_flag=True, help="The four overlays on sockets of this machine instead.")
@click.option(
    "--topics", type=int, default=3, show_default=True, help="How many, in chains of three."
)
@click.option("--events", type=int, default=12, show_default=True, help="Published in each run.")
@click.option("--seeds", type=click.IntRange(1), help="For each run  [default: 3]")
@click.option("--out", metavar="DIR|URL", help="Results  [default: out/compare/VERSION]")
@click.option("--master", metavar="URL", help=MASTER_HELP)
@click.option("--cell", metavar="KEY", help="Repeat one cell alone and print its result.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
def compare(
    n: int | None,
    live: bool,
    topics: int,
    events: int,
    seeds: int | None,
    out: str | None,
    master: str | None,
    cell: str | None,
    as_json: bool,
) -> int:
    """Compare the overlays, a broker, flooding and plain gossip, and say which one to use.

    All get the same topics, subscribers, events and faults: none, a crash of a quarter, a crash of
    the busiest process, loss, a partition, arbitrary state everywhere. An interrupted run resumes
    when the command is repeated. Exit code 0: the overlays kept their promises, whether the others
    did or not; 1: one did not, or a run raised an exception; 2: the command is wrong.

    --live needs no Spark: all nodes run in this process, and a quarter of them is ended. Beside
    them NATS and Mosquitto, where they are installed: a quarter of the clients is ended, the broker
    killed and started again.
    """
    if live:
        simulated = {"--seeds": seeds, "--out": out, "--master": master, "--cell": cell}
        if given := [name for name, value in simulated.items() if value is not None]:
            raise UsageError(f"{', '.join(given)}: not with --live, which is one run on sockets")
        return _live(n or LIVE, topics, events, as_json)
    require()
    from planaria.spark.watch import Stopped
    from planaria.studies.compare import Comparison

    comparison = Comparison(n or SIMULATED, topics, events, seeds or SEEDS, out or "")
    if cell is not None:
        result = comparison.one_cell(cell)
        if result is None:
            raise UsageError(f"unknown cell {cell!r} of this comparison")
        click.echo(json.dumps(result.summary))
        return 0
    sweep = comparison.sweep()  # a wrong directory is an error before Spark starts
    click.echo("planaria: starting Spark", err=True)
    try:
        with session(master, LABORATORY) as spark:
            verdict = comparison.run(spark, sweep)
    except Stopped as stopped:
        click.echo(f"planaria: {stopped}", err=True)
        return INTERRUPTED
    if as_json:
        click.echo(json.dumps({**to_builtins(verdict), "version": __version__}))
    else:
        click.echo(in_words(verdict))
    return 0 if verdict.good else BROKEN


def _live(n: int, topics: int, events: int, as_json: bool) -> int:
    from planaria.lab.contest.workload import make_workload
    from planaria.network.loop import run
    from planaria.studies.compare_brokers import compare_brokers
    from planaria.studies.compare_live import broken, compare_live

    workload = make_workload(n, topics, events, seed=1)

    def report(line: str) -> None:
        click.echo(f"planaria: {line}", err=True)

    found = [*run(compare_live(workload, report)), *run(compare_brokers(workload, report))]
    if as_json:
        click.echo(json.dumps({"live": to_builtins(found), "n": n, "version": __version__}))
    else:
        click.echo("\n".join(live_rows(found)))
    wrong = [line for it in found for line in broken(it)]
    for line in wrong:
        click.echo(f"planaria: broken promise: {line}", err=True)
    return BROKEN if wrong else 0


def live_rows(found: "Sequence[LiveFigures]") -> list[str]:
    """What people read."""
    rows = [["overlay", "p50 ms", "p99 ms", "bytes", "messages", "lost", "in the fault", "after",
             "twice", "healed"]]  # fmt: skip
    for it in found:
        lost = [f"{100 * share:.1f} %" for share in (it.lost, it.lost_in_fault, it.lost_after)]
        healed = "no" if it.recovery_seconds is None else f"{it.recovery_seconds:.1f} s"
        figures = [f"{it.p50_ms:.1f}", f"{it.p99_ms:.1f}", f"{it.bytes:,.0f}", f"{it.messages:.1f}"]
        rows.append([it.overlay, *figures, *lost, str(it.twice), healed])
    return [*aligned(rows, right=range(1, len(rows[0])))]


def in_words(verdict: "Verdict") -> str:
    """What people read."""
    from planaria.studies.advice import by_fault, in_calm

    calm, faults = in_calm(verdict.table), by_fault(verdict.table)
    lines = ["in calm, per delivery: messages, hops, intervals; bytes per process", ""]
    lines += folded(calm, right=range(1, len(calm[0])))
    lines += ["", "under faults: lost among survivors, intervals until whole again", ""]
    lines += folded(faults, right=range(1, len(faults[0])))
    lines += ["", "which one should I use?"]
    lines += [line for it in verdict.advice for line in filled(f"- {it}", "  ")]
    lines += [line for it in verdict.broken for line in filled(f"broken promise: {it}", "  ")]
    for it in verdict.errors:
        lines += filled(f"error in {it['cells']:,}: {it['error']}", "  ") + command(it["replay"])
    return "\n".join([*lines, "", f"results in {verdict.out}"])
