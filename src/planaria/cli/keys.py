"""`planaria keys`: an authority, and certificates for nodes, clients and admins."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from planaria.cli.access import JSON, reaches_network, run
from planaria.cli.groups import Group
from planaria.cli.topic import utc
from planaria.core.errors import UsageError
from planaria.network.context import Context
from planaria.network.identity import (
    AUTHORITY,
    CERTIFICATE,
    CERTIFICATE_DAYS,
    CLUSTER,
    ID_BYTES,
    ISSUED,
    ROLES,
    found_cluster,
    handle_of,
    identify,
    issue,
    issued,
    load_authority,
    load_certificate,
)
from planaria.network.revoking import Reach, ends_of, held_by, lay_down
from planaria.network.rotation import finish_rotation, revoking_key, rotate
from planaria.network.survey import Surveyor
from planaria.protocols.skipring.charter import voiding

DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.group(cls=Group)
def keys() -> None:
    """Make keys and certificates: who may take part in a network, and as what."""


@keys.command("init")
@click.argument("directory", type=DIRECTORY)
@click.option("--cluster", default=CLUSTER, show_default=True, help="The network's name.")
def init(directory: Path, cluster: str) -> None:
    """Make an authority in DIRECTORY. Keep it off the machines that nodes run on."""
    found_cluster(directory, cluster)
    click.echo(f"authority of cluster {cluster!r} in {directory}", err=True)


@keys.command("issue")
@click.argument("name")
@click.option("--dir", "directory", type=DIRECTORY, default=Path("keys"), show_default=True)
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), default=("node",))
@click.option("--days", default=CERTIFICATE_DAYS, show_default=True, type=click.IntRange(1, 3650))
@JSON
def issue_one(name: str, directory: Path, roles: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make a key and a certificate for NAME, signed by the authority in --dir."""
    target = issue(directory, name, roles, days)
    shown = _shown(target)
    text = f"{shown['directory']}: {name}, id {shown['id']}, until {shown['expires']}"
    click.echo(json.dumps(shown) if as_json else text)


@keys.command("show")
@click.argument("directory", type=DIRECTORY)
@JSON
def show(directory: Path, as_json: bool) -> None:
    """Say whom the certificate in DIRECTORY names, as what, and until when."""
    shown = _shown(directory)
    if as_json:
        click.echo(json.dumps(shown))
        return
    for name, value in shown.items():
        click.echo(f"{name:10} {' '.join(value) if isinstance(value, list) else value}")


@keys.command("rotate")
@click.argument("directory", type=DIRECTORY)
@click.option("--finish", is_flag=True, help="Trust the old authority no longer.")
def rotate_authority(directory: Path, finish: bool) -> None:
    """Make a new authority in DIRECTORY, trusted beside the old one until --finish."""
    if finish:
        finish_rotation(directory)
        click.echo(f"{directory / AUTHORITY} holds the new authority alone", err=True)
    else:
        rotate(directory)
        click.echo(
            f"{directory / AUTHORITY} holds both: copy it to all nodes and clients", err=True
        )


@keys.command("revoke")
@click.argument("who", metavar="NAME|ID")
@click.option("--dir", "directory", type=DIRECTORY, default=Path("keys"), show_default=True)
@click.option("--from", "since", metavar="TIME", help="2026-11-16T12:00:00Z, or seconds [now].")
@click.option("--held", is_flag=True, help="Only what nodes hold of it now counts from now on.")
@click.option("--after", multiple=True, metavar="STREAM=NUMBER", help="Nor that, from there on.")
@click.option("--show", is_flag=True, help="Print what nodes hold of it, and do nothing.")
@reaches_network
def revoke(
    context: Context,
    who: str,
    directory: Path,
    since: str | None,
    held: bool,
    after: tuple[str, ...],
    show: bool,
) -> None:
    """Have a running network refuse NAME or ID; needs the authority in --dir.

    Its links are closed, and what it signed from TIME on is void. With --held also whatever it
    publishes in other streams, or further in those that nodes hold: nothing can be dated back.
    Cannot be taken back.
    """
    id, second = issued_id(directory, who), parse_time(since)
    asked = None if not (held or after or show) else after
    reaches = run(revoke_one(context, id, directory, second, asked, show=show))
    for one in reaches:
        click.echo(f"{one.topic} {one.incarnation.hex()}={one.end}")
    if not show:
        click.echo(f"{who} ({id.hex()}) is revoked from {utc(second)} on", err=True)


async def revoke_one(
    context: Context,
    id: bytes,
    directory: Path,
    since: int,
    after: tuple[str, ...] | None = None,
    *,
    show: bool = False,
) -> list[Reach]:
    """Revoke a certificate; if `after` is told, by position too. Returns what nodes held of it."""
    key = revoking_key(directory, id)
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
        reaches = [] if after is None else await held_by(surveyor, survey, handle_of(id))
        ends = None if after is None else ends_of(reaches, after)
        for silent in survey.silent if after is not None else ():
            result = "what it alone holds is not counted"
            click.echo(f"{silent.addresses[0]} does not answer: {result}", err=True)
        if not show:
            await lay_down(surveyor, survey, voiding(id, since, ends), key)
        return reaches


def issued_id(directory: Path, who: str) -> bytes:
    """The id of a certificate, told as it is or by its name; raises UsageError."""
    found = [it.id for it in issued(directory) if it.name == who]
    if found:
        if len(found) > 1:
            ids = ", ".join(it.hex() for it in found)
            raise UsageError(f"{who!r} was issued {len(found)} times: name one id of {ids}")
        return found[0]
    try:
        id = bytes.fromhex(who)
    except ValueError:
        id = b""
    if len(id) != ID_BYTES:
        raise UsageError(
            f"{who!r} is no name that {directory / ISSUED} has, and no id of 32 hex digits "
            "(`planaria keys show DIR` shows one)"
        )
    return id


def parse_time(text: str | None) -> int:
    """Seconds since 1970 of a time in ISO 8601, in UTC unless it says else; None: now."""
    if text is None:
        return int(time.time())
    try:
        if text.isascii() and text.isdigit():
            return int(datetime.fromtimestamp(int(text), UTC).timestamp())
        found = datetime.fromisoformat(text)
        return max(0, int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"--from {text}: a time such as 2026-11-16T12:00:00Z") from None


def _shown(directory: Path) -> dict[str, str | int | list[str]]:
    authority = load_authority(directory / AUTHORITY)
    one = identify(load_certificate(directory / CERTIFICATE), authority)
    return {
        "name": one.name,
        "id": one.id.hex(),
        "handle": one.handle,
        "roles": list(one.roles),
        "expires": f"{one.expires:%Y-%m-%dT%H:%M:%SZ}",
        "directory": str(directory),
    }
