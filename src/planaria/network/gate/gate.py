"""The gate: a node's door for clients, which are in no ring and go on elsewhere if it dies."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from planaria.core.composite import Composite, FromOverlay
from planaria.core.errors import CapacityExceeded, MalformedMessage, UsageError
from planaria.core.message import Message
from planaria.core.node import Deliver, Effect, Joined, Notice
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
    StateIs,
    Stop,
    Tail,
    Vectors,
)
from planaria.network.connection import Connection, Hello
from planaria.network.gate.laid import RING, Laid, Overlays
from planaria.network.gate.others import Others
from planaria.network.gate.publishing import Publishing
from planaria.network.gate.queries import Queries
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import CODEC, TAILS_MAX, Session
from planaria.network.gate.settling import Settling
from planaria.network.gate.tails import Tails
from planaria.network.gate.warden import Unsure, Warden
from planaria.network.host import Host
from planaria.network.link import Task
from planaria.network.rights import ADMIN, PUBLISH, SUBSCRIBE, SUPERVISE, RightsFile
from planaria.network.tls import Credentials
from planaria.protocols.skipring.batches import Consulted
from planaria.protocols.skipring.charter import VOID, decode_sealed
from planaria.protocols.skipring.charters import LaidDown, LayDown
from planaria.protocols.skipring.deposits import DepositAnswered
from planaria.protocols.skipring.ring_node import RingNode

CLIENTS_MAX = 1024  # at one node: each may have a window of two mebibytes
SILENCE_SECONDS = 30.0  # without a frame, after which a client is gone


class Gate:
    """Serves the clients of one node. Tell it every effect that the host gives its application,
    and every timeout."""

    def __init__(
        self,
        host: Host,
        ring: RingNode,
        status: Callable[[str | None], Any],
        keeps: Callable[[str], bool] = lambda _: False,
        chaos: Agent | None = None,
        node: Composite | None = None,
        keep: Callable[[Callable[[], None]], None] = lambda done: done(),
        rights: RightsFile | None = None,
    ) -> None:
        """`status` is asked what clients are shown, as `Monitor.shown` answers.

        `keeps`: does this node's own application want this topic or pattern? `chaos` does this
        node harm when an admin says so; None: nobody may. `node` has the parts in other
        overlays, which `keep` puts on disk; without it there is `ring` alone. `rights` are what
        its clients may do; None: all that charters allow.
        """
        loop = asyncio.get_running_loop()
        self._keeps, self._chaos = keeps, chaos
        self.host = host
        self.malformed = 0
        self.sessions: dict[Connection, Session] = {}
        self.memberships = Memberships(ring, host.command, loop.time)
        self.publishing = Publishing(
            self.memberships, host.command, loop.time, host.wall, loop.call_later,
            host.links.values, host.credentials,
        )  # fmt: skip
        self.settling = Settling(self.memberships, host.command, loop.time, loop.call_later)
        self.overlays = Overlays(ring.charters, host.command, loop.time)
        self.warden = Warden(self.overlays, rights)
        self.tails = Tails(self.memberships, loop.time, loop.call_soon, self.warden.unreadable)
        self.queries = Queries(
            self.memberships, status, loop.time, host.wall, host.interval, self.warden
        )
        others = (host.command, loop.time, keep, self.warden.unreadable)
        self.others = None if node is None else Others(node, *others)
        self._clock = loop.time
        host.clients = self

    # What the node tells

    def on_effect(self, effect: Effect) -> None:
        """Something happened at this node."""
        if isinstance(effect, FromOverlay):
            if self.others is not None:
                self.others.on_effect(effect.overlay, effect.effect)
        elif isinstance(effect, Deliver):
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
        elif isinstance(effect, LaidDown):
            self.overlays.on_laid_down(effect)
            self.tails.judge_anew()

    def on_timeout(self) -> None:
        """Once per interval: try again whatever waits; the host tells clients that it lives."""
        now = self._clock()
        for connection in list(self.sessions):
            if now - connection.heard > SILENCE_SECONDS:
                connection.close("silent")
        self.warden.on_timeout()
        self.publishing.on_timeout()
        self.settling.on_timeout()
        self.queries.on_timeout()
        self.tails.on_timeout()
        self.overlays.on_timeout()
        if self.others is not None:
            self.others.on_timeout()
        self.memberships.release(self.tails.patterns(), self._keeps)

    def close(self) -> None:
        """Serve no client any more: each goes on at another node."""
        self.host.clients = None
        self.publishing.close()
        for connection in list(self.sessions):
            connection.close("this node stops")

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
            self.malformed += 1
            session.not_understood(body, error)
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
            if self.others is not None:
                self.others.ready(session)

    def closed(self, connection: Connection, reason: str) -> None:
        """A client is gone, and with it all that it asked."""
        session = self.sessions.pop(connection, None)
        if session is not None:
            session.closed = True
            self.tails.gone(session)
            if self.others is not None:
                self.others.gone(session)
            self.publishing.gone(session)
            self.settling.gone(session)
        self.host.closed(connection, reason)

    # Requests

    def _handle(self, session: Session, message: Message) -> None:
        if isinstance(message, Put | PutNew):
            self._put(session, message)
        elif isinstance(message, Stop):
            self.tails.stop(session, message.request)
            if self.others is not None:
                self.others.stop(session, message.request)
        elif isinstance(message, ClientMessage) and session.admit(message.request):
            handler = _HANDLERS.get(type(message))
            self._try(session, message, lambda: _handled(handler, self, session, message))

    def _try(self, session: Session, message: ClientMessage, act: Callable[[], None]) -> None:
        """Do what a client asks, or tell it why that cannot be."""
        try:
            act()
        except Unsure as error:
            session.fail(message.request, "elsewhere", str(error))
        except UsageError as error:
            session.fail(message.request, "usage", str(error))
        except CapacityExceeded as error:
            session.fail(message.request, "full", str(error))

    def _where(
        self,
        session: Session,
        message: Put | PutNew | Tail | Resolve | Read | AskVector | AskExtent,
        topic: str,
        act: Callable[[str], None],
        size: int = 0,
    ) -> None:
        """Do something as soon as it is known in which overlay a topic is."""

        def go_on(laid: Laid) -> None:
            if session.closed:
                return
            overlay = laid.agreed(topic, getattr(message, "overlay", ""))
            if overlay != RING and (self.others is None or not self.others.serves(overlay)):
                reason = f"this node takes no part in {overlay}: ask another"
                session.fail(message.request, "elsewhere", reason)
                return
            act(overlay)

        if self.others is None and session.name is None:
            self._try(session, message, lambda: go_on(Laid(RING, False)))
        elif not self.overlays.when(
            topic, lambda laid: self._try(session, message, lambda: go_on(laid)), size
        ):
            session.fail(message.request, "full", "no supervisor says what is laid down: wait")

    def _put(self, session: Session, message: Put | PutNew) -> None:
        """Publish; most topics are known to be in rings, and their publishers allowed."""
        if self.others is not None or session.name is not None:
            laid = self.overlays.settled(message.topic)
            refusal = self.warden.refusal(session, PUBLISH, message.topic)
            other = laid is None or laid.overlay != RING or message.overlay not in ("", RING)
            if other or refusal != "":
                size = len(message.record) if isinstance(message, Put) else 0
                if session.admit(message.request, size):
                    act = partial(self._put_in, session, message)
                    self._where(session, message, message.topic, act, size)
                return
        self._put_in_ring(session, message)

    def _put_in(self, session: Session, message: Put | PutNew, overlay: str) -> None:
        self.warden.check(session, PUBLISH, message.topic)
        if overlay == RING:
            session.open -= 1  # counted again
            self._put_in_ring(session, message)
        elif isinstance(message, Put) and message.stage:
            raise UsageError(f"batches are published in rings alone: {message.topic} is {overlay}")
        elif self.others is not None:
            self.others.put(session, message, overlay)

    def _put_in_ring(self, session: Session, message: Put | PutNew) -> None:
        if isinstance(message, Put):
            self.publishing.put(session, message)
        else:
            self.publishing.put_new(session, message)

    def _resolve(self, session: Session, message: Resolve) -> None:
        pattern = self.warden.readable(session, message.pattern)

        def resolve(overlay: str) -> None:
            self.warden.check_named(session, pattern)
            if overlay == RING or self.others is None:
                self.queries.resolve(session, message)
            else:
                self.others.resolve(session, message, overlay)

        self._where(session, message, pattern, resolve)

    def _history(self, session: Session, message: Read | AskVector | AskExtent) -> None:
        def answer(overlay: str) -> None:
            self.warden.check(session, SUBSCRIBE, message.topic)
            if overlay != RING:
                raise UsageError(f"{overlay} keeps no history: there is nothing to read")
            if isinstance(message, Read):
                self.queries.read(session, message)
            elif isinstance(message, AskVector):
                self.queries.ask_vector(session, message)
            else:
                self.queries.ask_extent(session, message)

        self._where(session, message, message.topic, answer)

    def _tail(self, session: Session, message: Tail) -> None:
        pattern = self.warden.readable(session, message.pattern)

        def follow(overlay: str) -> None:
            self.warden.check_named(session, pattern)
            if overlay == RING or self.others is None:
                self._tail_ring(session, message, pattern)
            else:
                self.others.follow(session, message, pattern, overlay)

        self._where(session, message, pattern, follow)

    def _tail_ring(self, session: Session, message: Tail, pattern: str) -> None:
        if len(session.tails) >= TAILS_MAX:
            raise UsageError(f"{TAILS_MAX} tails of one client: stop one first")
        self.memberships.join(pattern)
        whole = replace(message, vectors=session.vectors(message))
        self.tails.begin(session, whole, pattern)

    def _vectors(self, session: Session, message: Vectors) -> None:
        session.keep(message)
        session.open -= 1  # its tail is the one that is answered

    def _lay_down(self, session: Session, message: PutCharter) -> None:
        found = decode_sealed(message.sealed)
        if found is not None and not found[1].topic.startswith(VOID):
            self.warden.check(session, ADMIN, found[1].topic)
        self.host.command(LayDown(message.sealed))
        session.answer(ChartersAre(message.request, [message.sealed]))

    def _state(self, session: Session, message: AskState) -> None:
        if message.overlay == RING:
            self.warden.check(session, SUPERVISE, message.topic)
            self.queries.ask_state(session, message)
        else:
            self.warden.check_pattern(session, SUPERVISE, "#")
            part = None if self.others is None else self.others.state(message.overlay)
            session.answer(StateIs(message.request, [], None, None, part))

    def _batch(self, session: Session, message: AskBatch) -> None:
        self.warden.check(session, PUBLISH, message.topic)
        self.settling.ask(session, message)

    def _inject(self, session: Session, message: Inject) -> None:
        if self._chaos is None:
            raise UsageError("this node was not started with --allow-chaos: nobody may break it")
        if self.credentials is not None and ADMIN not in session.connection.roles:
            raise UsageError(f"only a certificate with the role {ADMIN!r} may break a node")
        session.answer(self._chaos.inject(message))


def _handled(
    handler: "Callable[[Gate, Session, Any], None] | None",
    gate: Gate,
    session: Session,
    message: ClientMessage,
) -> None:
    if handler is None:
        raise UsageError(f"{type(message).__name__} is for clients, not for nodes")
    handler(gate, session, message)


_HANDLERS: dict[type[Message], Callable[[Gate, Session, Any], None]] = {
    Tail: Gate._tail,
    Vectors: Gate._vectors,
    Resolve: Gate._resolve,
    Read: Gate._history,
    AskTopics: lambda gate, session, message: gate.queries.ask_topics(session, message),
    AskVector: Gate._history,
    AskExtent: Gate._history,
    AskStatus: lambda gate, session, message: gate.queries.ask_status(session, message),
    AskState: Gate._state,
    AskCharters: lambda gate, session, message: gate.queries.ask_charters(session, message),
    PutCharter: Gate._lay_down,
    AskBatch: Gate._batch,
    Inject: Gate._inject,
}
