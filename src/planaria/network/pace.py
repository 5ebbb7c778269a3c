"""How fast an application may publish: as fast as its node's links take it, but for slow ones."""

import asyncio
from collections.abc import Iterable

from planaria.network.connection import Connection

PACE_SECONDS = 0.25  # for which a publisher waits for a link that is half full


async def room(links: Iterable[Connection]) -> None:
    """Wait until these links take more of what is published here.

    For none of them longer than `PACE_SECONDS`: who is slower is left behind and catches up.
    """
    crowded = [link for link in links if link.crowded and not link.behind]
    if not crowded:
        return
    waiting = [asyncio.ensure_future(link.eased()) for link in crowded]
    await asyncio.wait(waiting, timeout=PACE_SECONDS)
    for link, task in zip(crowded, waiting, strict=True):
        if not task.done():
            link.behind = True
            task.cancel()
