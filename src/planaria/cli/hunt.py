"""`planaria hunt OVERLAY`: many trials on Spark; which seeds fail, and how fast others heal."""

import json
import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from planaria import __version__
from planaria.cli.main import INTERRUPTED
from planaria.cli.sim import DEFAULTS, Overlays, click_option, spec_of
from planaria.cli.tables import aligned, command, counted, filled
from planaria.core.errors import UsageError
from planaria.simulator.worlds.registry import REGISTERED, Kind, find_kind
from planaria.spark.sessions import LABORATORY, MASTER_HELP, require, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from planaria.spark.hunt import Hunt

FINDINGS_SHOWN = 20
SILENT = {"no": [False], "yes": [True], "both": [False, True]}
CONDITIONS = ["delay", "silent_failures", "publish"]
HEADS = {"silent_failures": "silent", "of_bound": "of bound"}  # so that 80 columns suffice
MESSAGES_MAX = 1_000_000  # of one trial: a minute, and 20 times what the longest sound one sends


class Hunts(Overlays):
    """Like `sim`: each overlay is a command, so that each can have its own options."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command for one overlay. Raises UsageError if it is unknown."""
        if cmd_name.startswith("-"):
            raise UsageError(f"name the overlay first: planaria hunt OVERLAY {cmd_name} ...")
        kind = find_kind(cmd_name)

        def run(**values: Any) -> int:
            return _hunt(cmd_name, kind, values)

        command = click.Command(cmd_name, callback=run, params=_common(), help=hunt.help)
        command.params += [click_option(option) for option in kind.options]
        return command


@click.group(
    cls=Hunts,
    subcommand_metavar="OVERLAY [OPTIONS]",
    invoke_without_command=True,
    context_settings={"ignore_unknown_options": True},  # so that `Hunts` can say what is wrong
)
@click.pass_context
def hunt(ctx: click.Context) -> None:
    """Try OVERLAY from arbitrary states under fault schedules and adversarial schedulers, on Spark.

    Each seed is one trial. OVERLAY is a registered name, path/to/file.py:Class or module:Class. An
    interrupted hunt resumes when the command is repeated. Exit code 0: nothing found; 1: a promise
    was broken; 2: the command is wrong.
    """
    if ctx.invoked_subcommand is None:
        raise UsageError(f"missing OVERLAY: {', '.join(sorted(REGISTERED))} or FILE.py:Class")


def _common() -> list[click.Parameter]:
    def option(*names: str, **settings: Any) -> click.Parameter:
        settings.setdefault("show_default", "default" in settings)
        return click.Option(list(names), **settings)

    several: dict[str, Any] = {"multiple": True, "show_default": True}
    return [
        option("--seeds", default="2000", help="How many starts, or a range: 5000:9999."),
        option("--n", default="1:8", help="How many nodes, or a range."),
        option(
            "--start", default=("corrupt", "legitimate"), help="Initial states, or all.", **several
        ),
        option("--schedulers", default="all", help="all, or a list: fifo,starve."),
        option(
            "--nemesis", default=("all",), metavar="FILE|NAME", help="Fault schedules.", **several
        ),
        option("--delay", default=("uniform:1:50", "fixed:23"), help="As in sim.", **several),
        option(
            "--silent-failures",
            type=click.Choice(list(SILENT)),
            default="both",
            help="Is nobody told that a send failed?",
        ),
        option("--publish", type=int, default=(0, 4), help="Publications in a trial.", **several),
        option("--intervals", type=int, help="Bound for healing  [default: the overlay's bound]"),
        option("--closure", type=int, default=DEFAULTS.closure, help="Intervals to stay healed."),
        option("--messages", type=int, default=MESSAGES_MAX, help="Bound for each trial."),
        option("--shrink", type=click.IntRange(0), default=20, help="How many findings to shrink."),
        option("--out", metavar="DIR|URL", help="Results  [default: out/hunt/OVERLAY-VERSION]"),
        option("--master", metavar="URL", help=MASTER_HELP),
        option("--json", "as_json", is_flag=True, help="One JSON object instead of tables."),
    ]


def _hunt(reference: str, kind: Kind, values: dict[str, Any]) -> int:
    require()
    from planaria.spark.watch import Stopped

    campaign = _campaign(reference, kind, values)
    try:
        result = _run(campaign, values["master"], values["shrink"])
    except Stopped as stopped:
        click.echo(f"planaria: {stopped}", err=True)
        return INTERRUPTED
    asked = {"overlay": reference, "asked": shlex.join(campaign.target.asked), "n": values["n"]}
    result = {**asked, **result, "version": __version__}
    click.echo(json.dumps(result) if values["as_json"] else _in_words(result))
    return 1 if result["findings"] or result["errors"] else 0


