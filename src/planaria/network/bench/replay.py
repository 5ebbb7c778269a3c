"""Late joiners: how fast a new subscriber reads what was published before it came."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from planaria.network.bench.contender import Contender
from planaria.network.bench.measure import SIZE
from planaria.network.bench.processes import START_SECONDS, Failed, Process

COUNT = 100_000
ROUNDS = 3
LATE_SECONDS = 6.0  # after the last publication: by then nothing is on its way any more


class Past:
    """A system in which so much was published, and the readers that come after that."""

    def __init__(self, contender: type[Contender], directory: Path, count: int) -> None:
        self.contender, self.count = contender, count
        self.speeds: list[float] = []  # publications a second of each reader
        self._directory, self._address = directory, ""
        self._processes: list[Process] = []

    async def start(self, rounds: int) -> None:
        """Publish all of it; nobody reads it yet."""
        self.contender.prepare(self._directory, rounds + 2)
        if self.contender.has_hub:
            await self._process("hub")
        publisher = await self._process("publisher")
        await publisher.tell("burst", count=self.count, size=SIZE)
        await asyncio.sleep(LATE_SECONDS)

    async def read(self) -> None:
        """Read it, with a new process that has not connected yet; raises Failed if it misses any.

        From subscribing to the last of them.
        """
        reader = await self._process("reader")
        answer = await reader.tell("replay", count=self.count)
        await reader.end()
        if answer["count"] != self.count:
            missed = f"got {answer['count']} of {self.count}"
            raise Failed(f"{self.contender.name}: a late reader {missed}")
        self.speeds.append(self.count / answer["seconds"])

    async def stop(self) -> None:
        """End all its processes."""
        await asyncio.gather(*(process.end() for process in self._processes))

    async def _process(self, role: str) -> Process:
        index = len(self._processes) + (not self.contender.has_hub)  # 1: the publisher
        process = await Process.start(self.contender, role, self._directory, self._address, index)
        self._processes.append(process)
        self._address = (await process.answer(START_SECONDS)).get("address", self._address)
        return process


async def replays(
    contenders: Sequence[type[Contender]],
    directory: Path,
    report: Callable[[str], None],
    count: int = COUNT,
    rounds: int = ROUNDS,
) -> dict[str, float]:
    """Publications a second of late readers, which take turns; the median of each system.

    One that fails is reported and left out.
    """
    systems = [Past(it, directory / f"{it.name}-past", count) for it in contenders]
    failed: set[Past] = set()
    try:
        for number in range(rounds + 1):
            report(f"late joiners, round {number} of {rounds}" if number else "storing a past")
            for one in [it for it in systems if it not in failed]:
                try:
                    await (one.read() if number else one.start(rounds))
                except Failed as error:
                    report(str(error))
                    failed.add(one)
        good = [one for one in systems if one not in failed]
        return {one.contender.name: median(one.speeds) for one in good}
    finally:
        await asyncio.gather(*(one.stop() for one in systems))
