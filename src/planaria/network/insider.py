"""An application that embeds a node, in the overlays beside `ring`: a client without a link.

It is told at once what other clients are told over theirs.
"""

import asyncio
from itertools import count

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.network.client.events import Ack
from planaria.network.client.messages import (
    ClientMessage,
    Failed,
    Passing,
    Put,
    PutNew,
    Stored,
    Tail,
    Tailing,
)
from planaria.network.client.overlays import check_overlay
from planaria.network.embedded import Subscription, stopped
from planaria.network.gate.others import Others
from planaria.network.gate.session import Session
from planaria.records.batches import Slice
from planaria.records.record import Draft, decode

NOW = 1  # a floor: none of these overlays knows what was before


class Insider(Session):
    """The application as a client of its own node; of a session it has all but the connection."""

    obeys = False  # it names its overlays, and asks no charter

    def __init__(self, publisher: NodeId) -> None:
        self._publisher = publisher
        self.closed = False
        self.open = self.put_bytes = 0
        self.published = {}
        self._others: Others | None = None  # from the node's start on
        self._numbers = count(1)
        self._subscriptions: dict[int, tuple[Subscription, str, str | None]] = {}
        self._asked: dict[int, asyncio.Future[Stored]] = {}

    @property
    def publisher(self) -> NodeId:
        """The node itself."""
        return self._publisher

    @property
    def name(self) -> str | None:
        """None: rights are for those who come over a link."""
        return None

    # What the application asks

    def subscribe(self, pattern: str, overlay: str, where: str | None) -> Subscription:
        """Read what passes here on topics that match; raises UsageError if that cannot be."""
        check_overlay(overlay)
        number = next(self._numbers)
        made = Subscription(pattern, lambda _: self._stop(number))
        self._subscriptions[number] = (made, overlay, where)
        if self._others is not None:
            self._follow(number)
        return made

    async def publish(self, topic: str, drafts: list[Draft], overlay: str, token: bytes) -> Ack:
        """Publish all of them; returns when they are on their way.

        Raises CapacityExceeded if that cannot be now, of some of them perhaps: with the same
        `token` nothing is delivered twice.
        """
        check_overlay(overlay)
        others = self._serving(overlay)
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            message = PutNew(number, topic, token, drafts, durable=others.has_disk)
            others.put(self, message, overlay)
            stored = await self._asked[number]
        finally:
            del self._asked[number]
        where = (stored.publisher, stored.incarnation, stored.first)
        return Ack(topic, *where, stored.count, stored.copies, stored.members)

    def start(self, others: Others | None) -> None:
        """The node runs: follow what was subscribed to before."""
        self._others = others
        for number in [*self._subscriptions]:
            self._follow(number)

    def close(self) -> None:
        """The node stops: nothing more comes, and whoever waits is told so."""
        self.closed = True
        for subscription, _, _ in [*self._subscriptions.values()]:
            subscription.close()
        for future in self._asked.values():
            if not future.done():
                future.set_exception(stopped())

    def _serving(self, overlay: str) -> Others:
        if self._others is None or self.closed:
            raise stopped()
        if not self._others.serves(overlay):
            raise UsageError(f"this node takes no part in {overlay}: ask another (--overlay)")
        return self._others

    def _follow(self, number: int) -> None:
        subscription, overlay, where = self._subscriptions[number]
        try:
            others = self._serving(overlay)
            tail = Tail(number, subscription.pattern, {}, NOW, where)
            others.follow(self, tail, subscription.pattern, overlay)
        except BaseException:
            del self._subscriptions[number]
            raise

    def _stop(self, number: int) -> None:
        if self._subscriptions.pop(number, None) is not None and self._others is not None:
            self._others.stop(self, number)

    # What the node tells

    def check_turn(self, message: Put | PutNew) -> None:
        """Who is told that something is refused offers it again, or not, as it likes."""

    def answer(self, message: ClientMessage) -> None:
        """A request is answered."""
        future = self._asked.get(message.request)
        if isinstance(message, Tailing) and message.request in self._subscriptions:
            self._subscriptions[message.request][0].joined()
        elif future is not None and not future.done():
            if isinstance(message, Stored):
                future.set_result(message)
            elif isinstance(message, Failed):
                kind = CapacityExceeded if message.code == "full" else UsageError
                future.set_exception(kind(message.reason))

    def send(self, message: ClientMessage) -> bool:
        """Something passes; there is always room, up to the subscription's own bound."""
        if isinstance(message, Passing) and message.request in self._subscriptions:
            slices = [Slice(decode(it.record), it.lo, it.hi, it.late) for it in message.pieces]
            subscription = self._subscriptions[message.request][0]
            subscription.take(message.topic, slices, nameless=message.anonymous)
        return True
