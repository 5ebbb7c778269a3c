"""Whole nodes in the process of a test: insecure, fast, each in a directory of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from planaria.network.config import Config
from planaria.network.live import LiveNode

INTERVAL = 0.1
TOPIC = "news"


def config(directory: Path, **options: Any) -> Config:
    usual = {"listen": "127.0.0.1:0", "supervise": True, "insecure": 1, "interval": INTERVAL}
    return Config(dir=directory, **{**usual, **options})


@asynccontextmanager
async def running(settings: Config) -> AsyncIterator[LiveNode]:
    """A node that at the end leaves nothing in good order, if it has not ended before."""
    live = LiveNode(settings)
    try:
        await live.start()
        yield live
    finally:
        if live.database is not None:
            await live.stop(leave=False)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await main()

    asyncio.run(bounded())


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.02)
