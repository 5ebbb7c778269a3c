"""Questions of a client to whichever node it has: asked again at the next one until answered.

Every question may be asked twice without harm: a record is the same bytes, a token is remembered,
and the rest changes nothing.
"""

import asyncio
from bisect import insort
from collections import deque
from itertools import count
from typing import Any, TypeVar

from planaria.core.errors import PlanariaError, UsageError
from planaria.core.message import Message
from planaria.network.client.access import Access
from planaria.network.client.channel import CODEC, Channel
from planaria.network.client.errors import Unreachable
from planaria.network.client.messages import AskBatch, ClientMessage, Failed, Put, PutNew
from planaria.network.client.servers import Servers
from planaria.network.connection import Connection
from planaria.network.link import Task

ANSWER_SECONDS = (
    30.0  # without any answer, after which the node is left: joining a topic takes time
)
FULL_SECONDS = 0.25  # before what a full node refused is offered again; doubles up to
FULL_SECONDS_MAX = 4.0

Answer = TypeVar("Answer", bound=ClientMessage)


class Request:
    """One question that is not answered yet."""

    __slots__ = ("answer", "asked", "body", "message", "since")

    def __init__(self, message: ClientMessage, since: float) -> None:
        """Raises UsageError if it cannot be sent: then nothing else waits behind it."""
        self.message, self.since = message, since
        try:
            self.body = CODEC.encode(message)
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"{type(message).__name__} cannot be sent: {error}") from None
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked = since

    @property
    def bulk(self) -> bool:
        """Does it carry publications?"""
        return isinstance(self.message, Put | PutNew | AskBatch)

    @property
    def patient(self) -> bool:
        """May the answer take as long as it likes?"""
        return getattr(self.message, "strict", False)


class Requests:
    """The questions over one channel, in the order in which they were asked."""

    def __init__(self, servers: Servers, access: Access) -> None:
        self.channel = Channel(servers, access, self)
        self.error: PlanariaError | None = None
        self._patience = access.patience
        self._numbers = count(1)
        self._open: dict[int, Request] = {}
        self._unsent: tuple[deque[int], deque[int]] = (deque(), deque())  # control, bulk
        self._answered = 0.0  # when the node last answered anything
        self._pause = FULL_SECONDS
        self._timer: asyncio.TimerHandle | None = None  # while the node is full

    def __len__(self) -> int:
        return len(self._open)

    async def ask(self, kind: type[ClientMessage], answer: type[Answer], *fields: Any) -> Answer:
        """Ask, and wait for an answer of this class.

        Raises UsageError if a node says that it cannot be, Unreachable if there is none to ask.
        """
        found = await self.begin(kind, *fields)
        if not isinstance(found, answer):
            raise UsageError(f"the node answered {type(found).__name__}: is it of a later version?")
        return found

    def begin(self, kind: type[ClientMessage], *fields: Any) -> asyncio.Future[Any]:
        """Ask; the answer can be awaited."""
        self.revive()
        number = next(self._numbers)
        request = Request(kind(number, *fields), asyncio.get_running_loop().time())
        self._open[number] = request
        request.answer.add_done_callback(lambda _: self._open.pop(number, None))
        self._unsent[request.bulk].append(number)
        self._send()
        return request.answer

    def revive(self) -> None:
        """Look for nodes again if there were none when they were last asked.

        Raises UsageError if that cannot be: this client is closed, or was never entered.
        """
        if self.error is not None and not isinstance(self.error, Unreachable):
            raise self.error
        if not self.channel.begun:
            raise UsageError("not connected: use `async with planaria.connect(...) as client`")
        self.error = None
        self.channel.look_again()

    async def settled(self) -> None:
        """Wait until all that was asked is answered, or nothing more will be."""
        while self._open:
            await asyncio.wait([request.answer for request in self._open.values()])

    async def close(self, error: PlanariaError) -> None:
        """Hang up; whoever still waits is told `error`."""
        self.failed(error)
        await self.channel.close()

    # What the channel tells

    def opened(self) -> None:
        """Ask all that is unanswered, from the first on."""
        self._answered = asyncio.get_running_loop().time()
        self._no_longer_full()
        self._unsent = (deque(), deque())
        for number, request in self._open.items():
            self._unsent[request.bulk].append(number)
        self._send()

    def received(self, message: Message, connection: Connection, task: Task) -> None:
        """An answer, unless it came before already."""
        connection.finish(task)
        now = self._answered = asyncio.get_running_loop().time()
        request = self._open.get(message.request) if isinstance(message, ClientMessage) else None
        if request is None or request.answer.done():
            return
        if not isinstance(message, Failed):
            self._pause = FULL_SECONDS
            request.answer.set_result(message)
        elif message.code == "full":
            self._hold(request)
        elif message.code == "elsewhere":
            if now - request.since > self._patience:
                reasons = dict.fromkeys(self.channel.servers, message.reason)
                request.answer.set_exception(Unreachable(reasons))
            else:
                self.channel.leave(message.reason)
        else:
            request.answer.set_exception(UsageError(message.reason))

    def room(self) -> None:
        """There is room again."""
        self._send()

    def lost(self, reason: str) -> None:
        """All is asked again as soon as there is another node."""
        for unsent in self._unsent:
            unsent.clear()

    def failed(self, error: PlanariaError) -> None:
        """There is nobody to ask."""
        self.error = self.error or error
        self._no_longer_full()
        for request in list(self._open.values()):
            if not request.answer.done():
                request.answer.set_exception(self.error)

    def tick(self, now: float) -> None:
        """Leave a node that is alive and answers nothing."""
        oldest = next((it for it in self._open.values() if not it.patient), None)
        if oldest and now - max(oldest.asked, self._answered) > ANSWER_SECONDS:
            self.channel.leave(f"no answer for {ANSWER_SECONDS:.0f} s")

    def _hold(self, request: Request) -> None:
        """Offer it again after a pause, in its turn: what was published first is stored first."""
        unsent = self._unsent[request.bulk]
        number = request.message.request
        insort(unsent, number)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._pause, self._resume)
            self._pause = min(FULL_SECONDS_MAX, 2 * self._pause)

    def _resume(self) -> None:
        self._timer = None
        self._send()

    def _no_longer_full(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send(self) -> None:
        now = asyncio.get_running_loop().time()
        for bulk, unsent in enumerate(self._unsent):
            while unsent and not (bulk and self._timer):
                request = self._open.get(unsent[0])
                if request is not None:
                    if not self.channel.send_encoded(
                        request.body, request.message, bulk=request.bulk
                    ):
                        break
                    request.asked = now
                unsent.popleft()
