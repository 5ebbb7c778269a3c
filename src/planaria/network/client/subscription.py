"""A subscription: events of all topics that match, each once, in their publishers' order.

It has a connection of its own, so that one slow reader delays no other. What its application has
not taken is not acknowledged: the node then waits with a cursor, not with a queue. How far it is
stands in its places alone; at another node it goes on from there.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Self

from planaria.core.errors import PlanariaError, UsageError
from planaria.core.message import Message
from planaria.core.node import Notice
from planaria.network.client.access import Access
from planaria.network.client.channel import Channel
from planaria.network.client.distrust import Distrust
from planaria.network.client.errors import Unreachable
from planaria.network.client.events import Event
from planaria.network.client.iterating import Iterating, T
from planaria.network.client.lacks import Lacking, expired, gap
from planaria.network.client.messages import (
    ClientMessage,
    Failed,
    Passing,
    Pieces,
    Resolve,
    Resolved,
    Stop,
    Tail,
    Tailing,
    Told,
    Vectors,
    in_parts,
    to_wire,
)
from planaria.network.client.overlays import RING
from planaria.network.client.parcels import Parcel, lost_in, sorted_out
from planaria.network.client.patterns import Patterns
from planaria.network.client.places import Beginning, Places
from planaria.network.client.requests import ANSWER_SECONDS, FULL_SECONDS_MAX
from planaria.network.client.servers import Servers
from planaria.network.client.unpacking import Unpacking
from planaria.network.connection import Connection
from planaria.network.link import Task
from planaria.records.positions import Mark
from planaria.records.record import MalformedRecord, Stream, decode_unnamed


class Subscription(Iterating[T]):
    """An async iterator of events, and of notices on request. Made by `Client.subscribe`."""

    def __init__(
        self,
        patterns: Sequence[str],
        begin: Beginning,
        *,
        where: str | None,
        compacted: bool,
        notices: bool,
        overlay: str,
        servers: Servers,
        access: Access,
        closed: Callable[["Subscription[Any]"], None],
    ) -> None:
        super().__init__()
        self.patterns = Patterns(patterns)
        self.where, self.compacted, self.notices, self.overlay = where, compacted, notices, overlay
        self.channel = Channel(servers, access, self)
        self.topics: list[str] = []  # that are read now
        self._begin, self._places, self._patience = begin, begin.places, access.patience
        self._resolving = begin.word is not None
        self._numbers = count(1)
        self._asked: dict[int, str] = {}  # request to pattern, not answered yet
        self._tails: dict[int, str] = {}
        self._unsent: deque[ClientMessage] = deque()
        self._parcels: deque[Parcel] = deque()
        self._current = Parcel()
        self._verifier = access.verifier()
        self._unpacking = Unpacking(self._verifier, where, compacted=compacted)
        self._distrust = Distrust(self.channel)
        self._passing: dict[str, str] = {}  # patterns to the overlays without positions they are in
        self._lacking = Lacking(self, servers, access, self._verifier)
        self._wake, self._ready = asyncio.Event(), asyncio.Event()
        self._error: PlanariaError | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closed, self._on_closed = False, closed
        self._began = 0.0  # when the tails were last asked for
        self._unserved: float | None = None  # since when no node serves us
        self._again: float | None = None  # when to ask a node that is full once more

    # What the application says

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def ready(self) -> None:
        """Wait until whatever is published from now on will come.

        Raises Unreachable if no node serves us, UsageError if one refuses.
        """
        await self._start()
        while not self._ready.is_set():
            self._raise()
            if self._closed:
                raise UsageError("this subscription is closed")
            await self._woken()

    def vector(self) -> dict[str, Any]:
        """How far the application is, in plain values: give it to `since` to go on from there.

        Raises UsageError while no node has said where `now`, `last` or a time is: await `ready`.
        """
        for overlay in self._passing.values():
            raise UsageError(f"{overlay} has no positions: there is no vector to go on from")
        if self._resolving:
            raise UsageError(f"since {self._begin.word!r} has no vector yet: await ready() first")
        places = self._places.copy()
        for parcel in self._parcels:
            if parcel.retained:  # it is behind the places
                for piece in parcel.pieces:
                    places.back(parcel.topic, decode_unnamed(piece.record).stream, piece.lo)
        for event in reversed(self._events[self._at :]):
            if isinstance(event, Event):
                stream = (event.publisher or 0, event.incarnation)  # what has none only passes by
                places.back(event.topic, stream, event.sequence or 0, late=event.late)
        return places.to_json()

    async def close(self) -> None:
        """End it; whoever iterates comes to the end."""
        if not self._closed:
            self._closed = True
            self._wake.set()
            self._on_closed(self)
            try:
                if self._starting is not None:
                    self._starting.cancel()
                    await asyncio.gather(self._starting, return_exceptions=True)
                await self._lacking.close()
            finally:
                await self.channel.close()

    async def _start(self) -> None:
        """Connect, once, whoever asks first."""
        if self._starting is None and not self._closed:
            self._starting = asyncio.create_task(self.channel.open())
        if self._starting is not None:
            starting = self._starting
            await asyncio.wait([starting])
            if not starting.cancelled():  # as `close` does: who waits is not cancelled
                if starting.exception() is not None and self._starting is starting:
                    self._starting = None  # whoever asks again tries again
                starting.result()

    async def _woken(self) -> None:
        self._wake.clear()
        await self._wake.wait()

    def _raise(self) -> None:
        """Raise what ended it; if that was the lack of a node, whoever asks again looks again."""
        error, self._error = self._error, None
        if isinstance(error, Unreachable):
            self._unserved = None
            self.channel.look_again()
            if self.channel.connection is not None:  # it was there, and full
                self._tail()
        else:
            self._error = error
        if error is not None:
            raise error

    async def _advance(self) -> bool:
        """Open the next parcel, as soon as there is one; the one before is done with.

        False if this subscription is closed.
        """
        self._finish(self._current)
        self._current, self._events, self._at = Parcel(), [], 0
        await self._start()
        while not self._parcels:
            if self._closed:
                return False
            self._raise()
            await self._woken()
        parcel = self._current = self._parcels.popleft()
        if parcel.notice is None:
            gaps = expired(parcel) if self.notices else []
            self._events = [*gaps, *self._unpack(parcel)] if gaps else self._unpack(parcel)
        elif self.notices:
            self._events = [parcel.notice]
        if parcel.restart:
            self._tail()
        return True

    # Parcels

    def _finish(self, parcel: Parcel) -> None:
        if parcel.frame is not None and not parcel.frame[1].done:
            parcel.frame[0].finish(parcel.frame[1])

    def _unpack(self, parcel: Parcel) -> list[Event]:
        """What is new in a parcel; who sends what is no record is left for another node."""
        events, error = self._unpacking.unpack(parcel, self._places)
        left = parcel.passed and parcel.frame and parcel.frame[0] is not self.channel.connection
        if error is not None and not left:
            self._leave(error)
        return events

    def _leave(self, error: MalformedRecord) -> None:
        self._void(self.channel.connection)
        self._error = self._error or self._distrust.leave_at(error, self._places)

    def put(self, parcel: Parcel) -> None:
        """Have the application take this next."""
        self._parcels.append(parcel)
        self._wake.set()

    def mark(self, topic: str, stream: Stream) -> Mark:
        """How far a stream is read."""
        return self._places.mark(topic, stream)

    def skip(self, topic: str, stream: Stream, lo: int, hi: int) -> None:
        """Go on after these numbers, and say so; should they come, they come late."""
        try:
            self._places.skip(topic, stream, hi)
        except UsageError as error:
            self.failed(error)
            return
        self.put(Parcel(topic, notice=gap(topic, *stream, lo, hi), restart=True))

    # Tails

    def _tail(self) -> None:
        """Ask for all that follows our places; what was asked before is void."""
        self._unsent, self._again = deque(Stop(number) for number in self._tails), None
        self._void()
        if self._resolving:
            self._places, self._parcels = Places(), deque()
        for pattern in self.patterns:
            self._ask(pattern)
        self._send()

    def _ask(self, pattern: str) -> None:
        """Ask for all of one pattern that follows our places, or first where that is."""
        number = next(self._numbers)
        self._asked[number] = pattern
        self._began = asyncio.get_running_loop().time()
        if self._resolving:
            since = (self._begin.word or "", self._begin.time)
            self._unsent.append(Resolve(number, pattern, *since, self.overlay))
            return
        topics, of = self._places.topics.items(), self.patterns.of
        vectors = {topic: to_wire(marks) for topic, marks in topics if of(topic) == pattern}
        *before, rest = in_parts(vectors)
        self._unsent += [Vectors(number, part) for part in before]
        how = (self.where, self.notices, self.overlay, self._unpacking.whole, self.compacted)
        self._unsent.append(Tail(number, pattern, rest, self._places.floor, *how))
        self._tails[number] = pattern

    def _void(self, distrusted: Connection | None = None) -> None:
        """Take nothing more of what the node sends us for what it was asked so far."""
        stays, goes = sorted_out(self._parcels, distrusted)
        for parcel in goes:
            self._finish(parcel)
        self._parcels = deque(stays)
        if lost := lost_in(goes):
            self._tell("gap", lost=lost)
        self._asked, self._tails, self.topics = {}, {}, []

    def _send(self) -> None:
        while self._unsent and self.channel.send(self._unsent[0], bulk=False):
            self._unsent.popleft()

    # What the channel tells

    def opened(self) -> None:
        """Go on at this node."""
        if self._unserved is None:
            self._unserved = asyncio.get_running_loop().time()
        self._tails = {}
        self._tail()

    def received(self, message: Message, connection: Connection, task: Task) -> None:
        """Publications wait for the application; all else is done with at once."""
        if isinstance(message, Pieces | Passing | Told) and message.request in self._tails:
            self._arrived(message, connection, task)
            return
        connection.finish(task)
        if isinstance(message, Tailing) and message.request in self._tails:
            self._tailing(message)
        elif isinstance(message, Resolved) and message.request in self._asked:
            self._resolved(message)
        elif isinstance(message, Failed) and (message.request in (*self._asked, *self._tails)):
            self._refused(message)

    def room(self) -> None:
        """There is room again."""
        self._send()

    def lost(self, reason: str) -> None:
        """Nobody serves us: another node is looked for, or this one asked again."""
        if self._unserved is None:
            self._unserved = asyncio.get_running_loop().time()
            if self._ready.is_set():
                self._tell("unstable", reason=reason)

    def failed(self, error: PlanariaError) -> None:
        """Nothing more will come."""
        self._error = self._error or error
        self._wake.set()

    def tick(self, now: float) -> None:
        """Leave a node that lives and does not serve us; look for what it lacks."""
        self._send()
        if self._again is not None and now >= self._again:
            self._tail()
        if self._asked and self.channel.connection and now - self._began > ANSWER_SECONDS:
            self._began = now
            self.channel.leave(f"no answer for {ANSWER_SECONDS:.0f} s")
        self._lacking.tick(now)

    def _arrived(
        self, message: Pieces | Passing | Told, connection: Connection, task: Task
    ) -> None:
        frame, passed = (connection, task), self._tails[message.request] in self._passing
        if isinstance(message, Told):
            notice = Notice(message.topic, message.kind, message.detail)
            self.put(Parcel(message.topic, frame=frame, notice=notice, passed=passed))
        elif self.patterns.of(message.topic) != self._tails[message.request]:
            connection.finish(task)  # another pattern of ours brings it
        elif isinstance(message, Passing):
            made = Parcel(message.topic, message.pieces, frame=frame, passed=True)
            self.put(made._replace(anonymous=message.anonymous))
        else:
            self._lacking.note(message.topic, message.lacks)
            self.put(Parcel(message.topic, message.pieces, message.after, frame, message.lacks))

    def _tailing(self, message: Tailing) -> None:
        self._asked.pop(message.request, None)
        self._passing.pop(self._tails[message.request], None)
        if message.overlay != RING:
            self._passing[self._tails[message.request]] = message.overlay
            if self._begin.word is None:
                self.failed(UsageError(f"since a vector: {message.overlay} has no positions"))
                return
        self.topics = sorted({*self.topics, *message.topics})
        if not self._asked:
            if self._ready.is_set() and self._unserved is not None:
                self._tell("stable", server=self.channel.address)
            self._unserved = None
            self._ready.set()
            self._wake.set()

    def _resolved(self, message: Resolved) -> None:
        """Begin there; the retained publications come first."""
        pattern = self._asked[message.request]
        if flaw := self._verifier.flaw(message.last.items()):
            self._leave(flaw)
            return
        ours = [it for it in message.vectors.items() if self.patterns.of(it[0]) == pattern]
        for topic, position in ((topic, it) for topic, positions in ours for it in positions):
            self._places.move(topic, position)
        for topic, piece in message.last.items():
            mine = self.patterns.of(topic) == pattern
            if mine and self._unpacking.is_read(topic, piece, self._places):
                self.put(Parcel(topic, [piece], retained=True))
        self._places.floor = min(self._places.floor or message.floor, message.floor)
        if not message.more:
            del self._asked[message.request]
        if not self._asked:
            self._resolving = False
            self._tail()

    def _refused(self, message: Failed) -> None:
        if message.code not in ("full", "elsewhere", "moved"):
            self.failed(UsageError(message.reason))
            return
        self.lost(message.reason)
        now = asyncio.get_running_loop().time()
        if now - (self._unserved or now) > self._patience:
            self.failed(Unreachable(dict.fromkeys(self.channel.servers, message.reason)))
        elif message.code == "full":
            self._again = now + FULL_SECONDS_MAX
        elif message.code == "moved" and message.request in self._tails:
            self._tell("moved", reason=message.reason)
            self._asked.pop(message.request, None)
            self._ask(self._tails.pop(message.request))  # what came before it is still to be read
            self._send()
        else:
            self.channel.leave(message.reason)

    def _tell(self, kind: str, **detail: Any) -> None:
        if self.notices:
            self.put(Parcel(notice=Notice("", kind, detail)))
