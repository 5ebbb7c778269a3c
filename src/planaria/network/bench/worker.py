"""One process of a system under test: `python -m planaria.network.bench.worker NAME ROLE DIR ...`.

Told what to do in lines of JSON on stdin, answers in lines of JSON on stdout. Ends with its stdin,
so that nothing is left behind whatever happens to the process that started it.
"""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from struct import Struct as Layout
from time import monotonic_ns
from typing import Any

from planaria.network.bench.contender import Contender
from planaria.network.bench.contenders import contender as named
from planaria.network.loop import run

PROBE, BURST, STEADY = 0, 1, 2  # what a payload is for
HEAD = Layout(">BQQ")  # that, its number, and when it was sent
SILENCE_SECONDS = 5.0  # without any message, after which the rest is lost

Answer = dict[str, Any]


def payload(kind: int, number: int, size: int) -> bytes:
    """A message that says when it was sent."""
    return HEAD.pack(kind, number, monotonic_ns()).ljust(size, b".")


class Subscriber:
    """Counts what arrives, and how long it took."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender
        self._kind, self._expected, self._count, self._last = PROBE, 1, 0, 0
        self._latencies: list[int] = []

    async def start(self) -> Answer:
        """Subscribe."""
        await self._contender.subscribe(self._take)
        return {}

    def _take(self, data: bytes) -> None:
        kind = data[0]
        if kind == self._kind:
            self._count += 1
            if kind == STEADY:
                self._latencies.append(monotonic_ns() - HEAD.unpack_from(data)[2])
            elif self._count == self._expected:
                self._last = monotonic_ns()

    async def do(self, order: dict[str, Any]) -> Answer:
        """`expect` so many of a kind; `wait` until they are here, or nothing comes any more."""
        if order["do"] == "expect":
            self._kind = -1  # whatever comes meanwhile is of the phase before
            self._expected, self._count, self._last = order["count"], 0, 0
            self._latencies = []
            self._kind = order["kind"]
            return {}
        seen, silent = -1, monotonic_ns()
        while self._count < self._expected:
            if self._count != seen:
                seen, silent = self._count, monotonic_ns()
            elif monotonic_ns() - silent > order.get("silence", SILENCE_SECONDS) * 1e9:
                break
            await asyncio.sleep(0.02)
        return {"count": self._count, "last": self._last or silent, "latencies": self._latencies}


class Reader(Subscriber):
    """A subscriber that comes late: it subscribes when it is told to."""

    async def start(self) -> Answer:
        """Be ready to subscribe."""
        return {}

    async def do(self, order: dict[str, Any]) -> Answer:
        """`replay`: subscribe, read `count` that were published in bursts before, and leave."""
        await super().do({"do": "expect", "kind": BURST, "count": order["count"]})
        began = monotonic_ns()
        await self._contender.subscribe(self._take)
        answer = await super().do({"do": "wait"})
        await self._contender.leave()
        return {"count": answer["count"], "seconds": (answer["last"] - began) / 1e9}


class Publisher:
    """Publishes what it is told to."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender

    async def start(self) -> Answer:
        """Be ready to publish."""
        return {"address": await self._contender.publisher()}

    async def do(self, order: dict[str, Any]) -> Answer:
        """`probe`: one message; `burst`: as fast as it goes; `steady`: at a rate."""
        count, size = order["count"], order["size"]
        if order["do"] == "burst":
            payloads = [payload(BURST, number, size) for number in range(count)]
            began = monotonic_ns()
            await self._contender.burst(payloads)
            return {"began": began}
        kind = PROBE if order["do"] == "probe" else STEADY
        loop = asyncio.get_running_loop()
        start = loop.time()
        for number in range(count):
            await asyncio.sleep(max(0.0, start + number / order["rate"] - loop.time()))
            await self._contender.one(payload(kind, number, size))
        return {}


class Hub:
    """Whatever stands between publisher and subscribers."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender

    async def start(self) -> Answer:
        """Serve."""
        return {"address": await self._contender.serve()}

    async def do(self, order: dict[str, Any]) -> Answer:
        """It is told nothing."""
        raise ValueError(f"a hub does not know {order['do']!r}")


ROLES: dict[str, Callable[[Contender], Hub | Publisher | Subscriber]] = {
    "hub": Hub,
    "publisher": Publisher,
    "reader": Reader,
    "subscriber": Subscriber,
}


async def main(name: str, role: str, directory: str, address: str, index: str) -> None:
    """Start, then do what stdin says until it ends."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    contender = named(name)(Path(directory), address, int(index))
    actor = ROLES[role](contender)
    ended = asyncio.ensure_future(lines.readline())
    try:
        if not await _before(ended, actor.start(), contender):
            return
        while line := await ended:
            ended = asyncio.ensure_future(lines.readline())
            if not await _before(ended, actor.do(json.loads(line)), contender):
                return
    finally:
        ended.cancel()
        await contender.close()


async def _before(
    ended: "asyncio.Future[bytes]", work: Awaitable[Answer], contender: Contender
) -> bool:
    """Do the work and answer; False if stdin ends before that."""
    task = asyncio.ensure_future(work)
    await asyncio.wait((task, ended), return_when=asyncio.FIRST_COMPLETED)
    if not task.done() and not ended.result():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return False
    sys.stdout.write(json.dumps({**await task, "pids": contender.pids}) + "\n")
    sys.stdout.flush()
    return True


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    run(main(*sys.argv[1:]))
