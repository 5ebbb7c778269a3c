"""`planaria reproduce [PAPER ...]`: every figure, table and claim of the papers, on Spark."""

import json
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from planaria import __version__
from planaria.cli.main import BROKEN, INTERRUPTED
from planaria.cli.tables import aligned, command, filled
from planaria.core.errors import unknown
from planaria.spark.sessions import LABORATORY, MASTER_HELP, require, session

if TYPE_CHECKING:
    from planaria.studies.reproduce import Reproduction, Verdict


@click.command()
@click.argument("papers", nargs=-1, metavar="[PAPER]...")
@click.option("--scale", default="quick", show_default=True, help="quick, paper or beyond.")
@click.option("--out", metavar="DIR|URL", help="Results  [default: out/reproduce/SCALE-VERSION]")
@click.option("--master", metavar="URL", help=MASTER_HELP)
@click.option("--cell", metavar="KEY", help="Repeat one cell alone and print its result.")
@click.option("-v", "--verbose", is_flag=True, help="Print every claim: claimed and measured.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
def reproduce(
    papers: tuple[str, ...],
    scale: str,
    out: str | None,
    master: str | None,
    cell: str | None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Measure what the papers claim: tables, figures and a report, claimed and measured.

    PAPER is skipring, damulticast, dhttree, leases or mobile; none means all. The scale quick takes
    minutes, paper uses the papers' settings, and beyond tries sizes they never did. An interrupted
    run resumes when the command is repeated. Exit code 0: all of Planaria's own checks hold,
    whether the papers' claims do or not; 1: one fails, or a simulation raised an exception; 2:
    the command is wrong.
    """
    require()
    from planaria.spark.watch import Stopped
    from planaria.studies.reproduce import chosen, one_cell
    from planaria.studies.study import STUDIES

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
        click.echo(in_words(verdict, verbose=verbose))
    return 0 if verdict.good else BROKEN


def prepared(papers: tuple[str, ...], scale: str, out: str | None) -> "Reproduction":
    """These papers at one scale. Raises UsageError for a wrong scale or directory."""
    from planaria.studies.reproduce import Reproduction, chosen, version_of
    from planaria.studies.study import SCALES

    studies = chosen(papers)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    place = out or f"out/reproduce/{scale}-{version_of(studies, scale)}"
    return Reproduction(studies, scale, place)


def run(reproduction: "Reproduction", master: str | None) -> "Verdict":
    """Start Spark and measure."""
    click.echo("planaria: starting Spark", err=True)
    with session(master, LABORATORY) as spark:
        return reproduction.run(spark)


def worst(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row of each claim that was tried at several sizes: the worst, else the largest."""
    order = ("yes", "undecided", "no")
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for claim in claims:
        name = (claim["study"], claim["claim"])
        if name not in chosen or order.index(claim["holds"]) >= order.index(chosen[name]["holds"]):
            chosen[name] = claim
    return list(chosen.values())


def in_words(verdict: "Verdict", *, verbose: bool = False) -> str:
    """What people read: a line for each paper, what failed, and where the report is.

    If `verbose`, every claim comes first: claimed and measured.
    """
    claims = [_row(it, "claim", it["paper"], it["measured"]) for it in worst(verdict.claims)]
    head = ["paper", "claim", "claimed", "measured", "holds"]
    lines = [*aligned([head, *claims], (2, 3), wrapped=1), ""] if verbose else []
    studies = list(dict.fromkeys(it["study"] for it in [*verdict.claims, *verdict.checks]))
    lines += aligned([_counted(verdict, study) for study in studies]) + _meanings(verdict)
    failed = [it for it in verdict.checks if it["holds"] != "yes"]
    if failed:
        head = ["paper", "failed check", "bound", "measured", "holds"]
        rows = [_row(it, "check", it["bound"], it["measured"]) for it in failed]
        lines += ["", *aligned([head, *rows], (2, 3), wrapped=1)]
    for it in verdict.errors:
        lines += filled(f"error in {it['cells']:,}: {it['error']}", "  ") + command(it["replay"])
    return "\n".join([*lines, f"report: {verdict.report}"])


def _counted(verdict: "Verdict", study: str) -> list[str]:
    """One paper in a line: how many of its claims hold, and of Planaria's own checks."""
    from planaria.studies.judge import counted

    claims = counted([it for it in verdict.claims if it["study"] == study])
    checks = [it["holds"] == "yes" for it in verdict.checks if it["study"] == study]
    return [
        f"{study}:",
        f"{claims.yes} of {claims.claims} claims hold,",
        f"{claims.undecided} undecided,",
        f"{sum(checks)} of {len(checks)} own checks",
    ]


def _meanings(verdict: "Verdict") -> list[str]:
    """What it means that the others do not hold, all papers together."""
    from planaria.studies.judge import MEANINGS, counted

    studies = dict.fromkeys(it["study"] for it in verdict.claims)
    counts = [counted([it for it in verdict.claims if it["study"] == name]) for name in studies]
    found = {
        words: sum(it.meanings.get(name, 0) for it in counts) for name, words in MEANINGS.items()
    }
    there = [f"{words} ({number})" for words, number in found.items() if number]
    return filled(f"the others do not: {', '.join(there)}", "  ") if there else []


def _row(it: dict[str, Any], name: str, first: object, second: object) -> list[str]:
    from planaria.studies.report import figure

    size = f", n = {it['n']:,}" if it.get("n") else ""
    holds = "NO" if it["holds"] == "no" else it["holds"]
    stated = f"{it['relation']} {figure(first)}"
    return [it["study"], f"{it[name]}{size}", stated, figure(second), holds]