def _campaign(reference: str, kind: Kind, values: dict[str, Any]) -> "Hunt":
    """The hunt that the options describe. Raises UsageError if one of them is wrong."""
    from planaria.spark.grid import parse_numbers
    from planaria.spark.hunt import (
        Hunt,
        Target,
        chosen_schedulers,
        chosen_starts,
        named_schedules,
        publishes,
        source_files,
        version_of,
    )

    given = {option.name: values[option.name.replace("-", "_")] for option in kind.options}
    single = {name: getattr(DEFAULTS, name) for name in DEFAULTS.__struct_fields__}
    asked = spec_of(reference, kind, {**single, "nemesis": (), "fault": ()}, given).asked
    schedules = named_schedules(values["nemesis"])
    sources = source_files(reference, list(schedules))
    place = reference if reference in REGISTERED else _absolute(reference)
    options = {name.replace("-", "_"): value for name, value in given.items()}
    target = Target(place, asked, options, schedules)
    grid = {
        "overlay": [shlex.join(asked)],
        "start": chosen_starts(target, values["start"]),
        "n": parse_numbers(values["n"], "--n"),
        "scheduler": chosen_schedulers(values["schedulers"]),
        "nemesis": list(schedules),
        "delay": list(dict.fromkeys(values["delay"])),
        "silent_failures": SILENT[values["silent_failures"]],
        "publish": list(dict.fromkeys(values["publish"])) if publishes(target) else [0],
        **({} if values["intervals"] is None else {"intervals": [values["intervals"]]}),
        "closure": [values["closure"]],
        "messages": [values["messages"]],
    }
    plain = values["seeds"].isdecimal()
    seeds = range(int(values["seeds"])) if plain else parse_numbers(values["seeds"], "--seeds")
    slug = re.sub(r"[^\w.]+", "-", reference)
    out = values["out"] or f"out/hunt/{slug}-{version_of(target, sources)}"
    return Hunt(target, grid, seeds, out, sources)


def _absolute(reference: str) -> str:
    place, _, name = reference.rpartition(":")
    return f"{Path(place).resolve()}:{name}" if place.endswith(".py") else reference


def _run(campaign: "Hunt", master: str | None, shrunk_max: int) -> dict[str, Any]:
    from planaria.spark.sweep import progress_line
    from planaria.spark.watch import watched

    sweep = campaign.sweep
    click.echo("planaria: starting Spark", err=True)
    with session(master, LABORATORY) as spark:
        result = partial(_result, spark, campaign, shrunk_max)
        return watched(spark, "hunt", result, lambda: progress_line([sweep], sweep.store))


def _result(spark: "SparkSession", campaign: "Hunt", shrunk_max: int) -> dict[str, Any]:
    from planaria.spark.hunt import head, raised, recovery

    fresh = campaign.sweep.run(spark)
    click.echo("planaria: every start is done; reading the results", err=True)
    rows = campaign.sweep.rows(spark).cache()
    broken = rows.where("checker is not null").count()
    if smaller := min(broken, shrunk_max):
        click.echo(f"planaria: {counted(broken, 'finding')}; making {smaller:,} smaller", err=True)
    findings = campaign.findings(spark, rows, shrunk_max)
    return {
        "seeds": f"{campaign.seeds[0]}:{campaign.seeds[-1]}",
        "grid": {name: [*values] for name, values in campaign.grid.items()},
        "head": head(rows),
        "starts": len(campaign.sweep.cells),
        "fresh": fresh,
        "starts_per_minute": round(campaign.sweep.rate),
        "findings": [to_builtins(finding) for finding in findings],
        "errors": raised(rows),
        "recovery": _dicts(recovery(rows, ["start", "nemesis"])),
        "schedulers": _dicts(recovery(rows, ["scheduler"])),
        "conditions": _dicts(recovery(rows, CONDITIONS)),
        "code": campaign.version,
        "out": campaign.sweep.store.shown,
    }


def _dicts(table: "DataFrame") -> list[dict[str, Any]]:
    return [row.asDict() for row in table.collect()]


def _in_words(result: dict[str, Any]) -> str:
    """What people read."""
    head = f"{result['overlay']}: {result['starts']:,} starts"
    if result["fresh"]:
        head += f", {result['fresh']:,} of them now, {result['starts_per_minute']:,} a minute"
    lines = [head, "", "intervals to legitimacy after the last fault"]
    tables = {
        "recovery": ["start", "nemesis"],
        "schedulers": ["scheduler"],
        "conditions": CONDITIONS,
    }
    for name, by in tables.items():
        names = [*by, "starts", "failed", "void", "p50", "p99", "max", "of_bound"]
        table = [names, *([_figure(row[name]) for name in names] for row in result[name])]
        table[0] = [HEADS.get(name, name) for name in names]
        widest = max(range(len(by)), key=lambda column: max(len(row[column]) for row in table))
        lines += ["", *aligned(table, range(len(by), len(names)), wrapped=widest)]
    findings = result["findings"]
    lines += ["", f"findings: {len(findings) or 'none'}"]
    for it in findings[:FINDINGS_SHOWN]:
        lines += filled(f"- {it['checker']}, seed {it['seed']}: {it['detail']}", "  ")
        lines += command(it["replay"])
        if it["smaller"]:
            lines += ["  smaller:", *command(it["smaller"], "    ")]
            lines += [f"  {name + ':':<9} {it[name]}" for name in ("scenario", "trace")]
        if it["shrink_error"]:
            lines += filled(f"  shrinking failed: {it['shrink_error']}", "  ")
    if len(findings) > FINDINGS_SHOWN:
        lines.append(f"  and {len(findings) - FINDINGS_SHOWN} more (--json)")
    for it in result["errors"]:
        lines += filled(f"error in {it['cells']:,}: {it['error']}", "  ") + command(it["replay"])
    return "\n".join([*lines, f"results in {result['out']}"])


def _figure(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
