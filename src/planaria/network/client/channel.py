"""A client's connection to some node: when that one dies, to another.

Whoever owns a channel is told when a node is there, and then says again whatever is unanswered.
Both ends say that they live, twice a second; a node is left that was silent for three times as
long, and another has half a second to take over: no more than two seconds are lost.
"""

import asyncio
import logging
import random
from typing import Protocol

from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage, PlanariaError, UsageError
from planaria.core.message import Message
from planaria.network.client.access import Access
from planaria.network.client.errors import Unreachable
from planaria.network.client.messages import MESSAGES
from planaria.network.client.servers import Servers
from planaria.network.connection import BEAT_SECONDS, Connection
from planaria.network.contacts import parse_address
from planaria.network.frames import Kind
from planaria.network.link import Task
from planaria.network.unreached import hung_up, why

SILENCE_SECONDS = 1.5  # without a frame, after which a node is left: two beats that did not come
DIAL_SECONDS = 3.0  # for one node to answer and to say hello
STAGGER_SECONDS = (
    0.3  # after which the next is dialled too: one that swallows packets costs no more
)
BACKOFF_SECONDS = 0.05  # before the second round over all servers; doubles with each, with jitter
BACKOFF_SECONDS_MAX = 2.0
STEADY_SECONDS = 1.0  # a connection that lived so long was a good one
CLOSE_SECONDS = 1.0  # for the other end to say goodbye

CODEC = Codec(MESSAGES)
log = logging.getLogger("planaria.client")


class Owner(Protocol):
    """What a channel tells its owner."""

    def opened(self) -> None:
        """There is a node, perhaps another than before: say again what is unanswered."""

    def received(self, message: Message, connection: Connection, task: Task) -> None:
        """The node says something; `finish` the task when it is done with."""

    def room(self) -> None:
        """A connection that was full has room again."""

    def lost(self, reason: str) -> None:
        """The node is gone; another one is looked for."""

    def failed(self, error: PlanariaError) -> None:
        """No node was found for as long as patience lasts: nothing more will come."""

    def tick(self, now: float) -> None:
        """Half a second passed, or less."""


class _NoLink(Exception):
    """One address was of no use, and why."""


