"""`planaria trace`: prints the rows of a trace, compares two, draws one."""

import itertools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click
from msgspec import convert

from planaria import __version__
from planaria.cli.access import reaches_network, run
from planaria.cli.groups import Group
from planaria.cli.live_trace import trace_network
from planaria.cli.numbers import Finite
from planaria.cli.tables import counted
from planaria.core.errors import UsageError, unknown
from planaria.core.trace import Row
from planaria.network.client.overlays import RING, check_overlay
from planaria.network.context import Context
from planaria.network.files import write_atomically
from planaria.network.tracing import SECONDS_MAX
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import KINDS, MESSAGE_KINDS
from planaria.simulator.pictures.lamport import draw, window
from planaria.simulator.trace import Recorder, Trace
from planaria.web.page import whole
from planaria.web.recorded import recording
from planaria.web.snapshots import developed

T = TypeVar("T")
MILLISECONDS = 1000  # in a second


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def trace(ctx: click.Context) -> None:
    """Print, compare or draw what a run wrote with --trace."""
    if ctx.invoked_subcommand is None:
        raise UsageError("missing command: planaria trace show, diff, lamport, html or live")


@trace.command()
@click.argument("file", type=Path)
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True)
@click.option("--kind", multiple=True, help=f"Only rows of these kinds: {', '.join(KINDS)}.")
@click.option("--node", type=int, multiple=True, help="Only rows of these nodes.")
def show(file: Path, limit: int, kind: tuple[str, ...], node: tuple[int, ...]) -> int:
    """Print rows of FILE: all columns but the run, tab-separated, after a line of names."""
    strange = [name for name in kind if name not in KINDS]
    if strange:
        raise unknown("kind", strange[0], KINDS)
    source = Trace(file)
    for name, value in source.about.items():
        click.echo(f"# {name}: {value}", err=True)
    wanted = (
        row
        for row in source.rows()
        if (not kind or row.kind in kind) and (not node or row.node in node)
    )
    click.echo("\t".join(Row._fields))
    for row in itertools.islice(wanted, limit):
        click.echo(_line(row))
    left = sum(1 for _ in wanted)
    if left:
        click.echo(f"planaria: {counted(left, 'more row')} (--limit)", err=True)
    return 0


@trace.command()
@click.argument("file", type=Path)
@click.option(
    "--seconds",
    type=Finite(0, SECONDS_MAX, min_open=True),
    default=5.0,
    show_default=True,
)
@click.option("--topic", default="", help="The one that pictures show [the first there is].")
@click.option("--overlay", default=RING, show_default=True, help="In which it is.")
@reaches_network
def live(context: Context, file: Path, seconds: float, topic: str, overlay: str) -> int:
    """Write to FILE what all nodes of a running network do for some seconds.

    Nodes tell what they hear and say over HTTP: of those that were started without --http, or
    whose door this machine cannot reach, only what they are like each second is known.
    """
    check_overlay(overlay)
    found = run(trace_network(context, seconds, topic, overlay))
    when = datetime.fromtimestamp(found.began / MILLISECONDS, UTC)
    about = {
        "run": f"live {found.began}",
        "version": __version__,
        "seconds": f"{seconds:g}",
        "title": f"{found.drawn}, live at {when:%Y-%m-%d %H:%M:%S} UTC, planaria {__version__}",
    }
    with Recorder(file, "everything", about) as recorder:
        for row in found.rows:
            recorder.keep(row)
            if row.kind in MESSAGE_KINDS:
                recorder.counters.count(row.kind, row.message_type or "", row.bytes)
        recorder.tell("names", found.names)
        recorder.tell("pictures", found.pictures)
    for line in found.missing:
        click.echo(f"planaria: {line}", err=True)
    nodes = counted(found.nodes, "node")
    click.echo(f"{counted(len(found.rows), 'row')} of {nodes} in {file}", err=True)
    return 0 if found.nodes else 1


@trace.command()
@click.argument("a", type=Path)
@click.argument("b", type=Path)
def diff(a: Path, b: Path) -> int:
    """Print the first row in which traces A and B differ; exit code 1 if there is one."""
    pairs = itertools.zip_longest(Trace(a).rows(), Trace(b).rows())
    for number, (left, right) in enumerate(pairs):
        if left != right:
            click.echo(f"row {number}")
            for file, row in ((a, left), (b, right)):
                click.echo(f"{file}: {_line(row) if row else 'no more rows'}")
            return 1
    click.echo("planaria: the same rows", err=True)
    return 0


@trace.command()
@click.argument("file", type=Path)
@click.option("--out", type=Path, required=True, help="The SVG file to write.")
@click.option("--from", "first", type=click.IntRange(0), default=0, help="First tick.")
@click.option("--to", "last", type=click.IntRange(0), help="Last tick.")
def lamport(file: Path, out: Path, first: int, last: int | None) -> int:
    """Draw FILE as a Lamport diagram: lanes are nodes, arrows are messages."""
    source = Trace(file)
    shown = window(source.rows(), first, last)
    title = source.about.get("replay", file.name)
    write_atomically(out, draw(shown, title))
    click.echo(f"planaria: wrote {out}", err=True)
    if shown.cut is not None:
        click.echo(
            f"planaria: drawn up to tick {shown.last}, more would be unreadable; "
            f"draw the rest with --from {shown.cut}",
            err=True,
        )
    return 0


@trace.command()
@click.argument("file", type=Path)
@click.option("--out", type=Path, help="The file to write [FILE with .html].")
def html(file: Path, out: Path | None) -> int:
    """Make one HTML file that replays FILE in any browser: to attach to a paper or a bug report."""
    source = Trace(file)
    about = source.about
    live = "seconds" in about  # written by `trace live`: ticks are milliseconds
    shown = recording(
        source.rows(),
        about.get("title", about.get("replay", file.name)),
        per_frame=MILLISECONDS if live else INTERVAL,
        unit="second" if live else "interval",
        album=developed(about.get("pictures", "[]")),
        names=_recorded(about, "names", dict[int, str]),
    )
    out = file.with_suffix(".html") if out is None else out
    write_atomically(out, whole(shown))
    click.echo(f"planaria: wrote {out}: {counted(len(shown.frames), 'frame')}", err=True)
    return 0


def _recorded(about: dict[str, str], name: str, kind: type[T]) -> T:
    """What the run said of itself; empty if it said nothing."""
    return convert(json.loads(about.get(name, "{}")), kind, strict=False)


def _line(row: Row) -> str:
    return "\t".join("" if value is None else str(value) for value in row)
