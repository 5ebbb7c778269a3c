"""Applications of a network under chaos: clients that publish and read all the time.

Some know all nodes and go on at another when theirs dies; for each node there is one that knows no
other, so that every node is a member, and waits until it is back. What they asked and were given
is entered into the same book as a simulation's.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import count
from math import inf
from typing import Any, Self

from msgspec import Struct

from planaria.chaos.target import Target
from planaria.core.book import Book
from planaria.core.errors import PlanariaError
from planaria.core.node import Deliver, Delivery, Joined, Notice, Publish, Published, Subscribe
from planaria.network.client.client import Client
from planaria.network.client.events import Event
from planaria.network.client.overlays import RING
from planaria.network.client.servers import Servers
from planaria.network.client.subscription import Subscription

PUBLISHERS, ROAMING = 2, 2
PAUSE_SECONDS = 0.1  # between two publications of one application
UNDER_WAY_MAX = 32  # publications of one application that are not acknowledged yet
HOLDING = "mobile"  # keeps no history, but what it acknowledged until others have it
PATIENCE_SECONDS = 600.0  # for which a client looks for a node: longer than any fault

log = logging.getLogger("planaria.chaos")


class Asked(Struct):
    """A publication: when it was asked for and acknowledged, and as what."""

    number: int
    payload: bytes
    publisher: int
    asked: float
    acknowledged: float | None = None
    id: bytes = b""
    copies: int = 0  # nodes that held it when it was acknowledged
    by: str = ""  # the one that acknowledged it, in `mobile`
    refused: tuple[float, str] | None = None  # when, and why: it will not be acknowledged


class Given(Struct, frozen=True):
    """What a subscriber was given, and when."""

    time: float
    reader: int
    id: bytes
    payload: bytes


class Away(Struct):
    """From when to when a reader that knows all nodes had none, in intervals."""

    reader: int
    since: float
    until: float = inf


class Applications:
    """Some that publish on one topic, and some that read it from its beginning.

    They publish `bodies`, no two of which are equal; without any, words of their own.
    """

    def __init__(
        self,
        target: Target,
        topic: str,
        seed: int,
        bodies: Iterator[bytes] | None = None,
        overlay: str = RING,
    ) -> None:
        self.target, self.topic, self.seed, self.overlay = target, topic, seed, overlay
        self._bodies = bodies or (b'{"run": %d, "n": %d}' % (seed, number) for number in count())
        self.asked: list[Asked] = []
        self.given: list[Given] = []
        self.failures: list[str] = []  # applications that ended
        self.had: dict[int, set[bytes]] = {}  # by reader
        self.away: list[Away] = []
        self.earlier: frozenset[bytes] = frozenset()  # what the topic held before the run
        self._going = asyncio.Event()
        self._started = 0.0
        self._stack = AsyncExitStack()
        self._working: list[asyncio.Task[None]] = []

    @property
    def time(self) -> float:
        """Intervals since the run began."""
        now = asyncio.get_running_loop().time()
        return (now - self._started) / self.target.interval

    def when(self, moment: float) -> float:
        """The same for a moment of the loop's clock."""
        return (moment - self._started) / self.target.interval

    async def __aenter__(self) -> Self:
        self._started = asyncio.get_running_loop().time()
        self._going.set()
        addresses = [self.target.servers(number) for number in range(ROAMING)]
        addresses += [[member.address] for member in self.target.members.values()]
        for number, servers in enumerate(addresses):
            client = await self._stack.enter_async_context(self._client(servers))
            since = "all" if self.overlay == RING else "now"  # others keep no history
            events = client.subscribe(
                self.topic, since=since, overlay=self.overlay, notices=self.overlay == HOLDING
            )
            await self._stack.enter_async_context(events)
            await events.ready()
            work = self._reporting(f"reader {number}", self._read(number, events))
            self._working.append(asyncio.create_task(work))
        for number in range(PUBLISHERS):
            work = self._reporting(f"publisher {number}", self._publish(number))
            self._working.append(asyncio.create_task(work))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        await self._stack.aclose()

    async def _reporting(self, who: str, work: Coroutine[Any, Any, None]) -> None:
        """Do what an application does for ever; that it ended is a failure, whatever the reason."""
        try:
            await work
            self.failures.append(f"{who} ended")
        except Exception as error:
            self.failures.append(f"{who} ended: {type(error).__name__}: {error}")
            if not isinstance(error, PlanariaError):
                log.exception("%s ended", who)

    def pause(self) -> None:
        """Begin no publication."""
        self._going.clear()

    def go_on(self) -> None:
        """Publish again."""
        self._going.set()

    async def publish(self, number: int) -> int:
        """Publish so many at once, from one more application; how many are acknowledged."""
        new = [
            Asked(
                len(self.asked) + at,
                b"%d burst %d" % (self.seed, len(self.asked) + at),
                0,
                self.time,
            )
            for at in range(number)
        ]
        self.asked += new
        room = asyncio.Semaphore(0)
        async with self._client(self.target.servers(0)) as client:
            await asyncio.gather(*(self._publish_one(client, one, room) for one in new))
        return sum(one.acknowledged is not None for one in new)

    @property
    def under_way(self) -> int:
        """How many publications may still be acknowledged."""
        return sum(one.acknowledged is None and one.refused is None for one in self.asked)

    @property
    def acknowledged(self) -> list[Asked]:
        """What was acknowledged so far."""
        return [one for one in self.asked if one.acknowledged is not None]

    @property
    def readers(self) -> list[int]:
        """Those who are owed something: not who knows a dead node alone.

        Where there is no history, who knows one node alone is owed nothing: it may be away.
        """
        if self.overlay != RING:
            return [*range(ROAMING)]
        pinned = enumerate(self.target.members.values(), ROAMING)
        return [*range(ROAMING), *(number for number, member in pinned if member.alive)]

    def called(self, node: int) -> str:
        """What people call an application of the book."""
        names = [*(f"roaming {at}" for at in range(ROAMING)), *self.target.members]
        return f"the reader at {names[node - PUBLISHERS]}"

    def _client(self, servers: Sequence[str]) -> Client:
        return Client(
            Servers(tuple(servers)), self.target.access._replace(patience=PATIENCE_SECONDS)
        )

    async def _publish(self, number: int) -> None:
        """Publish again and again, also while others wait to be acknowledged."""
        room = asyncio.Semaphore(UNDER_WAY_MAX)
        async with (
            self._client(self.target.servers(ROAMING + number)) as client,
            asyncio.TaskGroup() as tasks,
        ):
            while True:
                await room.acquire()
                await self._going.wait()
                one = Asked(len(self.asked), next(self._bodies), number, self.time)
                self.asked.append(one)
                tasks.create_task(self._publish_one(client, one, room))
                await asyncio.sleep(PAUSE_SECONDS)

    async def _publish_one(self, client: Client, one: Asked, room: asyncio.Semaphore) -> None:
        try:
            ack = await client.publish(self.topic, one.payload, overlay=self.overlay)
        except PlanariaError as error:
            one.refused = self.time, str(error)
        else:
            one.id, one.copies, one.acknowledged = ack.id, ack.copies, self.time
            if self.overlay == HOLDING:
                one.by = self.target.name_at(client.server)
        finally:
            room.release()

    async def _read(self, reader: int, events: Subscription[Event | Notice]) -> None:
        had = self.had.setdefault(reader, set())
        async for batch in events.batches():
            time = self.time
            for notice in batch:
                if isinstance(notice, Notice) and not notice.topic and reader < ROAMING:
                    self._note(reader, notice.kind, time)
            given = [it for it in batch if isinstance(it, Event)]
            new = [it for it in given if it.id not in self.earlier]
            self.given += [Given(time, reader, it.id, it.payload) for it in new]
            had.update(it.id for it in new)

    def _note(self, reader: int, kind: str, time: float) -> None:
        """A reader has lost its node, or has found another one."""
        if kind == "unstable":
            self.away.append(Away(reader, time))
        elif kind == "stable":
            for one in self.away:
                one.until = min(one.until, time) if one.reader == reader else one.until

    # The book

    def book(self, within: float) -> Book:
        """Everything so far. A body other than the one that was published is none.

        What was asked for and not acknowledged is owed to nobody, but may not come twice either.
        """
        book = Book(lambda wish, one: wish.pattern == one.topic, within=within, history=True)
        for reader in self.readers:
            book.subscribed(PUBLISHERS + reader, Subscribe(self.topic))
            book.effect(0.0, PUBLISHERS + reader, Joined(self.topic))
        bodies: dict[bytes, bytes] = {}

        def enter(one: Asked, id: bytes) -> None:
            bodies[id] = one.payload
            book.command(one.asked, one.publisher, Publish(self.topic, one.payload))
            book.effect(one.asked, one.publisher, Published(self.topic, id))

        for one in self.acknowledged:
            enter(one, one.id)
        unheard = {one.payload: one for one in self.asked if one.acknowledged is None}
        readers = set(self.readers)
        for it in self.given:
            if it.reader not in readers:
                continue
            if it.id not in bodies and it.payload in unheard:
                enter(unheard.pop(it.payload), it.id)
                book.published[it.id].excused = True
            id = it.id if bodies.get(it.id, it.payload) == it.payload else it.id + it.payload
            delivery = Delivery(id, it.payload)
            book.effect(it.time, PUBLISHERS + it.reader, Deliver(self.topic, (delivery,)))
        return book
