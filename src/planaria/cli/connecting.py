"""The options by which all tools name their network."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from planaria.network.client.overlays import OVERLAYS

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "-s", "--server", "--servers", "servers", metavar="NODES",
        help="HOST:PORT,HOST:PORT,… of some nodes. Default: PLANARIA_SERVERS, then the context.",
    ),
    click.option("--context", help="A named context, or its file. Default: PLANARIA_CONTEXT."),
    click.option(
        "--credentials", type=click.Path(path_type=Path, file_okay=False),
        help="A directory made by `planaria keys issue NAME --role client`.",
    ),
    click.option("--insecure", is_flag=True, default=None, help="Talk without TLS."),
)  # fmt: skip


overlay_option = click.option(
    "--overlay", type=click.Choice(OVERLAYS), help="Where the topic is; its charter says it."
)


def connecting(command: F) -> F:
    """Give a command the options `servers`, `context`, `credentials` and `insecure`."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), command)
