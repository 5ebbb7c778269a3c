"""`planaria keys`: an authority, and certificates for nodes, clients and admins."""

import json
from pathlib import Path

import click

from planaria.cli.groups import Group
from planaria.network.identity import (
    AUTHORITY,
    CERTIFICATE,
    CERTIFICATE_DAYS,
    CLUSTER,
    ROLES,
    found_cluster,
    identify,
    issue,
    load_certificate,
)

DIRECTORY = click.Path(path_type=Path, file_okay=False)
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")


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


def _shown(directory: Path) -> dict[str, str | int | list[str]]:
    authority = load_certificate(directory / AUTHORITY)
    one = identify(load_certificate(directory / CERTIFICATE), authority)
    return {
        "name": one.name,
        "id": one.id.hex(),
        "handle": one.handle,
        "roles": list(one.roles),
        "expires": f"{one.expires:%Y-%m-%dT%H:%M:%SZ}",
        "directory": str(directory),
    }
