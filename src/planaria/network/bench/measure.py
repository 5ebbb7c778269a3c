"""Runs systems beside each other: all started once, then measured in turns, round by round."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from time import monotonic
from typing import Any

from msgspec import Struct

from planaria.network.bench.contender import Contender
from planaria.network.bench.processes import START_SECONDS, Failed, Process
from planaria.network.bench.worker import BURST, PROBE, STEADY

SUBSCRIBERS = 8
SIZE = 128
RATE = 500  # publications a second, where latency is measured
WARM_UP = 2_000
COUNT_MIN, COUNT_MAX = 1_000, 400_000
STEADY_SECONDS = 2.0
PROBES = 300


class Plan(Struct, frozen=True):
    """How long to measure what."""

    rounds: int = 5
    burst_seconds: float = 2.0
    steady_seconds: float = STEADY_SECONDS
    seconds_max: float = 600.0  # then nothing further is begun but the first round
    subscribers: int = SUBSCRIBERS
    size: int = SIZE


QUICK = Plan(rounds=2, burst_seconds=0.6, steady_seconds=0.8, seconds_max=35.0)


class Round(Struct, frozen=True):
    """What one system did in one round; `lost` of all deliveries there should have been."""

    deliveries_per_s: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    lost: int


class System:
    """A system under test with its processes."""

    def __init__(self, contender: type[Contender], directory: Path, plan: Plan) -> None:
        self.contender, self.plan = contender, plan
        self.rounds: list[Round] = []
        self._directory = directory
        self._processes: list[Process] = []
        self._subscribers: list[Process] = []
        self._rate = 0.0  # publications a second, as far as is known

    async def start(self) -> None:
        """Start all its processes, and see that a message reaches every subscriber."""
        self.contender.prepare(self._directory, self.plan.subscribers + 2)
        address = ""
        if self.contender.has_hub:
            address = (await self._ready(await self._process("hub", "", 0)))["address"]
        self._publisher = await self._process("publisher", address, 1)
        address = (await self._ready(self._publisher))["address"]
        for index in range(self.plan.subscribers):
            self._subscribers.append(await self._process("subscriber", address, index + 2))
        await asyncio.gather(*map(self._ready, self._subscribers))
        await self._probe()
        await self.burst(WARM_UP)

    async def _process(self, role: str, address: str, index: int) -> Process:
        process = await Process.start(self.contender, role, self._directory, address, index)
        self._processes.append(process)
        return process

    async def _ready(self, process: Process) -> dict[str, str]:
        return await process.answer(START_SECONDS)

    async def _probe(self) -> None:
        """Publish until every subscriber has heard something: then subscriptions are in force."""
        await self._all("expect", kind=PROBE, count=1)
        for one in self._subscribers:
            one.say("wait", silence=START_SECONDS)
        heard = asyncio.gather(*(one.answer() for one in self._subscribers))
        while not heard.done():
            await self._publisher.tell("probe", count=1, rate=RATE, size=self.plan.size)
            await asyncio.wait([heard], timeout=0.1)
        if not all(answer["count"] for answer in await heard):
            raise Failed(f"{self.contender.name}: not every subscriber hears the publisher")

    async def _all(self, do: str, **fields: int) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(one.tell(do, **fields) for one in self._subscribers)))

    async def burst(self, count: int) -> tuple[float, float, int]:
        """Publish so many at full speed: deliveries/s, CPU microseconds of each, and the lost."""
        await self._all("expect", kind=BURST, count=count)
        before = self._cpu()
        sent = await self._publisher.tell("burst", count=count, size=self.plan.size)
        answers = await self._all("wait")
        cpu = self._cpu() - before
        made = sum(answer["count"] for answer in answers)
        seconds = (max(answer["last"] for answer in answers) - sent["began"]) / 1e9
        self._rate = count / seconds
        lost = count * len(answers) - made
        return made / seconds, 1e6 * cpu / max(1, made), lost

    async def steady(self) -> tuple[list[int], int]:
        """Publish at a steady rate: how many nanoseconds each delivery took, and the lost."""
        count = round(self.plan.steady_seconds * RATE)
        await self._all("expect", kind=STEADY, count=count)
        await self._publisher.tell("steady", count=count, rate=RATE, size=self.plan.size)
        answers = await self._all("wait")
        took = [one for answer in answers for one in answer["latencies"]]
        return took, count * len(answers) - len(took)

    async def round(self) -> None:
        """Measure everything once."""
        count = round(self._rate * self.plan.burst_seconds)
        speed, cpu, lost = await self.burst(max(COUNT_MIN, min(count, COUNT_MAX)))
        took, late = await self.steady()
        cuts = quantiles(took, n=100) if len(took) > 1 else [0.0] * 99
        self.rounds.append(Round(speed, cpu, cuts[49] / 1e6, cuts[98] / 1e6, lost + late))

    def _cpu(self) -> float:
        return sum(process.cpu() for process in self._processes)

    async def stop(self) -> None:
        """End all its processes."""
        await asyncio.gather(*(process.end() for process in self._processes))

    def result(self) -> Round:
        """The median of each figure over the rounds; of the lost all."""
        rounds = self.rounds
        return Round(
            median(it.deliveries_per_s for it in rounds),
            median(it.cpu_us for it in rounds),
            median(it.p50_ms for it in rounds),
            median(it.p99_ms for it in rounds),
            sum(it.lost for it in rounds),
        )


async def compare(
    contenders: Sequence[type[Contender]],
    plan: Plan,
    directory: Path,
    report: Callable[[str], None],
) -> dict[str, Round]:
    """Measure all of them in turns; one that fails is reported and left out."""
    end = monotonic() + plan.seconds_max
    started: list[System] = []
    try:
        systems: list[System] = []
        for contender in contenders:
            if monotonic() > end:
                report(f"left out, {contender.name}: no time")
                continue
            system = System(contender, directory / contender.name, plan)
            started.append(system)
            report(f"starting {contender.name}")
            if await _does(system.start(), report):
                systems.append(system)
        for number in range(plan.rounds):
            if number and monotonic() > end:
                report(f"no time for more than {number} rounds")
                break
            report(f"round {number + 1} of {plan.rounds}")
            # Each goes first in its turn: what comes after a heavy one is not always the same.
            turn = number % max(1, len(systems))
            for system in [*systems[turn:], *systems[:turn]]:
                if not await _does(system.round(), report):
                    systems.remove(system)
        return {it.contender.name: it.result() for it in systems if it.rounds}
    finally:
        await asyncio.gather(*(system.stop() for system in started))


async def _does(work: Awaitable[None], report: Callable[[str], None]) -> bool:
    try:
        await work
    except Failed as error:
        report(str(error))
        return False
    return True
