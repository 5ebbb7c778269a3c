"""`planaria incidents`: what happened to others, repeated with a naive protocol and with us."""

from collections.abc import Iterator

import click
from msgspec import json

from planaria.cli.main import BROKEN
from planaria.cli.tables import GAP, WIDTH, command, counted, filled
from planaria.lab.incidents.incidents import Incident, Row, Run, Story, load, names, tell

NAIVE = {
    "stuck": "stuck: its tables stay wrong, though nothing is wrong any more",
    "lost": "lost: its tables are right again, what was lost is not",
    "healed": "healed: this run shows nothing",
}
VIOLATIONS_SHOWN = 3
HEAD = ("healed in", "lost", "twice")


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each incident.")
def incidents(name: str | None, as_json: bool) -> int:
    """Repeat incidents of other systems, all or the one called NAME, and tell what happened.

    Each runs the same schedule of faults on a naive protocol, which announces interest once, and
    on Planaria. Exit code 0: Planaria healed from all, lost nothing and delivered nothing twice;
    1: it did not; 2: the command is wrong.
    """
    chosen = [load(it) for it in ([name] if name else names())]
    if not as_json and name is None:
        click.echo(_joined(("incident", "source", "naive", *HEAD), _widths(chosen)))
    rows = [_printed(tell(it), name is not None, as_json, _widths(chosen)) for it in chosen]
    if not as_json and name is None:
        click.echo("")
        for line in _explained(rows):
            click.echo(line)
    return 0 if all(it.healed for it in rows) else BROKEN


def _printed(story: Story, alone: bool, as_json: bool, widths: tuple[int, int]) -> Row:
    """Print an incident as soon as it has been repeated."""
    row = story.row
    if as_json:
        click.echo(json.encode(row).decode())
    elif alone:
        click.echo("\n".join(in_words(story)))
    else:
        click.echo(_line(row, widths))
    return row


def _widths(chosen: list[Incident]) -> tuple[int, int]:
    return max(len(it.name) for it in chosen), max(len(_short(it.source[0])) for it in chosen)


def _short(source: str) -> str:
    """A repository without its owner."""
    return source.rpartition("/")[2]


def _line(row: Row, widths: tuple[int, int]) -> str:
    source = _short(row.source.partition(",")[0])
    healed = str(row.intervals) if row.healed else "NEVER"
    return _joined((row.name, source, row.naive, healed, str(row.lost), str(row.twice)), widths)


def _joined(cells: tuple[str, ...], widths: tuple[int, int]) -> str:
    name, source, naive, *figures = cells
    left = (name.ljust(widths[0]), source.ljust(widths[1]), naive.ljust(len("stuck")))
    right = (it.rjust(len(head)) for it, head in zip(figures, HEAD, strict=True))
    return GAP.join((*left, *right))


def _explained(rows: list[Row]) -> Iterator[str]:
    healed = sum(it.healed for it in rows)
    stuck = sum(it.naive == "stuck" for it in rows)
    lost = sum(it.naive_lost for it in rows)
    yield from filled(
        f"Planaria healed from {healed} of {len(rows)}, in intervals after the last fault; what it "
        f"lost and delivered twice stands beside. The naive protocols stayed stuck in {stuck} and "
        f"lost {lost:,} deliveries. `planaria incidents NAME` tells each story."
    )


def in_words(story: Story) -> list[str]:
    """The story of an incident, and what one sees."""
    incident, row = story.incident, story.row
    lines = [incident.title, "=" * len(incident.title), ""]
    lines += filled(" ".join(incident.happened.split()))
    lines += ["", *filled(f"source: {row.source}", GAP), f"cause: {incident.cause}"]
    lines += ["", f"schedule ({counted(incident.n, 'node')}, seed {incident.seed})"]
    lines += [f"{GAP}{it}" for it in incident.schedule.strip().splitlines()]
    lines += ["", f"naive protocol '{incident.naive}'"]
    lines += [f"{GAP}{NAIVE[row.naive]}", *_wrong(story.naive), *_books(story.naive)]
    healed = f"healed {counted(row.intervals, 'interval')} after the last fault"
    lines += ["", f"Planaria ({incident.planaria})"]
    lines += [f"{GAP}{healed if story.planaria.recovered else 'NOT HEALED'}"]
    lines += [*_wrong(story.planaria), *_books(story.planaria)]
    for it in row.checks:
        held = "holds" if it.held else "DOES NOT HOLD"
        lines += ["", *filled(f"besides: {it.name} {held}: {it.detail}", GAP)]
    lines += [
        "",
        "again, one by one",
        *command(story.naive.replay),
        *command(story.planaria.replay),
    ]
    return [line.rstrip() for line in lines]


def _wrong(run: Run) -> list[str]:
    more = len(run.wrong) - VIOLATIONS_SHOWN
    lines = [f"{GAP}{it}"[:WIDTH] for it in run.wrong[:VIOLATIONS_SHOWN]]
    return lines + ([f"{GAP}and {more} more"] if more > 0 else [])


def _books(run: Run) -> list[str]:
    due = len(run.dues)
    return [
        f"{GAP}{due - run.lost} of {due} deliveries arrived, {run.lost} lost, {run.twice} twice"
    ]
