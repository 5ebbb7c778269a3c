"""`planaria reproduce [PAPER ...]`: every figure, table and claim of the papers, on Spark."""

import json
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from planaria import __version__
from planaria.cli.main import BROKEN, INTERRUPTED
from planaria.cli.tables import aligned
from planaria.spark.session import MASTER_HELP, require, session

if TYPE_CHECKING:
    from planaria.spark.reproduce import Reproduction, Verdict


@click.command()
@click.argument("papers", nargs=-1, metavar="[PAPER]...")
@click.option("--scale", default="quick", show_default=True, help="quick, paper or beyond.")
@click.option("--out", metavar="DIR|URL", help="Results  [default: out/reproduce/SCALE-VERSION]")
@click.option("--master", metavar="URL", help=MASTER_HELP)
@click.option("--cell", metavar="KEY", help="Run one cell again, alone, and print what it gives.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def reproduce(
    papers: tuple[str, ...],
    scale: str,
    out: str | None,
    master: str | None,
    cell: str | None,
    as_json: bool,
) -> int:
    """Measure what the papers claim: tables, figures and one report, side by side with Planaria.

    PAPER is skipring, damulticast, dhttree, leases or mobile; none means all. quick takes minutes,
    paper uses the papers' settings, beyond goes on to sizes they never tried. The same command goes
    on where it was stopped. Exit code 0: every check of ours held, whatever became of the papers'
    claims; 1: one did not, or a simulation raised; 2: the command is wrong.
    """
    require()
    from planaria.spark.experiments.study import STUDIES
    from planaria.spark.reproduce import chosen, one_cell
    from planaria.spark.watch import Stopped

    studies = chosen(papers or tuple(STUDIES))
    if cell is not None:
        click.echo(json.dumps(one_cell(studies, cell).summary))
        return 0
    try:
        verdict = run(prepared(papers or tuple(STUDIES), scale, out), master)
    except Stopped as stopped:
        click.echo(f"planaria: {stopped}", err=True)
        return INTERRUPTED
    if as_json:
        click.echo(json.dumps({**to_builtins(verdict), "version": __version__}))
    else:
        click.echo(told(verdict))
    return 0 if verdict.good else BROKEN


def prepared(papers: tuple[str, ...], scale: str, out: str | None) -> "Reproduction":
    """All of these papers at one scale; a wrong directory or scale is said here."""
    from planaria.spark.reproduce import Reproduction, chosen
    from planaria.spark.store import code_version

    return Reproduction(chosen(papers), scale, out or f"out/reproduce/{scale}-{code_version()}")


def run(reproduction: "Reproduction", master: str | None) -> "Verdict":
    """Start Spark and measure."""
    click.echo("planaria: starting Spark", err=True)
    with session(master) as spark:
        return reproduction.run(spark)


def worst(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row of each claim that was tried at several sizes: one that fails, else the largest."""
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for claim in claims:
        name = (claim["study"], claim["claim"])
        if name not in chosen or chosen[name]["holds"]:
            chosen[name] = claim
    return list(chosen.values())


def told(verdict: "Verdict") -> str:
    """What people read: claim by claim, then what is ours."""
    from planaria.spark.report import figure

    def row(claim: dict[str, Any], name: str, first: object, second: object) -> list[str]:
        size = f", n = {claim['n']:,}" if claim.get("n") else ""
        holds = "yes" if claim["holds"] else "NO"
        return [claim["study"], f"{claim[name]}{size}", figure(first), figure(second), holds]

    claims = [row(it, "claim", it["paper"], it["measured"]) for it in worst(verdict.claims)]
    failed = [it for it in verdict.checks if not it["holds"]]
    lines = aligned([["paper", "claim", "says", "measured", "holds"], *claims], right=(2, 3))
    false = sum(not it["holds"] for it in verdict.claims)
    lines += ["", f"claims of the papers: {len(verdict.claims)}, of which {false} do not hold"]
    lines += [f"checks of ours: {len(verdict.checks)}, of which {len(failed)} failed"]
    checks = [row(it, "check", it["measured"], it["bound"]) for it in failed]
    if checks:
        lines += aligned([["paper", "check", "measured", "bound", "holds"], *checks], right=(2, 3))
    lines += [f"error in {it['cells']:,}: {it['error']}\n  {it['replay']}" for it in verdict.errors]
    return "\n".join([*lines, f"report: {verdict.report}"])
