"""`planaria dashboard`: a page that draws a running network, for a browser."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from planaria.cli.access import reaches_network, run
from planaria.cli.numbers import Finite
from planaria.core.errors import UsageError
from planaria.network.context import Context

LISTEN = "127.0.0.1:7380"


@click.command()
@click.option(
    "--listen", default=LISTEN, show_default=True, metavar="HOST:PORT", help="Port 0: any."
)
@click.option("--open-to-others", is_flag=True, help="Listen where other machines can reach it.")
@click.option(
    "-d", "--delay", type=Finite(0.1), default=1.0, show_default=True,
    metavar="SECONDS", help="Between two looks.",
)  # fmt: skip
@reaches_network
def dashboard(context: Context, listen: str, open_to_others: bool, delay: float) -> None:
    """Draw the network in a browser until Ctrl-C; prints the address with its token.

    It only looks, but for buttons that break a network of --allow-chaos. Whoever has the address
    may look and press them, from this machine alone unless --open-to-others; what is sent is not
    encrypted, so put a proxy with TLS before it then.
    """
    try:
        run(_serve(context, listen, open_to_others, delay))
    except KeyboardInterrupt:
        return


async def _serve(context: Context, listen: str, open_to_others: bool, delay: float) -> None:
    async with served(context, listen, open_to_others=open_to_others, seconds=delay) as address:
        click.echo(address)
        await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def served(
    context: Context, listen: str, *, open_to_others: bool = False, seconds: float = 1.0
) -> AsyncIterator[str]:
    """Serve the dashboard while the block lasts; raises UsageError where it is not installed."""
    try:
        from planaria.web import serving
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        words = "the dashboard needs starlette and uvicorn: pip install 'planaria[web]'"
        raise UsageError(words) from None
    async with serving.dashboard(
        context, listen, open_to_others=open_to_others, seconds=seconds
    ) as address:
        yield address