class Channel:
    """One connection at a time, to whichever node lets this client in."""

    def __init__(self, servers: Servers, access: Access, owner: Owner) -> None:
        self.servers, self.access, self.owner = servers, access, owner
        self.hello, self.credentials = access.hello, access.credentials
        self.address = ""  # of the node at the other end
        self.connection: Connection | None = None
        self.malformed = 0
        self._opening: dict[Connection, tuple[str, asyncio.Future[None]]] = {}  # with the address
        self._gone = asyncio.Event()
        self._closed = asyncio.Event()
        self._since = 0.0  # when the connection began
        self._refusals: dict[str, str] = {}  # by address: who said hello, and then no
        self._refused_since = 0.0
        self._keeper: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # What the owner says

    async def open(self) -> None:
        """Connect to the first server that lets us in; raises Unreachable if none does."""
        await self._connect()
        self._keeper = asyncio.create_task(self._keep())
        self._beat(asyncio.get_running_loop().time())

    @property
    def begun(self) -> bool:
        """Was it opened, and not closed since?"""
        return self._keeper is not None

    def look_again(self) -> None:
        """Look for nodes for as long as at first, if the owner was told that there are none."""
        if self._keeper is not None and self._keeper.done():
            self._refusals.clear()
            self._keeper = asyncio.create_task(self._keep())

    def send(self, message: Message, *, bulk: bool) -> bool:
        """Send soon; False if there is no node now, or it is behind."""
        return self.send_encoded(CODEC.encode(message), message, bulk=bulk)

    def send_encoded(self, body: bytes, message: Message, *, bulk: bool) -> bool:
        """The same for a message that is encoded already."""
        connection = self.connection
        return connection is not None and connection.send(body, message, bulk=bulk)

    def leave(self, reason: str) -> None:
        """Go on at another node."""
        if self.connection is not None:
            self.connection.close(reason)
            self.connection.abort()

    async def close(self) -> None:
        """Hang up, and leave nothing behind."""
        if self._timer is not None:
            self._timer.cancel()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        connection, self._keeper = self.connection, None
        if connection is not None:
            connection.close("this client is done")
            try:
                await asyncio.wait_for(self._closed.wait(), CLOSE_SECONDS)
            except TimeoutError:
                connection.abort()

    # What connections tell

    def connected(self, connection: Connection) -> None:
        """There is a socket; the dial waits for more."""

    def opened(self, connection: Connection) -> None:
        """A node said hello: the first that does is ours."""
        address, opening = self._opening.get(connection, ("", None))
        if self.connection is not None or opening is None or opening.done():
            connection.close("another node was faster")
            return
        self.connection, self.address = connection, address  # it may be lost before its dial ends
        self._gone.clear()
        self._closed.clear()
        opening.set_result(None)

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        """A message came in."""
        if connection is not self.connection:
            connection.finish(task)
            return
        try:
            message = CODEC.decode(body)
        except MalformedMessage:
            self.malformed += 1
            connection.finish(task)
            return
        self.owner.received(message, connection, task)

    def asked(self, connection: Connection, kind: int, body: bytes) -> None:
        """Contacts are the business of nodes."""

    def ready(self, connection: Connection) -> None:
        """A full connection has room again."""
        if connection is self.connection:
            self.owner.room()

    def closed(self, connection: Connection, reason: str) -> None:
        """A connection is over."""
        _, opening = self._opening.get(connection, ("", None))
        if opening is not None and not opening.done():
            opening.set_exception(_NoLink(hung_up(reason, tls=self.credentials is not None)))
        if connection is self.connection:
            self._note_refusal(connection, reason)
            self.connection = None
            self._closed.set()
            self._gone.set()
            if self._keeper is not None:
                log.info("%s: %s", self.address, reason)
                self.servers.bad(self.address)
                self.owner.lost(reason)

    def _note_refusal(self, connection: Connection, reason: str) -> None:
        """Remember who will not have this client, until somebody has it."""
        if connection.admitted or not connection.refused:
            self._refusals.clear()
            return
        if not self._refusals:
            self._refused_since = asyncio.get_running_loop().time()
        self._refusals[self.address] = reason

    # Finding a node

    async def _connect(self) -> None:
        await self._find()
        self._since = asyncio.get_running_loop().time()
        if self.connection is not None:  # or it is lost again already
            self.servers.good(self.address)
            self.owner.opened()

    async def _keep(self) -> None:
        """Find others until none is found; whatever ends it, the owner is told."""
        try:
            await self._find_others()
        except PlanariaError as error:
            self.owner.failed(error)
        except Exception as error:
            log.exception("no node is looked for any more")
            self.owner.failed(Unreachable(dict.fromkeys(self.servers, repr(error))))

    async def _find_others(self) -> None:
        """As often as the node is lost, find another; raises Unreachable in the end."""
        loop = asyncio.get_running_loop()
        backoff = 0.0
        while True:
            await self._gone.wait()
            refused_for = loop.time() - self._refused_since
            if {*self.servers} <= {*self._refusals} and refused_for > self.access.patience:
                raise Unreachable(self._refusals)
            steady = loop.time() - self._since > STEADY_SECONDS
            backoff = 0.0 if steady else _longer(backoff)
            deadline = loop.time() + self.access.patience
            while True:
                await asyncio.sleep(backoff * random.uniform(0.5, 1.5))
                try:
                    await self._connect()
                    break
                except Unreachable:
                    if loop.time() >= deadline:
                        raise
                backoff = _longer(backoff)

    async def _find(self) -> None:
        """Dial the servers in turn, the next when one fails or takes its time; the first wins."""
        reasons: dict[str, str] = {}
        untried = list(self.servers)
        dials: dict[asyncio.Task[None], str] = {}
        try:
            while untried or dials:
                if untried:
                    address = untried.pop(0)
                    dials[asyncio.create_task(self._dial(address))] = address
                pause = STAGGER_SECONDS if untried else None
                done, _ = await asyncio.wait(
                    dials, timeout=pause, return_when=asyncio.FIRST_COMPLETED
                )
                for dial in done:
                    address = dials.pop(dial)
                    error = dial.exception()
                    if error is None:
                        return
                    if not isinstance(error, _NoLink):
                        raise error
                    reasons[address] = str(error)
                    self.servers.bad(address)
        finally:
            for dial in dials:
                dial.cancel()
            await asyncio.gather(*dials, return_exceptions=True)
        raise Unreachable(reasons)

    async def _dial(self, address: str) -> None:
        """Connect to one node and wait for its hello; raises _NoLink with the reason."""
        host, port = parse_address(address)
        loop = asyncio.get_running_loop()
        connection = Connection(self, dialled=True)
        opening = loop.create_future()
        self._opening[connection] = (address, opening)
        try:
            context = self.credentials.context(server=False) if self.credentials else None
            async with asyncio.timeout(DIAL_SECONDS):
                await loop.create_connection(lambda: connection, host, port, ssl=context)
                await opening
        except BaseException as error:
            connection.abort()
            if isinstance(error, _NoLink | OSError | UsageError):
                raise _NoLink(why(error)) from None
            raise
        finally:
            opening.cancel()
            del self._opening[connection]

    # Time

    def _beat(self, due: float) -> None:
        """Say that we live, and see whether the node does, at the moment when it is overdue."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        following, connection = now + BEAT_SECONDS, self.connection
        if connection is not None:
            if now - due > BEAT_SECONDS:
                connection.heard = now  # we slept ourselves, and have not listened
            elif now - connection.heard >= SILENCE_SECONDS:
                self.leave("silent")
            else:
                following = min(following, connection.heard + SILENCE_SECONDS)
            connection.say(Kind.BEAT, b"")
        self._timer = loop.call_at(following, self._beat, following)
        self.owner.tick(now)


def _longer(backoff: float) -> float:
    return min(BACKOFF_SECONDS_MAX, max(BACKOFF_SECONDS, 2 * backoff))
