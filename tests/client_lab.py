"""What tests of clients share: servers to run against, and ways to read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from planaria.network.client.client import Client, connect
from planaria.network.client.events import Event
from planaria.network.client.subscription import Subscription
from reference_gate import Memory, ReferenceGate


async def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something that must come; how long it takes is not judged."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


def serve(test: Callable[[list[ReferenceGate]], Awaitable[None]], gates: int = 2) -> None:
    """Run a test against so many servers that all know the same."""

    async def main() -> None:
        memory = Memory()
        served = [ReferenceGate(memory) for _ in range(gates)]
        try:
            for gate in served:
                await gate.start()
            async with asyncio.timeout(60):
                await test(served)
        finally:
            for gate in served:
                await gate.stop()

    asyncio.run(main())


def client_of(*gates: ReferenceGate, **options: Any) -> Client:
    return connect([gate.address for gate in gates], insecure=True, **options)


async def payloads(events: Subscription[Event], count: int) -> list[bytes]:
    return [(await anext(events)).payload for _ in range(count)]


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


async def first(events: Subscription[Event], count: int) -> AsyncIterator[Event]:
    async with events:
        for _ in range(count):
            yield await anext(events)


def in_order(events: list[Event]) -> bool:
    """Do the numbers of each stream of each topic ascend from 0 without a hole?"""
    streams: dict[tuple[str, int | None, bytes], list[int | None]] = {}
    for event in events:
        name = (event.topic, event.publisher, event.incarnation)
        streams.setdefault(name, []).append(event.sequence)
    return all(them == list(range(len(them))) for them in streams.values())


class Yesteryear(datetime):
    """A clock that is two years slow."""

    @classmethod
    def now(cls, tz: Any = UTC) -> Any:
        return datetime.now(tz) - timedelta(days=730)
