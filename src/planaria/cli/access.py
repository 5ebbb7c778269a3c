"""Options that all tools of a live network share: which network, and as whom."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from planaria.network.context import find_context

T = TypeVar("T")
JSON = click.option("--json", "as_json", is_flag=True, help="JSON for programs instead of text.")

_OPTIONS = (
    click.option("-s", "--servers", help="HOST:PORT,HOST:PORT,… of some nodes; any will do."),
    click.option("--context", "named", metavar="NAME", help="A context, or the file of one."),
    click.option(
        "--credentials",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="A directory made by `planaria keys issue`.",
    ),
    click.option("--insecure", is_flag=True, help="The network runs without TLS."),
)


def reaches_network(function: Callable[..., T]) -> Callable[..., T]:
    """Give a command the options, and the `context` that they and the environment name."""

    @wraps(function)
    def command(
        *,
        servers: str | None,
        named: str | None,
        credentials: Path | None,
        insecure: bool,
        **others: Any,
    ) -> T:
        context = find_context(
            named, servers=servers, credentials=credentials, insecure=insecure or None
        )
        return function(context=context, **others)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do what takes an event loop."""
    return asyncio.run(work)
