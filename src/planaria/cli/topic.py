"""`planaria topic`: lay down what topics keep, with charters that all nodes settle on."""

import asyncio
import re
import time
from typing import Any, cast

import click
from msgspec import json
from msgspec.structs import replace

from planaria.cli.access import JSON, reaches_network, run
from planaria.cli.groups import Group
from planaria.cli.tables import aligned, counted
from planaria.core.errors import UsageError, unknown
from planaria.core.topics import check_filter, check_topic
from planaria.network.charters import local_key, seal, seal_locally
from planaria.network.client.messages import AskCharters, ChartersAre, PutCharter
from planaria.network.client.overlays import OVERLAYS, RING
from planaria.network.context import Context, contexts_directory
from planaria.network.laid_down import charters_of, limits_of, line_of, supervisors_of
from planaria.network.rights import RIGHTS
from planaria.network.survey import Surveyor
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.charter import (
    ANYBODY,
    OPEN,
    Allowed,
    Charter,
    Right,
    next_charter,
    with_publishers,
)

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
FOREVER = ("forever", "all")  # no limit
SPREAD_SECONDS = 5.0  # for all supervisors to hold a new charter
LOCAL_KEY = "charters.pem"  # signs in networks without TLS


@click.group(cls=Group)
def topic() -> None:
    """Lay down what topics keep, the same at all nodes: charters, signed by an admin."""


@topic.command("set")
@click.argument("name")
@click.option("--keep", metavar="AGE", help="90s, 15m, 12h, 7d, 2w or forever.")
@click.option("--count", metavar="N", help="The latest, so many at least, or `all`.")
@click.option("--per-publisher", metavar="N", help="The same of each publisher, or `all`.")
@click.option("--overlay", type=click.Choice(OVERLAYS), help="Where it and all below it live.")
@click.option("--allow", metavar="RIGHT=NAMES", multiple=True, help="publish=alice,bob; * is all.")
@click.option("--version", type=click.IntRange(1), help="The next, if not told.")
@JSON
@reaches_network
def set_one(
    context: Context,
    name: str,
    keep: str | None,
    count: str | None,
    per_publisher: str | None,
    overlay: str | None,
    allow: tuple[str, ...],
    version: int | None,
    as_json: bool,
) -> None:
    """Lay down what NAME keeps; what is not told stays as it is. Needs an admin's certificate."""
    check_topic(name)
    changes = {
        "age": None if keep is None else parse_age(keep),
        "count": None if count is None else parse_count(count),
        "per_publisher": None if per_publisher is None else parse_count(per_publisher),
    }
    given = {key for key, value in zip(changes, (keep, count, per_publisher), strict=True) if value}
    if not given and overlay is None and not allow:
        options = "--keep, --count, --per-publisher, --overlay or --allow"
        raise UsageError(f"nothing to lay down: say {options}")
    wanted = {key: changes[key] for key in given}
    rights = dict(map(parse_allow, allow))
    charter, held, known = run(_set(context, name, wanted, overlay, rights, version))
    if as_json:
        click.echo(json.encode({**shown(charter), "supervisors": [held, known]}).decode())
    else:
        click.echo(f"{line_of(charter)}: held by {held} of {counted(known, 'supervisor')}")


@topic.command("ls")
@click.argument("pattern", default="#")
@JSON
@reaches_network
def ls(context: Context, pattern: str, as_json: bool) -> None:
    """List the topics that have a charter; others keep everything."""
    found = run(_charters(context, check_filter(pattern)))
    if as_json:
        for versions in found.values():
            click.echo(json.encode(shown(versions[0])).decode())
        return
    rows = [["topic", "version", "overlay", "keeps", "count", "per publisher"]]
    for it, *_ in found.values():
        limits = limits_of(it.retention) if it.overlay == RING else ["-", "-", "-"]
        rows.append([it.topic, str(it.version), it.overlay, *limits])
    click.echo("\n".join(aligned(rows, right=(1,))))


@topic.command("show")
@click.argument("name")
@JSON
@reaches_network
def show(context: Context, name: str, as_json: bool) -> None:
    """Show the charter of NAME that counts, and those before it."""
    found = run(_charters(context, check_topic(name))).get(name)
    if found is None:
        raise UsageError(f"{name!r} has no charter: it keeps everything (`planaria topic set`)")
    if as_json:
        click.echo(json.encode([shown(it) for it in found]).decode())
        return
    for it in found:
        click.echo(f"{line_of(it)}, signed {utc(it.time)}")


