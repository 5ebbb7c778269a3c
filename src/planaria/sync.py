"""The client for scripts and notebooks: the same, without `async`.

    with planaria.sync.connect("127.0.0.1:7400") as client:
        client.publish("weather/europe", b"mild")
        with client.subscribe("weather/#", since="all") as events:
            for event in events:
                ...

One thread behind the scenes runs the event loop of each client. A loop that ran only during calls
would neither answer its node's beats nor acknowledge publications while a notebook thinks, and
would be taken for dead. Ctrl-C interrupts any call; `with` then ends the client as usual.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, Generic, Self, TypeVar

from planaria.core.node import Notice
from planaria.network.client import client as asynchronous
from planaria.network.client.access import seconds_of
from planaria.network.client.client import Batch, Vector
from planaria.network.client.drafting import packed, wish_of
from planaria.network.client.events import Ack, Event
from planaria.network.client.looping import Loop
from planaria.network.client.places import Since
from planaria.network.client.publishing import Many
from planaria.network.client.subscription import Subscription as AsyncSubscription
from planaria.records.record import Draft

R = TypeVar("R")
T = TypeVar("T", bound=Event | Notice)


class Subscription(Generic[T]):
    """An iterator of events. Made by `Client.subscribe`."""

    def __init__(self, loop: Loop, inner: AsyncSubscription[T]) -> None:
        self._loop, self._inner = loop, inner
        self._turn = Lock()  # of threads that share it

    def __enter__(self) -> Self:
        self._loop.run(self._inner.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self.next()

    def next(self, timeout: float | None = None) -> T:
        """The next event; raises TimeoutError if none comes within `timeout` seconds.

        Whatever interrupts it takes nothing: an event is taken here, in the thread that wants it.
        """
        timeout = _limit(timeout)
        if not self._turn.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError
        try:
            while (event := self._inner.take()) is None:
                if self._loop.ended or not self._loop.run(_within(self._inner.filled, timeout)):
                    raise StopIteration
            return event
        finally:
            self._turn.release()

    def ready(self, timeout: float | None = None) -> None:
        """Wait until whatever is published from now on will come."""
        self._loop.run(_within(self._inner.ready, _limit(timeout)))

    def vector(self) -> dict[str, Any]:
        """How far the application is, in plain values: give it to `since` to go on from there."""
        return self._loop.run(_called(self._inner.vector))

    def close(self) -> None:
        """End it; at the latest its client has."""
        if not self._loop.ended:
            self._loop.run(self._inner.close())


class Pending:
    """An ack that has not come yet. Made by `Client.try_publish`."""

    def __init__(self, loop: Loop, ack: asyncio.Future[Ack]) -> None:
        self._loop, self._ack = loop, ack

    def done(self) -> bool:
        """Has it come, or is it known that it will not?"""
        return self._ack.done()

    def result(self, timeout: float | None = None) -> Ack:
        """Wait for it; raises TimeoutError if it takes longer, and can be asked again.

        What is known stays known when the client is closed.
        """
        timeout = _limit(timeout)
        if self.done():
            return self._ack.result()

        async def wait() -> Ack:
            return await asyncio.shield(self._ack)

        return self._loop.run(_within(wait, timeout))


class Client:
    """A client whose methods wait. Made by `connect`, which has found a node for it."""

    def __init__(self, servers: str | Sequence[str] | None, **options: Any) -> None:
        self._loop = Loop()
        self._ended = False
        self._inner: asynchronous.Client
        try:
            self._inner = self._loop.run(_called(asynchronous.connect, servers, **options))
            self._loop.run(self._inner.__aenter__())
        except BaseException:
            self._loop.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(flush=error is None)

    def close(self, *, flush: bool = True) -> None:
        """End it: all that was published is stored first, unless `flush` is False."""
        if not self._ended:
            self._ended = True
            try:
                self._loop.run(self._inner.close(flush=flush))
            finally:
                self._loop.stop()

    @property
    def server(self) -> str:
        """The address of the node that this client talks to now."""
        return self._inner.server

    def publish(self, topic: str, payload: bytes | str, **options: Any) -> Ack:
        """Publish, and return when it is held; options as of `planaria.Client.publish`."""
        return self._run(self._inner.publish(topic, payload, **options))

    def try_publish(self, topic: str, payload: bytes | str, **options: Any) -> Pending:
        """Publish without waiting; options as of `planaria.Client.try_publish`.

        Raises CapacityExceeded when too much is not acknowledged yet.
        """
        publish = self._inner.try_publish
        return Pending(self._loop, self._run(_called(publish, topic, payload, **options)))

    def publish_many(
        self, topic: str, payloads: Iterable[bytes | str | Draft], **options: Any
    ) -> Ack | None:
        """Publish all of them in order; options as of `planaria.Client.publish_many`.

        They are taken in this thread: those of a subscription of this client may be among them.
        """
        many: Many = self._run(_called(self._inner.many, topic, wish_of(**options)))
        try:
            for drafts in packed(payloads):
                if not self._run(many.put(drafts)):
                    break
        except Exception:
            self._run(many.finish())
            raise
        return self._run(many.finish())

    def subscribe(self, *patterns: str, since: Since = "now", **options: Any) -> Subscription[Any]:
        """Subscribe to topics; options as of `planaria.Client.subscribe`."""
        subscribe = self._inner.subscribe
        inner = self._run(_called(subscribe, *patterns, since=since, **options))
        return Subscription(self._loop, inner)

    def topics(self, pattern: str = "#") -> list[str]:
        """The topics that match a pattern, in order."""
        return self._run(self._inner.topics(pattern))

    def vector(self, topic: str) -> dict[str, Any]:
        """How far a topic can be read, in plain values."""
        return self._run(self._inner.vector(topic))

    def read(
        self, topic: str, after: Vector | None = None, to: Vector | None = None, limit: int = 8192
    ) -> Batch:
        """Read on in a topic, from one vector to another."""
        return self._run(self._inner.read(topic, after, to, limit))

    def status(self) -> dict[str, Any]:
        """How the node is that this client talks to, and whom it knows."""
        return self._run(self._inner.status())

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        return self._loop.run(work)


def connect(servers: str | Sequence[str] | None = None, **options: Any) -> Client:
    """A client of these nodes, for `with` or with a `close` of its own.

    Options as of `planaria.connect`. Raises Unreachable if no node lets it in.
    """
    return Client(servers, **options)


def _limit(timeout: float | None) -> float | None:
    """None is no limit; to locks so is -1, which to a caller is no time at all."""
    return None if timeout is None else seconds_of("timeout", timeout)


async def _called(function: Any, *arguments: Any, **named: Any) -> Any:
    """Call a function that wants a running loop."""
    return function(*arguments, **named)


async def _within(wait: Callable[[], Coroutine[Any, Any, R]], timeout: float | None) -> R:
    """Wait no longer than that; timed where it runs, so that the end of it is not missed."""
    async with asyncio.timeout(timeout):
        return await wait()
