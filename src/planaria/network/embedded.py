"""What an application that embeds a node uses: publish, and read what the node delivers.

No sockets in between. A lone publication leaves with the turn of the event loop, under load those
of a millisecond leave in one record. A publisher waits for its disk and for its links, and a reader
that is too far behind is told so.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Self

from planaria.core.errors import CapacityExceeded, PlanariaError, UsageError
from planaria.core.node import (
    Deliver,
    Effect,
    Joined,
    Notice,
    Publish,
    Published,
    PublishMany,
    Subscribe,
)
from planaria.core.topics import check_filter, check_topic, covers, matches
from planaria.network.client.events import Ack, Event, anonymous
from planaria.network.client.parcels import Tokens
from planaria.network.host import Commit, Host
from planaria.network.pace import room
from planaria.protocols.publications.deliveries import Deliveries, split_position
from planaria.records.batches import Slice
from planaria.records.packing import LINGER_MICROSECONDS, PACKED_PUBLICATIONS, weigh
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft

BEHIND_BYTES_MAX = 256 << 20  # of records that a reader has not taken yet


class Subscription:
    """Batches of events as the node delivers them: `async for batch in subscription`.

    Exactly what the node delivers while this is open: open it before the node starts to miss
    nothing that was stored and not delivered. Closing it does not leave the topic.
    """

    def __init__(self, pattern: str, close: Callable[["Subscription"], None]) -> None:
        self.pattern = check_filter(pattern)
        self._close = close
        self._slices: deque[tuple[str, Slice, bool]] = deque()
        self._bytes = 0
        self._tokens = Tokens()
        self._coming: asyncio.Future[None] | None = None  # what its reader waits for
        self._known = asyncio.Event()  # whether it was joined, or closed before
        self._joined = False
        self._failed: CapacityExceeded | None = None
        self._closed = False

    async def ready(self) -> None:
        """Return when the node is a member of all topics that match.

        Raises UsageError if this is closed before, by its owner or with the node.
        """
        await self._known.wait()
        if not self._joined:
            raise UsageError(f"subscription to {self.pattern!r}: closed before it was ready")

    def close(self) -> None:
        """Take no more; what is queued can still be read."""
        self._closed = True
        self._changed()
        self._known.set()
        self._close(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Event]:
        """All that has come since the last batch; raises CapacityExceeded if that was too much."""
        events: list[Event] = []
        while not events:
            while not self._slices:
                if self._failed is not None:
                    raise self._failed
                if self._closed:
                    raise StopAsyncIteration
                await self._come()
            slices, self._slices, self._bytes = self._slices, deque(), 0
            for topic, part, nameless in slices:
                some = self._tokens.events(topic, part.record, part.lo, part.hi, late=part.late)
                events += map(anonymous, some) if nameless else some
        return events

    async def _come(self) -> None:
        """Return when something has changed; for one reader: two would share what comes."""
        if self._coming is not None:
            raise UsageError(f"subscription to {self.pattern!r}: another task reads it already")
        self._coming = asyncio.get_running_loop().create_future()
        try:
            await self._coming
        finally:
            self._coming = None

    def _changed(self) -> None:
        coming = self._coming
        if coming is not None and not coming.done():
            coming.set_result(None)

    # What the node tells

    def take(self, topic: str, slices: Sequence[Slice], *, nameless: bool = False) -> None:
        """Queue what was delivered, up to the bound; `nameless`: its records name nobody."""
        for part in slices:
            self._bytes += len(part.record.data)
        if self._bytes > BEHIND_BYTES_MAX:
            self._failed = self._failed or CapacityExceeded(
                f"subscription to {self.pattern!r}: {BEHIND_BYTES_MAX} bytes behind; read faster, "
                f"or read from the store as a client does"
            )
        if self._failed is None:
            for part in slices:
                self._slices.append((topic, part, nameless))
        self._changed()

    def joined(self) -> None:
        """The pattern is in force."""
        self._joined = True
        self._known.set()


Waiting = tuple[Sequence[Publish], asyncio.Future[Ack]]
Acknowledged = tuple[asyncio.Future[Ack], Ack]


class Publishing:
    """Publications on their way into the node, and who waits for them."""

    def __init__(self, host: Host, commit: Commit | None, join: Callable[[str], None]) -> None:
        self._host, self._commit, self._join = host, commit, join
        self._topic = ""  # the last one that was asked for
        self._waiting: dict[str, list[Waiting]] = {}
        self._count = 0
        self._flushing: asyncio.Handle | None = None
        self._flushed = 0.0  # when
        self._committing: dict[int, Sequence[Acknowledged]] = {}  # batches, by their number
        self._batches = 0
        self._closed = False
        self._published: list[Published] = []
        self._refused: dict[str, PlanariaError] = {}

    async def publish(self, topic: str, *commands: Publish) -> Ack:
        """Publish and return when it is on this node's disk and on its way to all members.

        Of several the ack is that of the first. Raises UsageError if one can never be published,
        CapacityExceeded if they cannot be now; then none is. Raises UsageError if the node stops;
        then they may be published all the same.
        """
        if topic != self._topic:
            self._topic = check_topic(topic)
        for command in commands:
            plain = command.key is None and not command.headers
            if not plain or len(command.payload) > PAYLOAD_BYTES_MAX:
                headers = [(name, value.encode()) for name, value in command.headers.items()]
                weigh(Draft(command.payload, command.key, tuple(headers)))
        await room(self._host.links.values())
        if self._closed:
            raise stopped()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Ack] = loop.create_future()
        self._waiting.setdefault(topic, []).append((commands, future))
        self._count += len(commands)
        if self._count >= PACKED_PUBLICATIONS:
            self._flush()
            await asyncio.sleep(0)  # a publisher that never waits must not keep others from it
        elif self._flushing is None:
            linger = self._flushed + LINGER_MICROSECONDS / 1e6 - monotonic()
            later = loop.call_soon if linger <= 0 else partial(loop.call_later, linger)
            self._flushing = later(self._flush)
        return await future

    def on_effect(self, effect: Effect) -> None:
        """The node answers while it is given commands."""
        if isinstance(effect, Published):
            self._published.append(effect)
        elif isinstance(effect, Notice) and effect.kind == "full":
            self._refused[effect.topic] = CapacityExceeded(str(effect.detail.get("reason")))

    def _flush(self) -> None:
        """Give the node all that waits, as few records as possible."""
        if self._flushing is not None:
            self._flushing.cancel()
        waiting, self._waiting, self._count, self._flushing = self._waiting, {}, 0, None
        self._flushed = monotonic()
        if not self._committing:
            self._refused = {}  # of records of others, perhaps
        done: list[Acknowledged] = []
        for topic, commands in waiting.items():
            wanted = [one for one in commands if not one[1].cancelled()]
            done += self._flush_topic(topic, wanted) if wanted else []
        loop = asyncio.get_running_loop()
        self._batches += 1
        number = self._batches
        self._committing[number] = done
        if self._commit is None:
            self._resolve(number, None)
        else:
            # After the node's own commit, and so after what it says when its store is full.
            self._commit(lambda error: loop.call_soon_threadsafe(self._resolve, number, error))

    def refuse(self) -> None:
        """The node is about to stop: take nothing more; what was taken is published now."""
        self._closed = True
        if self._waiting:
            self._flush()

    def close(self) -> None:
        """The node stops: tell all who wait, as nobody else will."""
        self._closed = True
        if self._flushing is not None:
            self._flushing.cancel()
        waiting = [future for many in self._waiting.values() for _, future in many]
        waiting += [future for done in self._committing.values() for future, _ in done]
        for future in waiting:
            if not future.done():
                future.set_exception(stopped())

    def _flush_topic(self, topic: str, commands: Sequence[Waiting]) -> list[Acknowledged]:
        """Publish on one topic; what the node refuses it refuses whole."""
        self._published = []
        try:
            self._join(topic)
            self._host.command(PublishMany(topic, [one for many, _ in commands for one in many]))
        except (UsageError, CapacityExceeded) as error:
            for _, future in commands:
                future.set_exception(error)
            return []
        (published,) = self._published
        return list(_acks(published, commands, on_disk=self._commit is not None))

    def _resolve(self, number: int, error: Exception | None) -> None:
        """Tell who waits for a batch what became of it."""
        for future, ack in self._committing.pop(number):
            refused = self._refused.get(ack.topic) or error
            if future.done():
                continue
            if refused is None:
                future.set_result(ack)
            else:
                future.set_exception(CapacityExceeded(f"not stored: {refused}"))


class Embedded:
    """The embedding application's side of one node."""

    def __init__(self, host: Host, commit: Commit | None, is_member: Callable[[str], bool]) -> None:
        self._host, self._is_member = host, is_member
        self._subscriptions: list[Subscription] = []
        self._publishing = Publishing(host, commit, self._join)
        self._running = self._closed = False

    def subscribe(self, pattern: str) -> Subscription:
        """Read all that this node delivers on topics that match; the node joins them."""
        if self._closed:
            raise stopped()
        made = Subscription(pattern, self._subscriptions_remove)
        self._subscriptions.append(made)
        if self._running:
            self._command_subscribe(made)
        return made

    async def publish(self, topic: str, *commands: Publish) -> Ack:
        """Publish; returns when it is on this node's disk. The node joins the topic."""
        return await self._publishing.publish(topic, *commands)

    def wants(self, pattern: str) -> bool:
        """Does the application read all topics of a pattern?"""
        return any(covers(one.pattern, pattern) for one in self._subscriptions)

    def check_new(self) -> None:
        """Raise UsageError if the node has started before."""
        if self._running or self._closed:
            raise UsageError("a LiveNode starts once: make another one of the same directory")

    def start(self) -> None:
        """The node runs: join what was subscribed to before."""
        self._running = True
        for one in list(self._subscriptions):
            self._command_subscribe(one)

    def on_effect(self, effect: Effect) -> None:
        """Hand an effect to whoever it is for."""
        if isinstance(effect, Joined):
            for one in self._subscriptions:
                if one.pattern == effect.pattern:
                    one.joined()
        else:
            self._publishing.on_effect(effect)

    def refuse(self) -> None:
        """The node is about to stop: it publishes nothing more."""
        self._publishing.refuse()

    def close(self) -> None:
        """The node stops: nothing more comes."""
        self._closed = True
        self._publishing.close()
        for one in list(self._subscriptions):
            one.close()

    def on_deliver(self, effect: Deliver) -> None:
        """Hand publications to the subscriptions that want them."""
        for one in self._subscriptions:
            if matches(one.pattern, effect.topic):
                assert isinstance(effect.publications, Deliveries)
                one.take(effect.topic, effect.publications.slices)

    def _subscriptions_remove(self, one: Subscription) -> None:
        if one in self._subscriptions:
            self._subscriptions.remove(one)

    def _command_subscribe(self, one: Subscription) -> None:
        try:
            self._host.command(Subscribe(one.pattern, ordered=True))
        except BaseException:
            self._subscriptions_remove(one)
            raise

    def _join(self, topic: str) -> None:
        if not self._is_member(topic):
            self._host.command(Subscribe(topic))


def stopped() -> UsageError:
    """What whoever still asks is told."""
    return UsageError("this node has stopped: publish before that, or through another node")


def _acks(
    published: Published, commands: Sequence[Waiting], *, on_disk: bool
) -> Iterator[Acknowledged]:
    """The numbers of what was published at once are consecutive. This node has the only copy."""
    publisher, incarnation, sequence = split_position(published.id)
    for many, future in commands:
        where = (published.topic, publisher, incarnation, sequence)
        yield future, Ack(*where, len(many), int(on_disk), 1)
        sequence += len(many)
