"""The gate: a node's door for clients, which are in no ring and go on elsewhere if it dies."""

import asyncio
from collections.abc import Callable
from typing import Any

from planaria.core.composite import Composite, FromOverlay
from planaria.core.errors import MalformedMessage
from planaria.core.message import Message
from planaria.core.node import Deliver, Effect, Joined, Notice
from planaria.network.chaos.agent import Agent
from planaria.network.connection import Connection, Hello
from planaria.network.gate.laid import Overlays
from planaria.network.gate.moves import Moves
from planaria.network.gate.others import Keep, Others
from planaria.network.gate.publishing import Publishing
from planaria.network.gate.queries import Queries
from planaria.network.gate.requests import Requests
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import CODEC, Session
from planaria.network.gate.settling import Settling
from planaria.network.gate.showing import Showing
from planaria.network.gate.tails import Tails
from planaria.network.gate.warden import Warden
from planaria.network.host import Host
from planaria.network.link import Task
from planaria.network.rights import RightsFile
from planaria.network.tls import Credentials
from planaria.protocols.skipring.batches import Consulted
from planaria.protocols.skipring.charters import LaidDown
from planaria.protocols.skipring.deposits import DepositAnswered
from planaria.protocols.skipring.node import RingNode

CLIENTS_MAX = 1024  # at one node
WINDOW_BYTES = 1 << 21  # of publications on their way to each, half of what a node gets
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
        keep: Keep = lambda done: done(None),
        rights: RightsFile | None = None,
    ) -> None:
        """`status` is asked what clients are shown, as `Monitor.shown` answers.

        `keeps`: does this node's own application want this topic or pattern? `chaos` does this
        node harm when an admin says so; None: nobody may. `node` has the parts in other
        overlays, which `keep` puts on disk; without it there is `ring` alone. `rights` are what
        its clients may do; None: all that charters allow.
        """
        loop = asyncio.get_running_loop()
        self._keeps = keeps
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
        judged = (self.warden.unreadable, self.warden.may_hear)
        self.tails = Tails(self.memberships, loop.time, loop.call_soon, *judged)
        self.queries = Queries(self.memberships, loop.time, host.wall, host.interval, self.warden)
        self.showing = Showing(self.queries, status, loop.time, loop.call_soon, self.warden)
        others = (host.command, loop.time, keep, self.warden.unreadable, self.warden.check_put)
        links = host.links.values
        self.others = None if node is None else Others(node, *others, links)
        self._moves = Moves(self.overlays, self.tails, self.others, loop.time)
        self._requests = Requests(self, chaos)
        self._clock = loop.time
        host.clients = self

    # What the node tells

    def on_deliver(self, effect: Deliver) -> None:
        """Something was published on a topic of this node."""
        self.tails.on_deliver(effect)
        self.queries.on_news(effect.topic)

    def on_effect(self, effect: Effect) -> None:
        """Something happened at this node."""
        if isinstance(effect, FromOverlay):
            if self.others is not None:
                self.others.on_effect(effect.overlay, effect.effect)
        elif isinstance(effect, Deliver):
            self.on_deliver(effect)
        elif isinstance(effect, DepositAnswered):
            self.publishing.on_answer(effect)
            self.settling.on_refusal(effect)
        elif isinstance(effect, Consulted):
            self.settling.on_answer(effect)
        elif isinstance(effect, Joined):
            self.memberships.on_joined(effect)
            self.publishing.look(effect.pattern)
            self.tails.on_joined()
        elif isinstance(effect, Notice):
            self.tails.on_notice(effect)
        elif isinstance(effect, LaidDown):
            self.overlays.on_laid_down(effect)
            self.tails.judge_anew()
            if self.others is not None:
                self.others.judge_anew()

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
        self._moves.on_timeout()
        self.memberships.release(self.tails.patterns(), self._keeps)

    def close(self) -> None:
        """Serve no client any more: each goes on at another node."""
        self.host.clients = None
        self.publishing.close()
        if self.others is not None:
            self.others.close()
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
        connection.link.bulk.bytes_max = WINDOW_BYTES
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

    def _handle(self, session: Session, message: Message) -> None:
        self._requests.handle(session, message)

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
