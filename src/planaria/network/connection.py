"""A connection between two nodes: frames over a socket, and a link that acknowledges them.

Whoever accepts it or dials it gives a `Handler`. Both ends say hello first: which versions of the
wire they speak, and, without TLS, who they are. Writes of one turn of the event loop go out in one.
"""

import asyncio
import ssl
from collections import deque
from time import monotonic
from typing import Protocol, cast

from msgspec import MsgspecError, Struct, msgpack

from planaria.core.errors import MalformedMessage
from planaria.core.message import Message
from planaria.network.contacts import format_address
from planaria.network.frames import Kind, Reader, frame
from planaria.network.identity import Identity, Refused, handle_of
from planaria.network.link import OWED_BYTES_MAX, Link, Task
from planaria.network.tls import Credentials
from planaria.network.unreached import HUNG_UP

VERSIONS = (2,)  # of the wire that this code speaks: in 1 stores reconciled whole records alone
BEAT_SECONDS = 0.5  # between two looks whether this end has said anything: else it beats
HELLO_SECONDS = 5.0  # within which the other end must have said hello
NODE, CLIENT = "node", "client"  # roles of an end; a certificate must name the one it plays
TURN_SECONDS = 0.005  # of work on what one socket brought; then others have their turn
TURN_SECONDS_MIN = 0.0005  # of one whose requests take longer than a turn again and again
OWED_SECONDS = 0.5  # for which an acknowledgement waits for something to travel with


class Hello(Struct, frozen=True):
    """The first frame of each end."""

    versions: tuple[int, ...]
    id: bytes
    cluster: str
    addresses: tuple[str, ...] = ()
    role: str = NODE  # or `CLIENT`: in no ring, and nobody dials it


