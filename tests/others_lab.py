"""The gate's part for overlays beside `ring` by itself: no sockets, no time but the test's."""

from collections.abc import Callable, Iterable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from planaria.core.composite import InOverlay
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import Command, Deliver, Notice, Publish, Subscribe
from planaria.network.client.messages import ClientMessage, Passing, Put, Tail
from planaria.network.connection import Connection
from planaria.network.gate.others import Others
from planaria.network.gate.session import Session, Unsure
from planaria.network.overlays.registry import PARTS, compose
from planaria.protocols.skipring.charter import nobody
from planaria.protocols.skipring.charters import Charters
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.peer import Peer
from planaria.records.memory import MemoryStore
from planaria.records.record import INCARNATION_BYTES, Draft, Record, decode, seal

PUBLISHER = 7


class Wire:
    """A connection that takes everything; `sent` is what a client would hear."""

    def __init__(self, peer: int = PUBLISHER) -> None:
        self.peer, self.roles = peer, ()
        self.identity: SimpleNamespace | None = None
        self.link = SimpleNamespace(busy=False)
        self.sent: list[ClientMessage] = []

    def send(self, data: bytes, message: ClientMessage, *, bulk: bool) -> bool:
        self.sent.append(message)
        return True


class OthersLab:
    """Clients of one node; `verdict` says of a topic what rights say: None is not known."""

    def __init__(self, links: Callable[[], Iterable[Connection]] = tuple) -> None:
        ring = RingNode(1, (), Random(0), supervise=True, store=lambda _: MemoryStore())
        self.node = compose(ring, tuple(PARTS), Random(0))
        self.node.wake("gossip")
        self.now = 0.0
        self.verdict: Callable[[str], str | None] = lambda _: ""
        self.commands: list[Command] = []
        self.number = self.published = 0
        self.disk: str | None = None  # what prevents that something is written
        self.room: int | None = None  # for so many publications; None: for any number
        self.topics_full = False
        self.refused = 0  # how many are refused next, room or not
        self.full: Callable[[], None] = lambda: None  # what happens with each of them
        self.others = Others(
            self.node,
            self._command,
            lambda: self.now,
            lambda done: done(self.disk),
            lambda _, topic: self.verdict(topic),
            self._check,
            links,
        )

    def _check(self, _: Session, topic: str) -> None:
        refusal = self.verdict(topic)
        if refusal != "":
            raise Unsure("not known") if refusal is None else UsageError(refusal)

    def _command(self, command: Command) -> None:
        if isinstance(command, InOverlay) and isinstance(command.command, Publish):
            self.refused -= 1
            if self.refused >= 0 or (self.room is not None and self.published >= self.room):
                raise CapacityExceeded("publish later")
            self.published += 1
            self.full()
        found = command.command if isinstance(command, InOverlay) else command
        if isinstance(found, Subscribe) and self.topics_full:
            raise CapacityExceeded("64 topics: leave one first")
        self.commands.append(found)

    def session(self, peer: int = PUBLISHER) -> Session:
        return Session(cast(Connection, Wire(peer)))

    def follow(self, session: Session, request: int, pattern: str = "#", **options: Any) -> None:
        asked = Tail(request, pattern, {}, floor=1, **{"overlay": "gossip", **options})
        session.open += 1
        self.others.follow(session, asked, pattern, "gossip")

    def wake(self, wish: str) -> None:
        """Have the part itself subscribe to what a tail needs."""
        self.node.on_command(InOverlay("gossip", Subscribe(wish)))

    def record(self, *payloads: bytes) -> Record:
        self.number += 1
        start = self.number.to_bytes(INCARNATION_BYTES, "big")
        return seal((PUBLISHER, start), 0, [Draft(it) for it in payloads], time=1)

    def put(self, session: Session, request: int, overlay: str, *payloads: bytes) -> None:
        """A client publishes."""
        session.open += 1
        message = Put(request, "news", self.record(*payloads).data, overlay=overlay)
        session.attempt(request, lambda: self.others.put(session, message, overlay))

    def arrives(self, topic: str, *payloads: bytes) -> None:
        """A publication comes from another node."""
        self.others.on_effect("gossip", Deliver.one(topic, b"", self.record(*payloads).data))

    def tells(self, topic: str, kind: str = "gap") -> None:
        self.others.on_effect("gossip", Notice(topic, kind, {}))


def named(session: Session, name: str) -> Session:
    """The same client with a certificate."""
    cast(Wire, session.connection).identity = SimpleNamespace(name=name)
    return session


def heard(session: Session) -> list[ClientMessage]:
    return cast(Wire, session.connection).sent


def passed(session: Session) -> list[tuple[str, bytes]]:
    """The topic and payload of all that a client was given."""
    return [
        (message.topic, one.payload)
        for message in heard(session)
        if isinstance(message, Passing)
        for piece in message.pieces
        for one in decode(piece.record).publications(piece.lo, piece.hi)
    ]


def charters(*supervisors: int, everything: bool = False) -> Charters:
    """Those at node 1, which keeps none."""
    peer = Peer(1, supervisors, Random(0), store=lambda _: MemoryStore())
    return Charters(1, peer, Random(0), nobody, everything=everything)
