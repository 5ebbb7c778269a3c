"""One question at a time, or many: a connection on which a tool asks a node and gets answers.

It keeps no vectors and goes on at no other node: that is what the client library does.
"""

import asyncio
from typing import TypeVar

from planaria.core.errors import MalformedMessage, PlanariaError, UsageError
from planaria.network.client.access import Access
from planaria.network.client.channel import CODEC
from planaria.network.client.messages import ClientMessage, Failed
from planaria.network.connection import Connection
from planaria.network.contacts import parse_address
from planaria.network.link import Task
from planaria.network.unreached import cannot, hung_up

ANSWER_SECONDS = 5.0  # for a connection to open, and for an answer to come

Answer = TypeVar("Answer", bound=ClientMessage)


class Unanswered(PlanariaError):
    """A node that cannot be reached, does not let us in or does not answer; says which and why."""


class Refused(Unanswered):
    """A node that answers that it cannot or will not; says which and why."""


class Asker:
    """A connection to one node; closes when its block ends."""

    def __init__(self, address: str, access: Access, seconds: float = ANSWER_SECONDS) -> None:
        self.address, self.seconds = address, seconds
        self.hello, self.credentials = access.hello, access.credentials
        self.node = b""  # the id of who answers
        self._connection: Connection | None = None
        self._waiting: dict[int, asyncio.Future[ClientMessage]] = {}
        self._number = 0
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended: asyncio.Event = asyncio.Event()

    @property
    def hung_up(self) -> bool:
        """Is there no connection?"""
        return self._connection is None

    async def __aenter__(self) -> "Asker":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect; raises Unanswered."""
        host, port = parse_address(self.address)
        loop = asyncio.get_running_loop()
        try:
            context = self.credentials.context(server=False) if self.credentials else None
            async with asyncio.timeout(self.seconds):
                await loop.create_connection(self._connect, host, port, ssl=context)
                await self._opened
        except BaseException as error:
            self._opened.cancel()  # nobody waits for it any more
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.abort()  # there is nobody to say goodbye to
            if isinstance(error, OSError | UsageError):
                raise Unanswered(cannot(self.address, error)) from None
            raise

    async def ask(self, kind: type[ClientMessage], answer: type[Answer], *fields: object) -> Answer:
        """Ask, and wait for an `answer`; raises Unanswered, also for another answer."""
        if self._connection is None:
            raise Unanswered(f"{self.address} has hung up")
        self._number += 1
        number, message = self._number, kind(self._number, *fields)
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            if not self._connection.send(CODEC.encode(message), message, bulk=False):
                raise Unanswered(f"{self.address} is behind with its answers")
            async with asyncio.timeout(self.seconds):
                found = await future
        except TimeoutError:
            raise Unanswered(f"{self.address} does not answer") from None
        finally:
            del self._waiting[number]
        if isinstance(found, Failed):
            raise Refused(f"{self.address}: {found.reason}")
        if not isinstance(found, answer):
            raise Unanswered(f"{self.address} answers {type(found).__name__}: another version?")
        return found

    async def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close("done")
            try:
                async with asyncio.timeout(self.seconds):
                    await self._ended.wait()
            except TimeoutError:
                self.abort()

    def abort(self) -> None:
        """Hang up at once: nobody is there to say goodbye to."""
        if self._connection is not None:
            self._connection.abort()

    def _connect(self) -> Connection:
        self._connection = Connection(self, dialled=True)
        return self._connection

    # What the connection tells

    def connected(self, connection: Connection) -> None:
        """There is a socket."""

    def opened(self, connection: Connection) -> None:
        """The node has said who it is."""
        assert connection.theirs is not None
        self.node = connection.theirs.id
        if not self._opened.done():
            self._opened.set_result(None)

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        """An answer; one that nobody waits for is dropped."""
        connection.finish(task)
        try:
            message = CODEC.decode(body)
        except MalformedMessage as error:
            connection.close(f"its answer cannot be read: {str(error)!r}")
            return
        assert isinstance(message, ClientMessage)
        future = self._waiting.get(message.request)
        if future is not None and not future.done():
            future.set_result(message)

    def asked(self, connection: Connection, kind: int, body: bytes) -> None:
        """Contacts are not for clients."""

    def ready(self, connection: Connection) -> None:
        """Questions are small: the next one is sent when it is asked."""

    def closed(self, connection: Connection, reason: str) -> None:
        """Whoever waits is told why."""
        if not self._opened.done():
            said = hung_up(reason, tls=self.credentials is not None)
            self._opened.set_exception(Unanswered(f"{self.address} does not let us in: {said}"))
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Unanswered(f"{self.address} hung up: {reason}"))
        self._connection = None
        self._ended.set()
