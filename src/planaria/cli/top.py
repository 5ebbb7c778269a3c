"""`planaria top`: all nodes of a running network in one table that is refreshed."""

import asyncio
from shutil import get_terminal_size
from typing import Any

import click
from msgspec import json

from planaria.cli.access import JSON, reaches_network, run
from planaria.cli.numbers import Finite
from planaria.cli.streams import needed_stdout
from planaria.cli.tables import WIDTH, folded
from planaria.network.context import Context
from planaria.network.status import Status
from planaria.network.survey import Survey, Surveyor
from planaria.network.units import size_text

HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
HEAD = (
    "node", "state", "topics", "links", "clients", "held", "in/s", "out/s", "drops", "memory",
    "cpu",
)  # fmt: skip


@click.command()
@click.option("--once", is_flag=True, help="One look, then end.")
@click.option("-d", "--delay", type=Finite(0.1), default=2.0, show_default=True, metavar="SECONDS")
@JSON
@reaches_network
def top(context: Context, once: bool, delay: float, as_json: bool) -> None:
    """Show all nodes, again and again until Ctrl-C; --json: one line for each look.

    held: publications in all topics of a node; in/s: those that came to be held; out/s: those
    handed to applications; drops: messages, since it started.
    """
    try:
        run(_watch(context, once, delay, as_json))
    except KeyboardInterrupt:
        return


async def _watch(context: Context, once: bool, delay: float, as_json: bool) -> None:
    screen = needed_stdout().isatty() and not once and not as_json
    before: Survey | None = None
    async with Surveyor(context) as surveyor:
        while True:
            survey = await surveyor.look()
            rows = node_figures(before, survey)
            if as_json:
                said = {"time": survey.time, "nodes": rows, "unreachable": len(survey.silent)}
                click.echo(json.encode(said).decode())
            else:
                _show(table(survey, rows), screen)
            if once:
                return
            before = survey
            await asyncio.sleep(delay)


def node_figures(before: Survey | None, after: Survey) -> list[dict[str, Any]]:
    """The figures of each node; rates need a look before, and are unknown without one."""
    found = []
    for handle, seen in sorted(after.nodes.items(), key=lambda it: it[1].status.name):
        known = before.nodes.get(handle) if before else None
        found.append(_figures(None if known is None else known.status, seen.status))
    return found


def _figures(before: Status | None, now: Status) -> dict[str, Any]:
    rates: dict[str, float | None] = {"in": None, "out": None, "cpu": None}
    seconds = now.uptime - before.uptime if before else 0.0
    if before is not None and seconds > 0:
        arrived = now.totals.publications - before.totals.publications
        used = now.process.cpu_seconds - before.process.cpu_seconds
        rates["in"] = round(max(0, arrived) / seconds, 1)
        rates["out"] = round(max(0, now.deliveries - before.deliveries) / seconds, 1)
        rates["cpu"] = round(used / seconds, 3)
    return {
        "name": now.name,
        "id": now.id,
        "legitimate": now.legitimate,
        "topics": now.totals.topics,
        "links": now.links_total,
        "full_links": now.links_busy,
        "clients": now.clients,
        "publications": now.totals.publications,
        "in_per_second": rates["in"],
        "out_per_second": rates["out"],
        "queued": now.queues.messages,
        "dropped": now.drops,
        "resident_bytes": now.process.resident_bytes,
        "cpu": rates["cpu"],
        "uptime": round(now.uptime, 1),
    }


def table(survey: Survey, rows: list[dict[str, Any]]) -> list[str]:
    """What people read."""
    good = sum(row["legitimate"] for row in rows)
    lines = [[*HEAD]]
    for row in rows:
        cpu = "-" if row["cpu"] is None else f"{row['cpu']:.0%}"
        lines.append(
            [
                row["name"],
                "ok" if row["legitimate"] else "doubts",
                *(str(row[name]) for name in ("topics", "links", "clients")),
                f"{row['publications']:,}",
                *("-" if row[it] is None else f"{row[it]:,.0f}" for it in _RATES),
                str(row["dropped"]),
                size_text(row["resident_bytes"]).replace(" ", ""),
                cpu,
            ]
        )
    head = f"{good} of {len(rows)} nodes know of nothing wrong"
    if survey.silent:
        head += f", {len(survey.silent)} others do not answer"
    width = max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    return [head, *folded(lines, range(2, len(HEAD)), width)]


_RATES = ("in_per_second", "out_per_second")


def _show(lines: list[str], screen: bool) -> None:
    if not screen:
        click.echo("\n".join(lines))
        return
    text = "".join(f"{line}{CLEAR_LINE}\n" for line in lines)
    click.echo(f"{HOME}{text}{CLEAR_BELOW}", nl=False)
