"""The gate: a node's door for clients, which are in no ring and go on elsewhere if it dies."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from planaria.core.errors import CapacityExceeded, MalformedMessage, UsageError
from planaria.core.message import Message
from planaria.core.node import Deliver, Effect, Joined, Notice
from planaria.core.topics import check_filter
from planaria.network.chaos.agent import Agent
from planaria.network.client.messages import (
    AskBatch,
    AskCharters,
    AskExtent,
    AskState,
    AskStatus,
    AskTopics,
    AskVector,
    ChartersAre,
    ClientMessage,
    Inject,
    Put,
    PutCharter,
    PutNew,
    Read,
    Resolve,
    Stop,
    Tail,
    Vectors,
)
from planaria.network.connection import Connection, Hello
from planaria.network.frames import Kind
from planaria.network.gate.publishing import Publishing
from planaria.network.gate.queries import Queries
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import CODEC, TAILS_MAX, Session
from planaria.network.gate.settling import Settling
from planaria.network.gate.tails import Tails
from planaria.network.host import Host
from planaria.network.link import Task
from planaria.network.tls import Credentials
from planaria.protocols.skipring.batches import Consulted
from planaria.protocols.skipring.charters import LayDown
from planaria.protocols.skipring.deposits import DepositAnswered
from planaria.protocols.skipring.ring_node import RingNode

CLIENTS_MAX = 1024  # at one node: each may have a window of two mebibytes
ADMIN = "admin"  # the role of who may do a node harm
SILENCE_SECONDS = 30.0  # without a frame, after which a client is gone

log = logging.getLogger("planaria.network")


class Gate:
    """Serves the clients of one node. Tell it every effect that the host gives its application,
    and every timeout."""

    def __init__(
        self,
        host: Host,
        ring: RingNode,
        status: Callable[[], dict[str, Any]],
        keeps: Callable[[str], bool] = lambda _: False,
        chaos: Agent | None = None,
    ) -> None:
        """`keeps`: does this node's own application want this topic or pattern?

        `chaos` does this node harm when an admin says so; None: nobody may.
        """
        loop = asyncio.get_running_loop()
        self._keeps, self._chaos = keeps, chaos
        self.host = host
        self.malformed = 0
        self.sessions: dict[Connection, Session] = {}
        self.memberships = Memberships(ring, host.command, loop.time)
        self.publishing = Publishing(
            self.memberships, host.command, loop.time, host.wall, loop.call_later
        )
        self.settling = Settling(self.memberships, host.command, loop.time, loop.call_later)
        self.tails = Tails(self.memberships, loop.time, loop.call_soon)
        self.queries = Queries(self.memberships, status, loop.time, host.wall, host.interval)
        self._clock = loop.time
        host.clients = self

    # What the node tells

    def on_effect(self, effect: Effect) -> None:
        """Something happened at this node."""
        if isinstance(effect, Deliver):
            self.tails.on_deliver(effect)
            self.queries.on_news(effect.topic)
        elif isinstance(effect, DepositAnswered):
            self.publishing.on_answer(effect)
            self.settling.on_refusal(effect)
        elif isinstance(effect, Consulted):
            self.settling.on_answer(effect)
        elif isinstance(effect, Joined):
            self.memberships.on_joined(effect)
            self.publishing.look()
            self.tails.on_joined()
        elif isinstance(effect, Notice):
            self.tails.on_notice(effect)

    def on_timeout(self) -> None:
        """Once per interval: try again whatever waits, tell clients that this node lives."""
        now = self._clock()
        for connection in list(self.sessions):
            if now - connection.heard > SILENCE_SECONDS:
                connection.close("silent")
            connection.say(Kind.BEAT, b"")
        self.publishing.on_timeout()
        self.settling.on_timeout()
        self.queries.on_timeout()
        self.tails.on_timeout()
        self.memberships.release(self.tails.patterns(), self._keeps)

    # What connections tell

    @property
    def hello(self) -> Hello:
        """Who this node is."""
        return self.host.hello

    @property
    def credentials(self) -> Credentials | None:
        """Its certificate."""
        return self.host.credentials

    def connected(self, connection: Connection) -> None:
        """A host hands connections over when it knows that a client is at the other end."""

    def opened(self, connection: Connection) -> None:
        """A client is here."""
        if len(self.sessions) >= CLIENTS_MAX:
            connection.refuse(f"this node serves {CLIENTS_MAX} clients: connect to another one")
            return
        self.sessions[connection] = Session(connection)

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        """A client asks. Back-pressure is in the answers: a request is done with when taken up."""
        session = self.sessions.get(connection)
        connection.finish(task)
        if session is None:
            return
        try:
            message = CODEC.decode(body)
        except MalformedMessage as error:
            self._unknown(session, body, error)
            return
        self._handle(session, message)

    def asked(self, connection: Connection, kind: int, body: bytes) -> None:
        """Contacts are for nodes."""

    def ready(self, connection: Connection) -> None:
        """A client that was behind takes more."""
        session = self.sessions.get(connection)
        if session is not None:
            session.flush()
            for tail in session.tails.values():
                self.tails.wake(tail)

    def closed(self, connection: Connection, reason: str) -> None:
        """A client is gone, and with it all that it asked."""
        session = self.sessions.pop(connection, None)
        if session is not None:
            session.closed = True
            self.tails.gone(session)
            self.publishing.gone(session)
            self.settling.gone(session)
        self.host.closed(connection, reason)

    # Requests

    def _handle(self, session: Session, message: Message) -> None:
        if isinstance(message, Put):
            self.publishing.put(session, message)
        elif isinstance(message, PutNew):
            self.publishing.put_new(session, message)
        elif isinstance(message, Stop):
            self.tails.stop(session, message.request)
        elif isinstance(message, ClientMessage) and session.admit(message.request):
            handler = _HANDLERS.get(type(message))
            try:
                if handler is None:
                    raise UsageError(f"{type(message).__name__} is for clients, not for nodes")
                handler(self, session, message)
            except UsageError as error:
                session.fail(message.request, "usage", str(error))
            except CapacityExceeded as error:
                session.fail(message.request, "full", str(error))

    def _tail(self, session: Session, message: Tail) -> None:
        pattern = check_filter(message.pattern)
        if len(session.tails) >= TAILS_MAX:
            raise UsageError(f"{TAILS_MAX} tails of one client: stop one first")
        self.memberships.join(pattern)
        whole = replace(message, vectors=session.vectors(message))
        self.tails.begin(session, whole, pattern)

    def _vectors(self, session: Session, message: Vectors) -> None:
        session.keep(message)
        session.open -= 1  # its tail is the one that is answered

    def _lay_down(self, session: Session, message: PutCharter) -> None:
        self.host.command(LayDown(message.sealed))
        session.answer(ChartersAre(message.request, [message.sealed]))

    def _inject(self, session: Session, message: Inject) -> None:
        if self._chaos is None:
            raise UsageError("this node was not started with --allow-chaos: nobody may break it")
        if self.credentials is not None and ADMIN not in session.connection.roles:
            raise UsageError(f"only a certificate with the role {ADMIN!r} may break a node")
        session.answer(self._chaos.inject(message))

    def _unknown(self, session: Session, body: bytes, error: MalformedMessage) -> None:
        """Answer even what this version does not understand, if only it names its request."""
        self.malformed += 1
        try:
            tag, request = msgpack.decode(body, type=list)[:2]
        except (MsgspecError, ValueError):
            log.info("a client sent no message: %s", error)
            return
        if isinstance(request, int) and session.admit(request):
            session.fail(request, "usage", f"this node does not understand {tag!r}: {error}")


_HANDLERS: dict[type[Message], Callable[[Gate, Session, Any], None]] = {
    Tail: Gate._tail,
    Vectors: Gate._vectors,
    Resolve: lambda gate, session, message: gate.queries.resolve(session, message),
    Read: lambda gate, session, message: gate.queries.read(session, message),
    AskTopics: lambda gate, session, message: gate.queries.ask_topics(session, message),
    AskVector: lambda gate, session, message: gate.queries.ask_vector(session, message),
    AskExtent: lambda gate, session, message: gate.queries.ask_extent(session, message),
    AskStatus: lambda gate, session, message: gate.queries.ask_status(session, message),
    AskState: lambda gate, session, message: gate.queries.ask_state(session, message),
    AskCharters: lambda gate, session, message: gate.queries.ask_charters(session, message),
    PutCharter: Gate._lay_down,
    AskBatch: lambda gate, session, message: gate.settling.ask(session, message),
    Inject: Gate._inject,
}
