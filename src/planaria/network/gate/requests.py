"""What clients ask of a node: each request goes to who answers it, once it is known where its
topic is and that its client may ask that."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from planaria.core.errors import UsageError
from planaria.core.message import Message
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
from planaria.network.gate.held import size_of
from planaria.network.gate.laid import RING, Laid
from planaria.network.gate.queries import Queries
from planaria.network.gate.session import TAILS_MAX, Session, count
from planaria.network.gate.showing import Showing
from planaria.network.rights import ADMIN, PUBLISH, SUBSCRIBE
from planaria.protocols.skipring.charter import VOID, decode_sealed
from planaria.protocols.skipring.charters import LayDown

POSITION_BYTES = 64  # that a position takes in memory, about

if TYPE_CHECKING:
    from planaria.network.gate.gate import Gate


class Requests:
    """Serves what the clients of one node ask."""

    def __init__(self, gate: "Gate", chaos: Agent | None) -> None:
        """`chaos` does this node harm when an admin says so; None: nobody may."""
        self.host, self.memberships, self._chaos = gate.host, gate.memberships, chaos
        self.overlays, self.warden = gate.overlays, gate.warden
        self.publishing, self.settling = gate.publishing, gate.settling
        self.tails, self.others = gate.tails, gate.others
        self.queries: Queries = gate.queries
        self.showing: Showing = gate.showing

    def handle(self, session: Session, message: Message) -> None:
        """A client asks."""
        if isinstance(message, Put | PutNew):
            self._put(session, message)
        elif isinstance(message, Stop):
            session.awaited.pop(message.request, None)
            self.tails.stop(session, message.request)
            if self.others is not None:
                self.others.stop(session, message.request)
        elif isinstance(message, ClientMessage) and session.admit(message.request):
            handler = _HANDLERS.get(type(message))
            session.attempt(message.request, lambda: _handled(handler, self, session, message))

    def _where(
        self,
        session: Session,
        message: Put | PutNew | Tail | Resolve | Read | AskVector | AskExtent | AskBatch,
        topic: str,
        act: Callable[[str], None],
        size: int = 0,
    ) -> None:
        """Do something as soon as it is known in which overlay a topic is."""

        def go_on(laid: Laid) -> None:
            if session.closed or (isinstance(message, Tail) and not session.begins(message)):
                return
            overlay = laid.agreed(topic, getattr(message, "overlay", ""))
            if overlay != RING and (self.others is None or not self.others.serves(overlay)):
                reason = f"this node takes no part in {overlay}: ask another"
                session.fail(message.request, "elsewhere", reason)
                return
            act(overlay)

        if self.others is None and session.name is None:
            session.attempt(message.request, lambda: go_on(Laid(RING, False)))
        elif not self.overlays.when(
            topic, lambda laid: session.attempt(message.request, lambda: go_on(laid)), size
        ):
            session.awaited.pop(message.request, None)
            session.fail(message.request, "full", "no supervisor says what is laid down: wait")

    def _put(self, session: Session, message: Put | PutNew) -> None:
        """Publish; most topics are known to be in rings, and their publishers allowed."""
        if self.others is not None or session.name is not None:
            laid = self.overlays.settled(message.topic)
            refusal = self.warden.refusal(session, PUBLISH, message.topic)
            other = laid is None or laid.overlay != RING or message.overlay not in ("", RING)
            if other or refusal != "":
                size = size_of(message)
                if session.in_turn(message) and session.admit(message.request, size):
                    act = partial(self._put_in, session, message)
                    self._where(session, message, message.topic, act, size)
                return
        self._put_in_ring(session, message)

    def _put_in(self, session: Session, message: Put | PutNew, overlay: str) -> None:
        self.warden.check_put(session, message.topic)
        if overlay == RING:
            session.open -= 1  # counted again
            self._put_in_ring(session, message)
        elif isinstance(message, Put) and message.stage:
            raise UsageError(_ring_alone(message.topic, overlay))
        elif self.others is not None:
            self.others.put(session, message, overlay)

    def _put_in_ring(self, session: Session, message: Put | PutNew) -> None:
        session.no_turn(message)
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
        whole = session.whole(message)
        pattern = self.warden.readable(session, message.pattern)

        def follow(overlay: str) -> None:
            self.warden.check_named(session, pattern)
            if overlay == RING or self.others is None:
                self._tail_ring(session, whole, pattern)
            else:
                self.others.follow(session, whole, pattern, overlay)

        session.awaited[message.request] = whole
        self._where(session, whole, pattern, follow, POSITION_BYTES * count(whole.vectors))

    def _tail_ring(self, session: Session, message: Tail, pattern: str) -> None:
        if len(session.tails) >= TAILS_MAX:
            raise UsageError(f"{TAILS_MAX} tails of one client: stop one first")
        self.memberships.join(pattern)
        self.tails.begin(session, message, pattern)

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
            self.showing.ask_state(session, message)
        else:
            self.showing.ask_part(session, message, self.others)

    def _batch(self, session: Session, message: AskBatch) -> None:
        def ask(overlay: str) -> None:
            self.warden.check_put(session, message.topic)
            if overlay != RING:
                raise UsageError(_ring_alone(message.topic, overlay))
            self.settling.ask(session, message)

        self._where(session, message, message.topic, ask, len(message.manifest))

    def _inject(self, session: Session, message: Inject) -> None:
        if self._chaos is None:
            raise UsageError("this node was not started with --allow-chaos: nobody may break it")
        if self.host.credentials is not None and ADMIN not in session.connection.roles:
            raise UsageError(f"only a certificate with the role {ADMIN!r} may break a node")
        session.answer(self._chaos.inject(message))


def _ring_alone(topic: str, overlay: str) -> str:
    return f"batches are published in rings alone: {topic} is {overlay}"


def _handled(
    handler: "Callable[[Requests, Session, Any], None] | None",
    gate: Requests,
    session: Session,
    message: ClientMessage,
) -> None:
    if handler is None:
        raise UsageError(f"{type(message).__name__} is for clients, not for nodes")
    handler(gate, session, message)


_HANDLERS: dict[type[Message], Callable[[Requests, Session, Any], None]] = {
    Tail: Requests._tail,
    Vectors: Requests._vectors,
    Resolve: Requests._resolve,
    Read: Requests._history,
    AskTopics: lambda gate, session, message: gate.showing.ask_topics(session, message),
    AskVector: Requests._history,
    AskExtent: Requests._history,
    AskStatus: lambda gate, session, message: gate.showing.ask_status(session, message),
    AskState: Requests._state,
    AskCharters: lambda gate, session, message: gate.showing.ask_charters(session, message),
    PutCharter: Requests._lay_down,
    AskBatch: Requests._batch,
    Inject: Requests._inject,
}
