"""`planaria sim OVERLAY`: one trial, from any state, under any faults; does it heal and stay so?"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planaria import __version__
from planaria.cli.summary import summary, table
from planaria.cli.ticker import Ticker, Ticking
from planaria.core.errors import InvariantViolation, UsageError
from planaria.network.files import write_atomically
from planaria.simulator.engine import KINDS, Observer
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import Schedule, compose, load_schedule, parse_schedule
from planaria.simulator.shrink import shrink_failure
from planaria.simulator.trace import LEVELS, Recorder
from planaria.simulator.trial import OPTIONS, Spec, Trial
from planaria.simulator.worlds.registry import REGISTERED, Kind, Option, find_kind

if TYPE_CHECKING:
    from planaria.cli.photographer import Photographer

DEFAULTS = Spec(n=16, seed=0)


class Overlays(click.Group):
    """`sim` is a group and each overlay a command of it, so that each can have its own options."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The registered names; a file or module may be named instead."""
        return sorted(REGISTERED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command for one overlay. Raises UsageError if it is unknown."""
        if cmd_name.startswith("-"):
            raise UsageError(f"name the overlay first: planaria sim OVERLAY {cmd_name} ...")
        return _command(cmd_name, find_kind(cmd_name))


@click.group(
    cls=Overlays,
    subcommand_metavar="OVERLAY [OPTIONS]",
    invoke_without_command=True,
    context_settings={"ignore_unknown_options": True},  # so that `Overlays` can say what is wrong
)
@click.option(
    "--replay",
    type=Path,
    metavar="FILE",
    help="Instead of a trial, replay a counterexample of `planaria verify`.",
)
@click.pass_context
def sim(ctx: click.Context, replay: Path | None) -> int:
    """Run a trial of OVERLAY: a registered name, path/to/file.py:Class or module:Class.

    Exit code 0: it became legitimate (healed: every invariant holds) and stayed so; 1: it did not;
    2: the command is wrong.
    """
    if replay is not None and ctx.invoked_subcommand is None:
        return _replayed(replay)
    if replay is not None:
        raise UsageError("--replay FILE needs no OVERLAY: the file names it")
    if ctx.invoked_subcommand is None:
        raise UsageError(f"missing OVERLAY: {', '.join(sorted(REGISTERED))} or FILE.py:Class")
    return 0


def _replayed(path: Path) -> int:
    from planaria.verify.replay import read  # it loads all models, which a trial does not need

    example = read(path)
    for line in example.lines():
        click.echo(line)
    return 1 if example.found else 0


def _command(reference: str, kind: Kind) -> click.Command:
    """The command for one overlay: the common options, then the overlay's own."""

    def run(**values: Any) -> int:
        return _sim(reference, kind, values)

    promise = (kind.make.__doc__ or "").strip().split("\n")[0]
    command = click.Command(reference, callback=run, params=_common(), help=promise)
    command.params += [click_option(option) for option in kind.options]
    for output in kind.outputs:
        flag = click.Option([f"--{output.name}"], type=Path, metavar="FILE", help=output.help)
        command.params.append(flag)
    return command


def _common() -> list[click.Parameter]:
    d = DEFAULTS

    def option(*names: str, **settings: Any) -> click.Parameter:
        settings.setdefault("show_default", "default" in settings)
        return click.Option(list(names), **settings)

    return [
        option("--n", type=int, default=d.n, help="How many nodes."),
        option("--seed", type=int, default=d.seed, help="Decides everything random."),
        option("--start", default=d.start, help="Initial state: fresh, legitimate, corrupt, ..."),
        option("--nemesis", multiple=True, metavar="FILE|NAME", help="A fault schedule."),
        option("--fault", multiple=True, metavar="LINE", help="Such as 'at 1 crash count=1'."),
        option(
            "--scheduler",
            default=d.scheduler,
            help=f"One of {', '.join(SCHEDULERS)}.",
        ),
        option(
            "--delay",
            default=d.delay,
            help="Message delay in ticks: fixed:, uniform:, heavy:, late:.",
        ),
        option("--drift", type=float, default=d.drift, help="Share by which timeouts vary."),
        option(
            "--phases",
            default=d.phases,
            show_default=False,
            help="Ticks at which nodes run timeouts: 1,51.  [default: random]",
        ),
        option("--silent-failures", is_flag=True, help="Nobody is told that a send failed."),
        option("--intervals", type=int, help="Bound for healing  [default: the overlay's bound]"),
        option(
            "--closure", type=int, default=d.closure, help="Intervals it must then stay healed."
        ),
        option("--messages", type=int, default=d.messages, help="Bound for messages sent."),
        option("--trace", type=Path, metavar="FILE", help="Write a trace (Parquet)."),
        option("--trace-level", type=click.Choice(LEVELS), help="[default: everything with FILE]"),
        option("--shrink/--no-shrink", default=True, help="Shrink a failing trial."),
        option("--json", "as_json", is_flag=True, help="One JSON object instead of a table."),
    ]


def click_option(option: Option) -> click.Option:
    """An overlay's own option as the command line offers it."""
    names = [f"--{option.name}"]
    if isinstance(option.default, bool):
        names = [f"--{option.name}/--no-{option.name}"]
    kind = click.Choice(option.choices) if option.choices else type(option.default)
    return click.Option(
        names, type=kind, default=option.default, help=option.help, show_default=True
    )


def _sim(reference: str, kind: Kind, values: dict[str, Any]) -> int:
    given = {o.name: values[o.name.replace("-", "_")] for o in kind.options}
    overlay = kind.make(**{name.replace("-", "_"): value for name, value in given.items()})
    spec = spec_of(reference, kind, values, given)

    def prepare(spec: Spec, watchers: Sequence[Observer] = ()) -> Ticking:
        return Ticking(overlay, spec, [*watchers, *(checker() for checker in kind.checkers)])

    def attempt(spec: Spec) -> tuple[Trial, InvariantViolation | None]:
        trial = prepare(spec)
        return trial, trial.judge()[1]

    with _tracing(spec.command(overlay), spec.seed, values) as watchers:
        trial = prepare(spec, watchers)
        photographer = _photographer(trial, watchers)
        trial.ticker = Ticker()
        try:
            outcome, violation = trial.judge()
        finally:
            trial.ticker.clear()
        for watcher in watchers:
            watcher.tell("names", {id: overlay.called(id) for id in trial.simulator.states()})
            watcher.tell("pictures", photographer.album.text() if photographer else "[]")
    for output in kind.outputs:
        path = values[output.name.replace("-", "_")]
        if path is not None:
            write_atomically(path, output.render(trial))
            click.echo(f"planaria: wrote {path}", err=True)
    shrunk = None
    if violation is not None and values["shrink"]:
        click.echo("planaria: shrinking the failing trial (--no-shrink to skip)", err=True)
        shrunk = shrink_failure(spec, violation.checker, attempt).command(overlay)
    result = summary(trial, outcome, violation, shrunk)
    for watcher in watchers:
        result["message_types"] = watcher.counters.totals()
    click.echo(json.dumps(result) if values["as_json"] else table(result))
    return 0 if violation is None else 1


@contextmanager
def _tracing(replay: str, seed: int, values: dict[str, Any]) -> Iterator[list[Recorder]]:
    """The recorder that the options ask for, if any."""
    file, level = values["trace"], values["trace_level"]
    if file is None and level not in (None, "off"):
        raise UsageError(f"--trace-level {level} needs a --trace FILE to write to")
    if file is None or level == "off":
        yield []
        return
    about = {"seed": str(seed), "version": __version__, "replay": replay}
    with Recorder(file, level or "everything", about) as recorder:
        yield [recorder]


def _photographer(trial: Trial, watchers: Sequence[Recorder]) -> "Photographer | None":
    """Who takes pictures of a run of which everything is written down."""
    if not any(it.kinds == KINDS for it in watchers):
        return None
    from planaria.cli.photographer import Photographer  # it loads numpy, which most runs do not

    found = Photographer(trial)
    trial.simulator.watch(found)
    return found


def spec_of(reference: str, kind: Kind, values: dict[str, Any], given: dict[str, Any]) -> Spec:
    """The trial that the options ask for."""
    asked = [reference]
    for option in kind.options:
        value = given[option.name]
        if isinstance(value, bool):
            asked += [f"--{'' if value else 'no-'}{option.name}"] * (value != option.default)
        elif value != option.default:
            asked += [f"--{option.name}", str(value)]
    common = {name: values[name] for name in ("n", "seed", *OPTIONS)}
    return Spec(**common, faults=_faults(values), asked=(*asked,))


def _faults(values: dict[str, Any]) -> Schedule:
    loaded = [load_schedule(name) for name in values["nemesis"]]
    return compose(*loaded, *(parse_schedule(line, "--fault") for line in values["fault"]))
