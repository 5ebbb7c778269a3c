"""What survivors see when nodes are killed while a client publishes at a steady rate.

Each survivor's node has a client that reads; the publisher is at a survivor, too. Nothing may be
lost or come twice, and nobody should wait for long: the longest gap between two deliveries at any
of them is measured beside the longest between two publications, which is what a busy machine adds.
"""

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from time import monotonic

from msgspec import Struct

import planaria
from planaria.network.context import Context, read_context
from planaria.network.local import LocalNetwork, Started
from planaria.network.memberships import FILE as MEMBERSHIPS
from planaria.network.memberships import NAMED
from planaria.network.status import Status
from planaria.network.survey import Surveyor

TOPIC = "bench"
NODES, KILLED = 16, 4
RATE = 50  # publications a second
SECONDS = 12.0  # of publishing
KILL_AFTER = 3.0  # seconds of it
PATIENCE_SECONDS = 60.0  # for the last to arrive


class Survived(Struct, frozen=True):
    """What all survivors saw together; gaps in seconds, of deliveries and of publications."""

    published: int
    lost: int
    twice: int
    gap: float
    publisher_gap: float


class Reader:
    """One survivor's client: what came, and when."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.times: list[float] = []

    async def read(self, events: "planaria.Subscription[planaria.Event]") -> None:
        """Note everything that comes."""
        async for batch in events.batches():
            self.times.append(monotonic())
            self.payloads += [event.payload for event in batch]

    def gap(self, until: float) -> float:
        """The longest time without a delivery while something was published."""
        return longest([time for time in self.times if time <= until] + [until])


async def survive(
    directory: Path,
    nodes: int = NODES,
    kill: int = KILLED,
    *,
    supervisor: bool = True,
    seconds: float = SECONDS,
) -> Survived:
    """Start a network, publish, and kill `kill` nodes at once, one of them a supervisor or none."""
    for number in range(1, nodes + 1):
        home = directory / "nodes" / f"n{number}"
        home.mkdir(parents=True)
        (home / MEMBERSHIPS).write_text(json.dumps({TOPIC: NAMED}) + "\n")
    network = LocalNetwork(directory, nodes, 2, 0)
    try:
        started = await network.start()
        context = read_context(network.context)
        async with AsyncExitStack() as stack:
            victims = await _victims(context, started, kill, supervisor=supervisor)
            return await _measured(stack, context, started, victims, seconds)
    finally:
        await network.stop()


async def _measured(
    stack: AsyncExitStack,
    context: Context,
    started: Sequence[Started],
    victims: Sequence[Started],
    seconds: float,
) -> Survived:
    survivors = [it for it in started if it not in victims]
    readers, reading = [], list[asyncio.Task[None]]()
    for one in survivors:
        client = await stack.enter_async_context(connect_first(context, one, survivors))
        events = await stack.enter_async_context(client.subscribe(TOPIC, since="all"))
        await events.ready()
        readers.append(Reader())
        reading.append(asyncio.create_task(readers[-1].read(events)))
    publisher = await stack.enter_async_context(connect_first(context, survivors[2], survivors))
    await publisher.publish(TOPIC, b"0")  # what is slow the first time
    killing = asyncio.create_task(_kill(victims))
    sent = await _publish(publisher, seconds)
    await killing
    published, end = len(sent) + 1, monotonic()
    while any(len(it.payloads) < published for it in readers):
        if monotonic() > end + PATIENCE_SECONDS:
            break
        await asyncio.sleep(0.1)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    return Survived(
        published,
        lost=sum(published - len(set(it.payloads)) for it in readers),
        twice=sum(len(it.payloads) - len(set(it.payloads)) for it in readers),
        gap=max(it.gap(sent[-1]) for it in readers),
        publisher_gap=longest(sent),
    )


async def _victims(
    context: Context, started: Sequence[Started], kill: int, *, supervisor: bool
) -> list[Started]:
    """Whom to kill: the last ones, and if a supervisor, then the one that serves the topic."""
    if not supervisor:
        return list(started[-kill:])
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
    serving = [it.status.name for it in survey.nodes.values() if _served(it.status)]
    first = [one for one in started if one.name in serving][:1]
    return [*first, *started[len(started) - kill + len(first) :]]


def _served(status: Status) -> bool:
    its = status.topics.get(TOPIC)
    return its is not None and its.served


async def _publish(publisher: planaria.Client, seconds: float) -> list[float]:
    """Publish at the rate, whoever has not acknowledged yet; returns when each was given away."""
    sent: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        began = monotonic()
        while monotonic() - began < seconds:
            tasks.create_task(_one(publisher, b"%d" % (len(sent) + 1)))
            sent.append(monotonic())
            await asyncio.sleep(max(0.0, began + len(sent) / RATE - monotonic()))
    return sent


async def _one(publisher: planaria.Client, payload: bytes) -> None:
    await publisher.publish(TOPIC, payload)


async def _kill(victims: Sequence[Started]) -> None:
    await asyncio.sleep(KILL_AFTER)
    for one in victims:
        os.kill(one.pid, signal.SIGKILL)


def connect_first(context: Context, first: Started, nodes: Sequence[Started]) -> planaria.Client:
    """A client of one node, which goes on at the others if that dies."""
    rest = [it.listen for it in nodes if it is not first]
    return planaria.connect([first.listen, *rest], credentials=context.credentials)


def longest(times: Sequence[float]) -> float:
    """The longest time between two of these."""
    return max((after - before for before, after in pairwise(times)), default=0)
