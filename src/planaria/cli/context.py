"""`planaria context`: names for networks, so that no tool needs their addresses again."""

import json
from pathlib import Path

import click

from planaria.cli.access import JSON
from planaria.cli.groups import Group
from planaria.core.errors import UsageError
from planaria.network.context import (
    Context,
    choose_context,
    chosen_context,
    context_names,
    context_path,
    find_context,
    read_context,
    remove_context,
    split_servers,
    write_context,
)


@click.group(cls=Group)
def context() -> None:
    """Give networks names: servers and credentials that all tools then know."""


@context.command("ls")
@JSON
def ls(as_json: bool) -> None:
    """List the contexts; the one that tools use now has a star."""
    found = [read_context(context_path(name)) for name in context_names()]
    now = find_context()
    if now.name not in [one.name for one in found]:
        found.append(now)
    if as_json:
        click.echo(json.dumps([{**_shown(one), "used": one.name == now.name} for one in found]))
        return
    width = max(len(one.name) for one in found)
    for one in found:
        mark = "*" if one.name == now.name else " "
        click.echo(f"{mark} {one.name:{width}}  {','.join(one.servers)}")


@context.command("add")
@click.argument("name")
@click.option("-s", "--servers", required=True, help="HOST:PORT,HOST:PORT,… of some nodes.")
@click.option(
    "--credentials",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A directory made by `planaria keys issue`.",
)
@click.option("--insecure", is_flag=True, help="The network runs without TLS.")
@click.option("--cluster", help="The network's name, if its certificates do not say it.")
def add(
    name: str, servers: str, credentials: Path | None, insecure: bool, cluster: str | None
) -> None:
    """Keep a network under NAME, in place of what had that name."""
    if credentials is not None and insecure:
        raise UsageError("--credentials or --insecure, not both")
    kept = None if credentials is None else credentials.resolve()
    made = Context(split_servers(servers), kept, insecure, cluster)
    write_context(context_path(name), made)


@context.command("use")
@click.argument("name", required=False)
@click.option("--none", is_flag=True, help="Use none from now on.")
def use(name: str | None, none: bool) -> None:
    """Use NAME wherever no other context is named and no `planaria up` runs."""
    if none == (name is not None):
        raise UsageError("name one context, or --none")
    choose_context(name)


@context.command("rm")
@click.argument("name")
def rm(name: str) -> None:
    """Forget NAME."""
    remove_context(name)


@context.command("show")
@click.argument("name", required=False)
@JSON
def show(name: str | None, as_json: bool) -> None:
    """Say what NAME stands for; without NAME, what tools use now and why."""
    shown = _shown(find_context(name))
    if as_json:
        click.echo(json.dumps(shown))
        return
    shown["servers"] = ",".join(find_context(name).servers)
    for key, value in {**shown, "chosen": chosen_context()}.items():
        if value is not None:
            click.echo(f"{key:11} {value}")


def _shown(one: Context) -> dict[str, object]:
    return {
        "name": one.name,
        "servers": list(one.servers),
        "credentials": None if one.credentials is None else str(one.credentials),
        "insecure": one.insecure,
        "cluster": one.cluster,
    }
