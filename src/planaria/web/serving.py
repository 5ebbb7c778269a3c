"""Serves the dashboard of a network for as long as a block lasts."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn

from planaria.core.errors import UsageError
from planaria.network.config import is_loopback
from planaria.network.contacts import format_address, parse_address
from planaria.network.context import Context
from planaria.network.survey import Surveyor
from planaria.web.app import Dashboard
from planaria.web.breaking import Breaker
from planaria.web.watching import Watcher

TOKEN_BYTES = 16


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@asynccontextmanager
async def dashboard(
    context: Context, listen: str, *, open_to_others: bool = False, seconds: float = 1.0
) -> AsyncIterator[str]:
    """Serve at `listen`; the address that is given has the token in it."""
    host, port = parse_address(listen)
    if not open_to_others and not is_loopback(listen):
        raise UsageError(f"{host} can be reached by others: say --open-to-others if you mean it")
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with TemporaryDirectory(prefix="planaria-dashboard-") as copies:
        async with Surveyor(context) as surveyor:
            breaker, name = Breaker(context, Path(copies)), context.cluster or "planaria"
            board = Dashboard(Watcher(surveyor), breaker, token, name, seconds)
            with _bound(host, port) as door:
                address = format_address(host, door.getsockname()[1])
                settings = uvicorn.Config(
                    board.app, log_level="warning", timeout_graceful_shutdown=1
                )
                server = _Server(settings)
                work = asyncio.ensure_future(server.serve([door]))
                try:
                    yield f"http://{address}/?token={token}"
                finally:
                    await board.close()
                    server.should_exit = True
                    await work


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        where = format_address(host, port)
        raise UsageError(
            f"cannot listen at {where}: {error.strerror or error}; name another with --listen"
        ) from None
