"""`planaria bench`: the live network on this machine, beside other systems in the same run."""

import json
import os
import tempfile
from pathlib import Path

import click
from msgspec.structs import replace

from planaria.cli.tables import aligned
from planaria.core.errors import PlanariaError
from planaria.network.bench.contenders import OURS, PEERS, contender, peers
from planaria.network.bench.measure import QUICK, Plan, compare
from planaria.network.bench.report import as_json, ratio_rows, rows
from planaria.network.loop import run


@click.command()
@click.option(
    "--against",
    metavar="NAMES",
    default="",
    help=f"Peers, separated by commas: {', '.join(PEERS)}.",
)
@click.option("--rounds", type=click.IntRange(1, 100), help="How often  [default: 5, quick 2]")
@click.option("--quick", is_flag=True, help="Short rounds: ends within a minute.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object instead of tables.")
def bench(against: str, rounds: int | None, quick: bool, json_wanted: bool) -> None:
    """Measure one publisher and eight subscribers, 128 bytes, each a process of its own.

    Figures are medians over rounds in which all systems take their turns: deliveries a second, CPU
    microseconds of all processes (servers too) for each delivery, and the latency at 500
    publications a second. On a busy machine only the ratios say something. Peers that are not
    installed are named and left out.
    """
    plan = QUICK if quick else Plan()
    if rounds is not None:
        plan = replace(plan, rounds=rounds)
    load = os.getloadavg()[0]
    ours, *others = map(contender, OURS)
    asked = peers(against, _report)  # at once: where time is short, what was asked for is there
    contenders = [ours, *asked, *others]
    with tempfile.TemporaryDirectory(prefix="planaria-bench-") as directory:
        found = run(compare(contenders, plan, Path(directory), _report))
    order = [*OURS, *(peer.name for peer in asked)]
    results = {name: found[name] for name in order if name in found}
    if not results:
        raise PlanariaError("nothing could be measured: see the lines above")
    if json_wanted:
        click.echo(json.dumps(as_json(results, plan, load)))
        return
    for line in aligned(rows(results), right=range(1, 6)):
        click.echo(line)
    if len(results) > len(OURS):
        click.echo()
        for line in aligned(ratio_rows(results), right=range(2, 6)):
            click.echo(line)


def _report(line: str) -> None:
    click.echo(f"planaria: {line}", err=True)
