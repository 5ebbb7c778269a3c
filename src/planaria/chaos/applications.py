"""Applications of a network under chaos: clients that publish and read all the time.

Each knows all nodes and goes on at another when its node dies. What they asked and were given is
entered into the same book as a simulation's.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from msgspec import Struct

from planaria.chaos.target import Target
from planaria.core.book import Book
from planaria.core.errors import PlanariaError
from planaria.core.node import Deliver, Delivery, Joined, Publish, Published, Subscribe
from planaria.network.client.client import Client
from planaria.network.client.events import Event
from planaria.network.client.servers import Servers
from planaria.network.client.subscription import Subscription

PAUSE_SECONDS = 0.1  # between two publications of one application
PATIENCE_SECONDS = 600.0  # for which a client looks for a node: longer than any fault


class Asked(Struct):
    """A publication: when it was asked for and acknowledged, and as what."""

    number: int
    payload: bytes
    publisher: int
    asked: float
    acknowledged: float | None = None
    id: bytes = b""


class Given(Struct, frozen=True):
    """What a subscriber was given, and when."""

    time: float
    reader: int
    id: bytes
    payload: bytes


class Applications:
    """Some that publish on one topic, and some that read it from its beginning."""

    def __init__(
        self, target: Target, topic: str, seed: int, publishers: int = 2, readers: int = 3
    ) -> None:
        self.target, self.topic, self.seed = target, topic, seed
        self.publishers, self.readers = publishers, readers
        self.asked: list[Asked] = []
        self.given: list[Given] = []
        self.failures: list[str] = []  # why an application had to begin anew
        self._going = asyncio.Event()
        self._started = 0.0
        self._stack = AsyncExitStack()
        self._publishing: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []

    @property
    def time(self) -> float:
        """Intervals since the run began."""
        now = asyncio.get_running_loop().time()
        return (now - self._started) / self.target.interval

    async def __aenter__(self) -> Self:
        self._started = asyncio.get_running_loop().time()
        self._going.set()
        for number in range(self.readers):
            client = await self._stack.enter_async_context(self._client(number))
            events = client.subscribe(self.topic, since="all")
            await self._stack.enter_async_context(events)
            await events.ready()
            self._reading.append(asyncio.create_task(self._read(number, events)))
        for number in range(self.publishers):
            self._publishing.append(asyncio.create_task(self._publish(number)))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end([*self._publishing, *self._reading])
        await self._stack.aclose()

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def pause(self) -> None:
        """Begin no publication."""
        self._going.clear()

    def go_on(self) -> None:
        """Publish again."""
        self._going.set()

    @property
    def acknowledged(self) -> list[Asked]:
        """What was acknowledged so far."""
        return [one for one in self.asked if one.acknowledged is not None]

    def _client(self, number: int) -> Client:
        servers = Servers(tuple(self.target.servers(number)))
        return Client(servers, self.target.access._replace(patience=PATIENCE_SECONDS))

    async def _publish(self, number: int) -> None:
        """Publish one after the other; a client that gives up is replaced by another."""
        while True:
            try:
                async with self._client(self.readers + number) as client:
                    while True:
                        await self._going.wait()
                        await self._publish_one(number, client)
                        await asyncio.sleep(PAUSE_SECONDS)
            except PlanariaError as error:
                self.failures.append(f"publisher {number}: {error}")
                await asyncio.sleep(PAUSE_SECONDS)

    async def _publish_one(self, number: int, client: Client) -> None:
        payload = f"{self.seed} {number} {len(self.asked)}".encode()
        one = Asked(len(self.asked), payload, number, self.time)
        self.asked.append(one)
        ack = await client.publish(self.topic, payload)
        one.id, one.acknowledged = ack.id, self.time

    async def _read(self, reader: int, events: Subscription[Event]) -> None:
        async for batch in events.batches():
            time = self.time
            self.given += [Given(time, reader, it.id, it.payload) for it in batch]

    # The book

    def book(self, within: float) -> Book:
        """Everything so far. A body other than the one that was published is none."""
        book = Book(lambda wish, one: wish.pattern == one.topic, within=within, history=True)
        for reader in range(self.readers):
            book.subscribed(self.publishers + reader, Subscribe(self.topic))
            book.effect(0.0, self.publishers + reader, Joined(self.topic))
        bodies: dict[bytes, bytes] = {}
        for one in self.acknowledged:
            bodies[one.id] = one.payload
            book.command(one.asked, one.publisher, Publish(self.topic, one.payload))
            book.effect(one.asked, one.publisher, Published(self.topic, one.id))
        unacknowledged = {one.payload for one in self.asked if one.acknowledged is None}
        for it in self.given:
            if it.payload in unacknowledged:
                continue  # its publisher never heard that it was stored: nobody is owed it
            id = it.id if bodies.get(it.id, it.payload) == it.payload else it.id + it.payload
            delivery = Delivery(id, it.payload)
            book.effect(it.time, self.publishers + it.reader, Deliver(self.topic, (delivery,)))
        return book
