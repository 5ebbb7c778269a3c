"""How fast an application may publish: as fast as its node's links take it, but for slow ones."""

import asyncio
from collections.abc import Iterable

from planaria.network.connection import Connection

PACE_SECONDS = 0.25  # for which a publisher waits for a link that is half full


def crowded(links: Iterable[Connection]) -> list[Connection]:
    """The links that a publisher waits for."""
    return [link for link in links if link.crowded and not link.behind]


async def room(links: Iterable[Connection]) -> None:
    """Wait until these links take more of what is published here.

    For none of them longer than `PACE_SECONDS`: who is slower is left behind and catches up.
    """
    full = crowded(links)
    if not full:
        return
    waiting = [asyncio.ensure_future(link.eased()) for link in full]
    await asyncio.wait(waiting, timeout=PACE_SECONDS)
    for link, task in zip(full, waiting, strict=True):
        if not task.done():
            link.behind = True
            task.cancel()
