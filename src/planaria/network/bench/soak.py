"""A network in use for long: does anything grow that should not?

Eight nodes, a steady publisher whose topic keeps a minute, clients and topics that come and go, and
now and then a node that is killed and started again. Memory, descriptors, threads and the
tables that a status shows are looked at all the while, and judged by what the last third of the
time has more of than the third before it.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic

from msgspec import Struct

import planaria
from planaria.network.bench.killed import connect_first
from planaria.network.context import read_context
from planaria.network.local import LocalNetwork, Started
from planaria.network.memberships import FILE as MEMBERSHIPS
from planaria.network.memberships import NAMED
from planaria.network.survey import Survey, Surveyor

NODES, SUPERVISORS = 8, 2
STEADY = "soak/steady"
TOPICS = 24  # that come and go
RATE = 10  # publications a second
KEEP = "1m"
LOOK_SECONDS = 5.0
COME_SECONDS = 1.0  # between clients that come
STAY_SECONDS = 3.0
KILL_SECONDS = 60.0  # between kills
# What a level may rise by from one third of the time to the next, a share and so much more: the
# collector of garbage and the allocator are never quite at rest.
RISES: dict[str, tuple[float, float]] = {
    "pss": (0.03, 1.0),  # MiB
    "descriptors": (0.05, 3.0),
    "threads": (0.0, 1.0),
    "contacts": (0.05, 4.0),
    "topics": (0.1, 4.0),
    "records": (0.1, 100.0),
    "store": (0.1, 17.0),  # MiB: the log of the database has up to 16 before it is worked in
    "links": (0.0, 2.0),
    "clients": (0.2, 3.0),
}

Figures = dict[str, float]


class Level(Struct, frozen=True):
    """One figure of one node: its medians in the last two thirds of the time, and its slope."""

    node: str
    figure: str
    before: float
    after: float
    per_hour: float

    @property
    def grows(self) -> bool:
        """Is it more than what comes and goes?"""
        share, more = RISES[self.figure]
        return self.after > self.before * (1 + share) + more


class Soak:
    """One run; `looks` are what was seen of each node that nobody killed, and when."""

    def __init__(self, directory: Path, minutes: float, report: Callable[[str], None]) -> None:
        self.seconds, self.report = 60 * minutes, report
        self.looks: dict[str, list[tuple[float, Figures]]] = {}
        self.published = self.visits = self.in_vain = self.kills = 0
        self._numbers = count()
        self._network = LocalNetwork(directory, NODES, SUPERVISORS, 0)
        for child in self._network.children:
            child.directory.mkdir(parents=True)
            (child.directory / MEMBERSHIPS).write_text(json.dumps({STEADY: NAMED}) + "\n")

    async def run(self) -> list[Level]:
        """Do it all, and say how each figure of each node moved."""
        try:
            self._started = await self._network.start()
            self._context = read_context(self._network.context)
            await self._lay_down()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.seconds), asyncio.TaskGroup() as tasks:
                    for work in (self._publish, self._come_and_go, self._kill, self._look):
                        tasks.create_task(work())
        finally:
            await self._network.stop()
        return levels(self.looks)

    async def _lay_down(self) -> None:
        """Have the steady topic keep a minute: then its store is level."""
        words = ["topic", "set", STEADY, "--keep", KEEP, "--context", str(self._network.context)]
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "planaria", *words, stdout=asyncio.subprocess.DEVNULL
        )
        if await done.wait():
            raise RuntimeError("no charter could be laid down")

    async def _publish(self) -> None:
        """As many in each minute however long an acknowledgement takes."""
        async with self._connect(self._started[0]) as client:
            began = monotonic()
            while True:
                await client.publish(STEADY, b"x" * 128)
                self.published += 1
                await asyncio.sleep(began + self.published / RATE - monotonic())

    async def _come_and_go(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._visit(next(self._numbers)))
                await asyncio.sleep(COME_SECONDS)

    async def _visit(self, number: int) -> None:
        """A client comes to some node, reads a topic of its own and the steady one, and goes.

        On a machine so busy that no node answers in time, it is counted and not made up for.
        """
        topic = f"soak/topic/{number % TOPICS}"
        try:
            async with (
                self._connect(self._started[number % NODES]) as client,
                client.subscribe(topic) as mine,
                client.subscribe(STEADY) as steady,
            ):
                await mine.ready()
                await steady.ready()
                await asyncio.sleep(STAY_SECONDS)
        except planaria.Unreachable:
            self.in_vain += 1
        else:
            self.visits += 1

    async def _kill(self) -> None:
        """Kill one of the last half of the nodes, and start it again."""
        half = NODES // 2
        while True:
            await asyncio.sleep(KILL_SECONDS)
            child = self._network.children[half + self.kills % half]
            child.signal(signal.SIGKILL)
            if child.process is not None:
                await child.process.wait()
            await self._network.restart(child)
            self.kills += 1

    async def _look(self) -> None:
        """Look at the nodes that nobody kills; if none answers in time, the next time."""
        began = monotonic()
        async with Surveyor(self._context) as surveyor:
            while True:
                with suppress(planaria.Unreachable):
                    self._note(await surveyor.look(), monotonic() - began)
                self.report(f"{monotonic() - began:.0f} s: {self.said()}")
                await asyncio.sleep(LOOK_SECONDS)

    def _note(self, survey: Survey, seconds: float) -> None:
        statuses = {it.status.name: it.status for it in survey.nodes.values()}
        for one in self._started[: NODES // 2]:
            if (status := statuses.get(one.name)) is not None:
                figures = of_process(one.pid) | {
                    "contacts": status.contacts_total,
                    "topics": status.totals.topics,
                    "records": status.totals.records,
                    "store": status.store.bytes / (1 << 20) if status.store else 0.0,
                    "links": status.links_total,
                    "clients": status.clients,
                }
                self.looks.setdefault(one.name, []).append((seconds, figures))

    def said(self) -> str:
        """How far it is, and what the nodes that nobody kills need."""
        last = [looks[-1][1] for looks in self.looks.values()]
        pss = " ".join(f"{it['pss']:.1f}" for it in last)
        descriptors = " ".join(f"{it['descriptors']:.0f}" for it in last)
        done = f"{self.published} published, {self.visits} visits, {self.kills} kills"
        done += f", {self.in_vain} visits in vain" * (self.in_vain > 0)
        return f"{done}; MiB {pss}; descriptors {descriptors}"

    def _connect(self, first: Started) -> planaria.Client:
        return connect_first(self._context, first, self._started)


def of_process(pid: int) -> Figures:
    """What a process needs: memory (its share of what is shared), descriptors, threads."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    pss = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return {
        "pss": pss / 1024,
        "descriptors": float(len(os.listdir(f"/proc/{pid}/fd"))),
        "threads": float(len(os.listdir(f"/proc/{pid}/task"))),
    }


def levels(looks: Mapping[str, Sequence[tuple[float, Figures]]]) -> list[Level]:
    """How each figure of each node moved in the last two thirds of the time."""
    found = []
    for node, its in looks.items():
        end = its[-1][0]
        second = [it for it in its if end / 3 <= it[0] < 2 * end / 3]
        third = [it for it in its if it[0] >= 2 * end / 3]
        if not second:
            continue
        for figure in RISES:
            before = median(it[figure] for _, it in second)
            after = median(it[figure] for _, it in third)
            per_hour = slope([(time, it[figure]) for time, it in (*second, *third)]) * 3600
            found.append(Level(node, figure, before, after, per_hour))
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line nearest to these points, by least squares."""
    x, y = (sum(it) / len(points) for it in zip(*points, strict=True))
    spread = sum((a - x) ** 2 for a, _ in points)
    return sum((a - x) * (b - y) for a, b in points) / spread if spread else 0.0
