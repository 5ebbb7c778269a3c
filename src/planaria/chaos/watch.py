"""Watches a network with the eyes of `planaria doctor`, again and again."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Self

from msgspec import Struct

from planaria.chaos.target import Target
from planaria.network.client.errors import Unreachable
from planaria.network.doctor import BROKEN, findings
from planaria.network.survey import Surveyor

LOOK_SECONDS = 0.2  # between two looks
LOOKS_KEPT = 100  # who asks about a moment asks soon
UNREACHABLE = "unreachable"  # the invariant that a silent node breaks, in the doctor's words


class Look(Struct, frozen=True):
    """One look: when it began and ended, and what is wrong; nothing: the network is legitimate.

    `invariants` are the names of what does not hold, each once.
    """

    began: float
    ended: float
    wrong: list[str]
    invariants: list[str]


class Watch:
    """Looks until its block ends."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.looks: deque[Look] = deque(maxlen=LOOKS_KEPT)
        self._new = asyncio.Condition()
        self._surveyor = Surveyor(target.context)
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None  # what ended the watch

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._surveyor.__aexit__()

    async def legitimate(self, since: float, seconds: float) -> float | None:
        """When a look that began after `since` first found nothing wrong; None: not in time.

        Raises what ended the watch, if something did.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._new:
                while True:
                    found = [it for it in self.looks if it.began >= since and not it.wrong]
                    if found:
                        return found[0].ended
                    if self._failure is not None:
                        raise self._failure
                    await self._new.wait()
        return None

    @property
    def wrong(self) -> list[str]:
        """What the last look found."""
        return self.looks[-1].wrong if self.looks else ["nobody has looked yet"]

    async def _watch(self) -> None:
        try:
            await self._look_on()
        except Exception as error:
            self._failure = error
            async with self._new:
                self._new.notify_all()

    async def _look_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            wrong, invariants = await self._look()
            async with self._new:
                self.looks.append(Look(began, loop.time(), wrong, invariants))
                self._new.notify_all()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> tuple[list[str], list[str]]:
        """What is wrong, and the names of the invariants that fail."""
        try:
            survey = await self._surveyor.look()
            await self._surveyor.examine(survey)
        except Unreachable as error:
            return [str(error)], [UNREACHABLE]
        found = [it for it in findings(survey, self._surveyor.secret) if it.severity == BROKEN]
        wrong = [f"{it.invariant} at {it.where}: {it.detail}" for it in found]
        expected = {it.handle for it in self.target.members.values() if it.alive}
        if missing := expected - {*survey.nodes}:
            wrong.append(f"{len(missing)} nodes do not answer")
        names = [it.invariant for it in found] + [UNREACHABLE] * bool(missing)
        return wrong, [*dict.fromkeys(names)]
