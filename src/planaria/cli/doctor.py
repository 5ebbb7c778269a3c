"""`planaria doctor`: is a running network legitimate, and if not, what is wrong and what to do?"""

import asyncio
import time
from collections.abc import Sequence

import click
from msgspec import json

from planaria.cli.access import JSON, reaches_network, run
from planaria.cli.numbers import Finite
from planaria.cli.tables import counted, filled, visible
from planaria.network.client.errors import Unreachable
from planaria.network.context import Context
from planaria.network.doctor import BROKEN, Diagnosis, Finding, diagnose
from planaria.network.survey import Surveyor

SHOWN = 20  # groups of findings that people are shown; programs get all
TOPICS_SHOWN = 3  # of one group
AGAIN_SECONDS = 0.5  # between attempts to find anybody at all


@click.command()
@click.option(
    "--wait",
    type=Finite(0),
    default=0.0,
    metavar="SECONDS",
    help="Wait for so long until the network is legitimate.",
)
@JSON
@reaches_network
def doctor(context: Context, wait: float, as_json: bool) -> int:
    """Ask every node that can be reached, and judge every topic; exit 0: legitimate, 1: not.

    States are taken at slightly different moments, so what looks wrong is looked at again, and only
    what both looks saw is reported.
    """
    found = run(_diagnose(context, wait))
    if as_json:
        click.echo(json.encode(found).decode())
    else:
        click.echo("\n".join(report(found)))
    return 0 if found.legitimate else 1


async def _diagnose(context: Context, wait: float) -> Diagnosis:
    """The diagnosis; a network of which nobody answers is not legitimate."""
    until = time.monotonic() + wait
    async with Surveyor(context) as surveyor:
        while True:
            left = until - time.monotonic()
            try:
                return await diagnose(surveyor, max(0.0, left))
            except Unreachable as error:
                if left <= 0:
                    expect = "start a node, or name others with -s HOST:PORT"
                    where = ",".join(context.servers)
                    only = Finding(BROKEN, "unreachable", None, None, where, str(error), expect)
                    return Diagnosis(False, 0, 0, 1, round(wait - left, 3), [only])
            await asyncio.sleep(AGAIN_SECONDS)


def report(found: Diagnosis) -> list[str]:
    """What people read: the verdict, then each finding with what to expect of it."""
    size = f"{counted(found.nodes, 'node')}, {counted(found.topics, 'topic')}"
    looks = f"{counted(found.looks, 'look')} in {found.seconds:.1f} s"
    broken = sum(one.severity == BROKEN for one in found.findings)
    if not found.nodes:
        lines = ["NOT legitimate: no node answers"]
    elif found.legitimate:
        lines = [f"legitimate: {size} ({looks})"]
    else:
        wrong = counted(broken, "invariant")
        lines = [f"NOT legitimate: {wrong} broken in the last two of {looks}; {size}"]
    groups, expected = grouped(found.findings), ""
    for ones in groups[:SHOWN]:
        lines += filled(visible(line_of(ones)), "  ")
        if ones[0].expect != expected:
            lines += filled(f"  -> {ones[0].expect}", "     ")
        expected = ones[0].expect
    if len(groups) > SHOWN:
        lines.append(f"... and {len(groups) - SHOWN} more: --json shows all")
    return lines


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """What is broken first; one group for all topics in which the same is wrong at one node."""
    found: dict[tuple[str, str, str], list[Finding]] = {}
    for one in sorted(findings, key=lambda it: it.severity):
        found.setdefault((one.severity, one.invariant, one.where), []).append(one)
    return [*found.values()]


def line_of(ones: Sequence[Finding]) -> str:
    """A group in one sentence, with the detail of its first."""
    first, topics = ones[0], [one.topic for one in ones if one.topic]
    of = f" of {', '.join(topics[:TOPICS_SHOWN])}" if topics else ""
    if len(topics) > TOPICS_SHOWN:
        of += f" and {len(topics) - TOPICS_SHOWN} more topics"
    return f"{first.severity}: {first.invariant}{of} at {first.where}: {first.detail}"
