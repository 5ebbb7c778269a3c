"""What all tools that look at a network share: which one, and as whom."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from planaria.cli.connecting import connecting
from planaria.network.context import find_context

T = TypeVar("T")
JSON = click.option("--json", "as_json", is_flag=True, help="JSON for programs instead of text.")


def reaches_network(function: Callable[..., T]) -> Callable[..., T]:
    """Give a command the `Context` that its options, the environment and contexts name."""

    @connecting
    @wraps(function)
    def command(
        *,
        servers: str | None,
        context: str | None,
        credentials: Path | None,
        insecure: bool | None,
        **others: Any,
    ) -> T:
        found = find_context(context, servers=servers, credentials=credentials, insecure=insecure)
        return function(context=found, **others)

    return command


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do what takes an event loop."""
    return asyncio.run(work)
