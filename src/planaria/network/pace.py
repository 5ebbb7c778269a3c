"""How fast an application may publish: as fast as its node's links take it, but for slow ones."""

import asyncio
from collections.abc import Callable, Iterable

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


class Pacing:
    """Publishes what waits as links have room: what they drop takes seconds to be caught up."""

    def __init__(
        self, links: Callable[[], Iterable[Connection]], publish: Callable[[], bool]
    ) -> None:
        """`publish` goes on until links are crowded, and says whether something waits for them."""
        self._links, self._publish = links, publish
        self._task: asyncio.Task[None] | None = None

    @property
    def crowded(self) -> bool:
        """Must whoever publishes wait?"""
        return bool(crowded(self._links()))

    def begin(self) -> None:
        """Something waits from now on."""
        self._task = self._task or asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Publish nothing more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        waits = True
        while waits:
            await room(self._links())
            waits = self._publish()
        self._task = None