async def _set(
    context: Context,
    name: str,
    wanted: dict[str, int | None],
    overlay: str | None,
    allow: dict[Right, tuple[str, ...]],
    version: int | None,
) -> tuple[Charter, int, int]:
    """Sign the next charter, hand it to a node, and wait until all supervisors hold it."""
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
        before = (await charters_of(surveyor, survey, name)).get(name, [None])[0]
        blank = next_charter(name, before, int(time.time()), version)
        charter = replace(blank, retention=replace(blank.retention, **wanted))
        charter = replace(charter, overlay=overlay or charter.overlay)
        if wanted and charter.overlay != RING:
            raise UsageError(
                f"{charter.overlay} keeps no history: say nothing of what {name!r} keeps, "
                f"or --overlay {RING}"
            )
        credentials = surveyor.access.credentials
        if allow and credentials is None:
            raise UsageError(
                "--allow needs certificates: without them nobody knows who a client is"
            )
        charter = replace(charter, allow=changed_rights(charter.allow, allow))
        if "publish" in allow:
            charter = with_publishers(charter, allow["publish"])
        if credentials is not None:
            sealed = seal(charter, credentials)
        else:
            sealed = seal_locally(charter, local_key(contexts_directory().parent / LOCAL_KEY))
        first = supervisors_of(survey)[0] if supervisors_of(survey) else next(iter(survey.nodes))
        await surveyor.ask(first, PutCharter, ChartersAre, sealed)
        until = time.monotonic() + SPREAD_SECONDS
        while True:
            held = 0
            for node in supervisors_of(survey):
                answer = await surveyor.ask(node, AskCharters, ChartersAre, name)
                held += sealed in answer.sealed
            if held == len(supervisors_of(survey)) or time.monotonic() > until:
                return charter, held, len(supervisors_of(survey))
            await asyncio.sleep(0.1)


async def _charters(context: Context, pattern: str) -> dict[str, list[Charter]]:
    async with Surveyor(context) as surveyor:
        return await charters_of(surveyor, await surveyor.look(), pattern)


def parse_age(text: str) -> int | None:
    """Seconds in `7d`; None for `forever`. Raises UsageError."""
    if text in FOREVER:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,9})([smhdw])", text)
    if match is None:
        raise UsageError(f"--keep {text}: a number and s, m, h, d or w, such as 7d; or forever")
    return int(match[1]) * UNITS[match[2]]


def parse_count(text: str) -> int | None:
    """A number of publications; None for `all`. Raises UsageError."""
    if text in FOREVER:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise UsageError(f"{text!r} is no number of publications: 1 or more, or all")
    return int(text)


def parse_allow(text: str) -> tuple[Right, tuple[str, ...]]:
    """A right and who has it, of `publish=alice,bob`; raises UsageError."""
    right, _, names = text.partition("=")
    who = tuple(sorted({it.strip() for it in names.split(",")}))
    if not all(who):
        raise UsageError(f"--allow {text}: a right and names, such as publish=alice,bob, or *")
    if right not in RIGHTS:
        raise unknown("right", right, RIGHTS)
    return cast(Right, right), who


def changed_rights(before: Allowed, changes: dict[Right, tuple[str, ...]]) -> Allowed:
    """What is laid down about rights, with changes; nothing about what everybody has."""
    merged = {**dict(before), **changes}
    return tuple(sorted((it, who) for it, who in merged.items() if ANYBODY not in who))


def shown(charter: Charter) -> dict[str, Any]:
    """A charter for programs."""
    kept: Retention = charter.retention
    return {
        "topic": charter.topic,
        "version": charter.version,
        "overlay": charter.overlay,
        "keep_seconds": kept.age,
        "count": kept.count,
        "per_publisher": kept.per_publisher,
        "allow": {right: list(who) for right, who in charter.allow},
        "terms": [[who, since, None if end == OPEN else end] for who, since, end in charter.terms],
        "signed": charter.time,
    }


def utc(second: int) -> str:
    """A second since 1970 as people write it."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(second))