def read_hello(body: bytes) -> Hello:
    """What the other end says of itself; raises Refused if that is no hello."""
    try:
        return msgpack.decode(body, type=Hello)
    except (MsgspecError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise Refused(f"no hello: {error}") from None


class Handler(Protocol):
    """What a connection tells its owner."""

    @property
    def hello(self) -> Hello:
        """What to say first."""

    @property
    def credentials(self) -> Credentials | None:
        """What to show; None without TLS."""

    def connected(self, connection: "Connection") -> None:
        """There is a socket; nothing is known of the other end yet."""

    def opened(self, connection: "Connection") -> None:
        """Both ends know each other; `peer` and `hello` are known."""

    def received(self, connection: "Connection", body: bytes, task: Task) -> None:
        """A control or bulk frame came in; say `finish` when it is done with."""

    def asked(self, connection: "Connection", kind: int, body: bytes) -> None:
        """A frame about contacts came in."""

    def ready(self, connection: "Connection") -> None:
        """A link that was full has room again."""

    def closed(self, connection: "Connection", reason: str) -> None:
        """It is over; `link.unacknowledged()` says what may not have arrived."""


class Connection(asyncio.Protocol):
    """One end of one socket."""

    def __init__(self, handler: Handler, *, dialled: bool) -> None:
        self.handler, self.dialled = handler, dialled
        self.link = Link()
        self.theirs: Hello | None = None
        self.peer = 0  # the handle of the node at the other end, once it is known
        self.identity: Identity | None = None  # whom its certificate names
        self.heard = 0.0  # when the other end was last heard of, by the loop's clock
        self.since = 0.0  # when there was a socket, by the same clock
        self.address = ""  # of the other end
        self.sent = self.received = 0  # bytes of frames
        self._beaten = 0  # of these, sent before the last beat was due
        self.malformed = 0
        self.behind = False  # was it crowded for longer than publishers wait?
        self._eased = asyncio.Event()
        self._reader = Reader()
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._flushing = self._paused = self._working = False
        self._turn = TURN_SECONDS
        self._owing: asyncio.TimerHandle | None = None
        self.admitted = False  # did the other end say anything after both hellos?
        self.roles: tuple[str, ...] = ()  # of the certificate that the other end showed
        self.refused = False  # did one end say that it will not have the other?
        self._reason = ""
        self._patience: asyncio.TimerHandle | None = None

    @property
    def reason(self) -> str:
        """Why it is over; empty while it is not."""
        return self._reason

    def send(self, data: bytes, message: Message, *, bulk: bool) -> bool:
        """Send an encoded message soon; False if the link is full."""
        taken = self.link.offer(data, message, bulk=bulk)
        if taken:
            self._flush_soon()
        return taken

    @property
    def crowded(self) -> bool:
        """Is more than a quarter of the bulk window on its way? The rest is left to catch-up."""
        bulk = self.link.bulk
        return 4 * bulk.bytes > bulk.bytes_max

    async def eased(self) -> None:
        """Return when less than that is on its way, or nobody is there."""
        while self.crowded and self._transport is not None:
            await self._eased.wait()

    def finish(self, task: Task) -> None:
        """Say that a frame is done with; the other end is told with the next write, or soon."""
        link = self.link
        link.finish(task)
        if link.owed >= OWED_BYTES_MAX:
            self._flush_soon()
        elif self._owing is None:
            self._owing = self._loop.call_later(OWED_SECONDS, self._acknowledge)

    def say(self, kind: Kind, body: bytes) -> None:
        """Send a frame that needs no acknowledgement, at once."""
        if self._open:
            self._write(frame(kind, body))

    def beat(self) -> None:
        """Say that this end lives, unless something else has said so since the last time.

        Clients are told each time: they leave a silent node sooner than nodes do.
        """
        if self.sent == self._beaten or (self.theirs is not None and self.theirs.role == CLIENT):
            self.say(Kind.BEAT, b"")
        self._beaten = self.sent

    def close(self, reason: str) -> None:
        """Hang up; the reason goes to the log of this end."""
        closing = bool(self._reason)  # a transport that is closed twice cannot be aborted any more
        self._reason = self._reason or reason
        if self._transport is not None and not closing:
            self._transport.close()

    def abort(self) -> None:
        """Hang up without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    def refuse(self, reason: str) -> None:
        """Hang up and tell the other end why."""
        self._write(frame(Kind.REFUSE, reason.encode()))
        self.refused = True
        self.close(reason)

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello. A TLS handshake that fails never comes so far."""
        self._transport = cast(asyncio.Transport, transport)
        self.since = self._loop.time()
        named = transport.get_extra_info("peername")
        self.address = format_address(*named[:2]) if named else ""
        self.handler.connected(self)
        self._write(frame(Kind.HELLO, msgpack.encode(self.handler.hello)))
        self._patience = self._loop.call_later(HELLO_SECONDS, self.close, "it never said hello")

    def data_received(self, data: bytes) -> None:
        """Cut into frames and handle each; not all of them now if they are many."""
        self.heard = self._loop.time()
        self.received += len(data)
        try:
            self._inbox += self._reader.feed(data)
        except MalformedMessage as error:
            self.refuse(str(error))
        if not self._working:
            self._work()

    def pause_writing(self) -> None:
        """The socket is full: keep what waits here."""
        self._paused = True

    def resume_writing(self) -> None:
        """The socket takes more."""
        self._paused = False
        self._flush_soon()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the owner."""
        for timer in (self._patience, self._owing):
            if timer is not None:
                timer.cancel()
        self._transport = None
        self._ease()
        self.refused = self.refused or isinstance(error, ssl.SSLError)
        self._reason = self._reason or _words(error)
        self.handler.closed(self, self._reason)

    # Frames

    def _work(self) -> None:
        """Handle what came in, for a while; nothing more is read before it is done."""
        inbox = self._inbox
        until = monotonic() + self._turn if len(inbox) > 1 else 0.0
        while inbox and not self._reason:
            kind, body = inbox.popleft()
            self._frame(kind, body)
            if inbox and monotonic() > until:
                self.heard = self._loop.time()  # who is not read from is not silent
                if kind == Kind.CONTROL:  # publications are worth a longer turn: one write for many
                    self._turn = max(TURN_SECONDS_MIN, self._turn / 2)
                self._rest(working=True)
                self._loop.call_soon(self._work)
                return
        if not self._working:
            self._turn = TURN_SECONDS
        inbox.clear()
        self._rest(working=False)

    def _rest(self, *, working: bool) -> None:
        if self._working == working:
            return
        transport = self._transport
        if transport is not None and not transport.is_closing():
            if working:
                transport.pause_reading()
            else:
                transport.resume_reading()
        self._working = working

    def _frame(self, kind: int, body: bytes) -> None:
        if self.theirs is None:
            self._greeted(kind, body)
            return
        self.admitted = self.admitted or kind != Kind.REFUSE
        if kind in (Kind.CONTROL, Kind.BULK):
            self.handler.received(self, body, self.link.begin(kind, len(body)))
        elif kind in (Kind.WHERE, Kind.CONTACTS):
            self.handler.asked(self, kind, body)
        elif kind == Kind.ACKNOWLEDGE:
            self._acknowledged(body)
        elif kind == Kind.REFUSE:
            self._refused(body)
        elif kind != Kind.BEAT:
            self.malformed += 1  # of a later version, perhaps: it is not for us

    def _acknowledged(self, body: bytes) -> None:
        if not self.link.on_acknowledge(body):
            self.refuse("acknowledged what was never sent")
            return
        if not self.crowded:
            self.behind = False
            self._ease()
        if self.link.drained:
            self.handler.ready(self)

    def _ease(self) -> None:
        """Let go on who waits for room."""
        self._eased.set()
        self._eased.clear()

    def _greeted(self, kind: int, body: bytes) -> None:
        if kind == Kind.REFUSE:
            self._refused(body)
            return
        try:
            if kind != Kind.HELLO:
                raise Refused("the first frame must say hello: is this a Planaria node?")
            self._accept(read_hello(body))
        except Refused as error:
            self.refuse(str(error))

    def _refused(self, body: bytes) -> None:
        self.refused = True
        self.close(f"it refused: {body.decode(errors='replace')}")

    def _accept(self, theirs: Hello) -> None:
        mine = self.handler.hello
        if not set(theirs.versions) & set(mine.versions):
            raise Refused(
                f"one end speaks wire {_list(theirs.versions)}, the other "
                f"{_list(mine.versions)}: upgrade the older"
            )
        if theirs.role not in (NODE, CLIENT):
            raise Refused(f"it says that it is a {theirs.role!r}: {NODE} or {CLIENT}")
        if theirs.cluster != mine.cluster:
            raise Refused(
                f"one end is of cluster {theirs.cluster!r}, the other of {mine.cluster!r}: talk "
                "to a node of your own"
            )
        credentials = self.handler.credentials
        if credentials is not None:
            assert self._transport is not None
            shown = credentials.peer(
                cast(ssl.SSLObject, self._transport.get_extra_info("ssl_object"))
            )
            if shown.id != theirs.id:
                raise Refused(f"it says another id than its certificate ({shown.name!r})")
            if theirs.role not in shown.roles:
                raise Refused(
                    f"the certificate of {shown.name!r} is for {', '.join(shown.roles)}, not for a "
                    f"{theirs.role}: issue one with --role {theirs.role}"
                )
            self.identity, self.roles = shown, shown.roles
        if self._patience is not None:
            self._patience.cancel()
        self.theirs, self.peer = theirs, handle_of(theirs.id)
        self.handler.opened(self)

    # Writing

    @property
    def _open(self) -> bool:
        return self.theirs is not None and not self._reason

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            self.sent += len(data)

    def _flush_soon(self) -> None:
        if not self._flushing and not self._paused:
            self._flushing = True
            self._loop.call_soon(self._flush_now)

    def flush(self) -> None:
        """Write what waits: at once if this is the first in a turn of the event loop, others wait
        for it; what follows in the same turn leaves together at its end.
        """
        if not self._flushing and not self._paused:
            self._write_out()
            self._flushing = True
            self._loop.call_soon(self._flush_rest)

    def _flush_rest(self) -> None:
        self._flushing = False
        link = self.link
        if link.control.waiting or link.bulk.waiting or link.owed >= OWED_BYTES_MAX:
            self._write_out()

    def _flush_now(self) -> None:
        self._flushing = False
        self._write_out()

    def _acknowledge(self) -> None:
        self._owing = None
        self._write_out()

    def _write_out(self) -> None:
        if self._open and not self._paused:
            data = self.link.take()
            if data:
                self._write(data)
            if self.link.bulk.waiting:
                self._flush_soon()


def _list(versions: tuple[int, ...]) -> str:
    return ", ".join(map(str, versions))


def _words(error: Exception | None) -> str:
    if error is None:
        return HUNG_UP
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
