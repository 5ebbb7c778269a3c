"""The demo: starts a network, publishes flights, breaks everything in turn, and judges the end."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

from msgspec import Struct

from planaria.chaos.local import own_network
from planaria.chaos.run import Report, Run
from planaria.core.scenario import parse_schedule
from planaria.demo.aggregate import Aggregate, plain, same
from planaria.demo.flights import bodies
from planaria.demo.screen import Screen
from planaria.demo.seen import Seen
from planaria.demo.story import STORY
from planaria.lab.contest.contest import Contest, Figures
from planaria.network.context import Context

NODES, SUPERVISORS = 12, 2
TOPIC = "flights/nyc"
SEED = 7
FRAME_SECONDS = 0.5
SPARK_SECONDS = 180.0  # for Spark to start, and to count what was published last
BROKER_EVENTS = 40


class Outcome(Struct, frozen=True):
    """How it ended. `spark` says whether its answer is the right one.

    `failed` are the invariants that did not hold because of each fault.
    """

    report: Report
    failed: list[list[str]]
    wrong: list[str]
    spark: bool
    failure: str | None  # why Spark has no answer
    counted: int
    broker: Figures

    @property
    def good(self) -> bool:
        """Nothing lost, not even excusably, nothing twice, all healed, Spark right."""
        return not self.wrong and not self.report.destroyed and self.spark


async def play(stream: TextIO, master: str | None) -> Outcome:
    """All of it."""
    spark = Aggregate(TOPIC, master)
    spark.start()
    try:
        with tempfile.TemporaryDirectory(prefix="planaria-demo-") as named:
            return await _play(stream, spark, Path(named))
    finally:
        await asyncio.to_thread(spark.stop)


async def _play(stream: TextIO, spark: Aggregate, home: Path) -> Outcome:
    async with own_network(home / "net", NODES, SUPERVISORS, None) as target:
        await target.find()
        async with _dashboard(target.context) as address:
            screen = Screen(stream)
            for line in opening(address):
                screen.say(line)
            run = Run(target, TOPIC, SEED, home / "copies", bodies=bodies())
            seen = Seen(run)
            spark.read(home / "net" / "context.toml")
            showing = asyncio.create_task(_show(screen, run, seen, spark))
            try:
                actions = "\n".join(chapter.action for chapter in STORY)
                schedule = parse_schedule(actions, "demo")
                async with run:
                    verdict = await run.alone(schedule, after=_counting(spark))
                right, counted = await _compared(run, spark)
            finally:
                showing.cancel()
                screen.stop()
    broker = await asyncio.to_thread(Contest("star", "busiest", NODES, 1, BROKER_EVENTS, SEED).run)
    failed = [seen.failed(it) for it in run.injections]
    return Outcome(verdict.report, failed, verdict.wrong, right, spark.failure, counted, broker)


def opening(address: str | None) -> list[str]:
    """What somebody who has never seen it should know first."""
    where = [] if address is None else [f"dashboard: {address}", ""]
    return [
        *where,
        f"{NODES} processes on this machine are a network; {SUPERVISORS} of them, "
        "the supervisors, give",
        "the others their places. Flights are published and read all the while, and",
        "Spark keeps the mean delay of each carrier. As soon as it reads, one thing after",
        "the other is broken, and nobody repairs anything. The network has healed when",
        "all nodes were asked, and every invariant holds at every one of them.",
        "",
    ]


async def _counting(spark: Aggregate) -> None:
    """Break nothing before Spark reads: it takes some seconds to start."""
    end = asyncio.get_running_loop().time() + SPARK_SECONDS
    while not spark.answer.rows and spark.failure is None:
        if asyncio.get_running_loop().time() > end:
            return
        await asyncio.sleep(FRAME_SECONDS)


async def _show(screen: Screen, run: Run, seen: Seen, spark: Aggregate) -> None:
    while True:
        seen.look()
        screen.show(run, seen, spark)
        await asyncio.sleep(FRAME_SECONDS)


async def _compared(run: Run, spark: Aggregate) -> tuple[bool, int]:
    """Has Spark the answer that a plain loop over what a subscriber was given has?"""
    given = {it.id: it.payload for it in run.applications.given if it.reader == 0}
    expected = plain(given.values())
    end = asyncio.get_running_loop().time() + SPARK_SECONDS
    while not same(spark.answer, expected):
        if spark.failure is not None or asyncio.get_running_loop().time() > end:
            return False, spark.answer.flights
        await asyncio.sleep(FRAME_SECONDS)
    return True, spark.answer.flights


@asynccontextmanager
async def _dashboard(context: Context) -> AsyncIterator[str | None]:
    """The page that draws it, where what it needs is installed."""
    try:
        from planaria.web import serving
    except ModuleNotFoundError:
        yield None
        return
    async with serving.dashboard(context, "127.0.0.1:0") as address:
        yield address
