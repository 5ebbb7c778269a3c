"""How fast an application may publish: as fast as its node's links take it, but for slow ones."""

import asyncio
from collections.abc import Callable, Iterable

from planaria.network.connection import Connection

PACE_SECONDS = 0.25  # for which a publisher waits for a link that is crowded
ROOM_SECONDS = 0.02  # after which one that waits for something else than links asks again


def crowded(links: Iterable[Connection], *, patient: bool = False) -> list[Connection]:
    """The links that a publisher waits for; a `patient` one also for those left behind."""
    return [link for link in links if link.crowded and (patient or not link.behind)]


async def room(links: Iterable[Connection], *, patient: bool = False) -> None:
    """Wait until these links take more of what is published here, for `PACE_SECONDS` at most.

    Who is slower is left behind and catches up, unless somebody `patient` waits, and asks again.
    """
    full = crowded(links, patient=patient)
    if not full:
        return
    waiting = [asyncio.ensure_future(link.eased()) for link in full]
    await asyncio.wait(waiting, timeout=PACE_SECONDS)
    for link, task in zip(full, waiting, strict=True):
        if not task.done():
            link.behind = link.behind or not patient
            task.cancel()


class Pacing:
    """Publishes what waits as links have room: what they drop takes seconds to be caught up."""

    def __init__(
        self,
        links: Callable[[], Iterable[Connection]],
        publish: Callable[[], bool],
        *,
        patient: bool = False,
    ) -> None:
        """`publish` goes on while there is room, and says whether something waits for more of it.

        `patient`: nobody catches up with what a link drops, so that slow ones are waited for.
        """
        self._links, self._publish, self._patient = links, publish, patient
        self._task: asyncio.Task[None] | None = None

    @property
    def crowded(self) -> bool:
        """Must whoever publishes wait?"""
        return bool(crowded(self._links(), patient=self._patient))

    def begin(self) -> None:
        """Something waits from now on.

        What raised is let go, so that the loop reports it; what waits goes on.
        """
        failed = self._task is not None and self._task.done() and not self._task.cancelled()
        if self._task is None or failed:
            self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Publish nothing more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        waits = True
        while waits:
            await room(self._links(), patient=self._patient)
            waits = self._publish()
            if waits and not self.crowded:
                await asyncio.sleep(ROOM_SECONDS)
        self._task = None
