"""Nodes with gates and a raw client, on real sockets in one process."""

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import time
from typing import Any, TypeVar

from planaria.core.codec import Codec
from planaria.core.node import Deliver, Effect, Subscribe
from planaria.network.client.messages import (
    MESSAGES,
    ClientMessage,
    Pieces,
    Position,
    Put,
    Resolve,
    Resolved,
    Stored,
    Tail,
    Tailing,
    from_wire,
    to_wire,
)
from planaria.network.connection import CLIENT, VERSIONS, Connection, Hello
from planaria.network.contacts import parse_address
from planaria.network.gate.gate import Gate
from planaria.network.host import Commit, Host
from planaria.network.identity import handle_of
from planaria.network.link import Task
from planaria.network.live import BULK
from planaria.network.store.database import Database
from planaria.network.tls import Credentials
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.records.memory import MemoryStore
from planaria.records.positions import Mark
from planaria.records.record import Draft, Publication, Record, Stream, decode, seal
from planaria.records.store import Store

INTERVAL = 0.1
TOPIC = "news"
CODEC = Codec(MESSAGES)

Answer = TypeVar("Answer", bound=ClientMessage)


async def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something that must come; how long it takes is not judged."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


def void(_: object) -> None:
    """Nothing of it matters."""


class Lab:
    """Some nodes, of which the first `supervisors` supervise; each has a gate, if asked a disk."""

    def __init__(
        self,
        n: int,
        disk: Path | None = None,
        retention: dict[str, Retention] | None = None,
        credentials: list[Credentials] | None = None,
        supervisors: int = 1,
    ) -> None:
        ids = [secrets.token_bytes(16) for _ in range(n)]
        if credentials:
            ids = [it.identity.id for it in credentials]
        self.databases = [Database(disk / str(at)) for at in range(n)] if disk else []
        self.given: list[list[Effect]] = [[] for _ in range(n)]
        self.nodes: list[RingNode] = []
        self.hosts: list[Host] = []
        self.gates: list[Gate] = []
        for at, id in enumerate(ids):
            node = RingNode(
                handle_of(id),
                (),
                random.Random(at),
                supervise=at < supervisors,
                store=self._store(at),
                retention=retention,
            )
            host = Host(
                node,
                id,
                Codec(RingOverlay.messages),
                self._application(at),
                bulk=BULK,
                commit=self._commit(at) if disk else None,
                credentials=credentials[at] if credentials else None,
                interval=INTERVAL,
                supervises=at < supervisors,
            )
            self.nodes.append(node)
            self.hosts.append(host)
            self.gates.append(Gate(host, node, lambda _, at=at: {"node": at}))  # type: ignore[misc]
        self.alive = set(range(n))
        self.clients: list[RawClient] = []
        self._ticking: asyncio.Task[None] | None = None

    def _store(self, at: int) -> Callable[[str], Store]:
        return self.databases[at].topic if self.databases else lambda _: MemoryStore()

    def _commit(self, at: int) -> Commit:
        store = self.databases[at].topic(TOPIC)
        return lambda done: store.commit(lambda error: void(done(error)))

    def _application(self, at: int) -> Callable[[Effect], None]:
        def take(effect: Effect) -> None:
            self.given[at].append(effect)
            self.gates[at].on_effect(effect)

        return take

    async def start(self, members: int = 0) -> None:
        """Have the first `members` nodes subscribe to the topic, and wait until they are in."""
        door = await self.hosts[0].start("127.0.0.1:0")
        for host in self.hosts[1:]:
            await host.start("127.0.0.1:0")
            await host.join(door)
        self._ticking = asyncio.create_task(self._tick())
        for host in self.hosts[:members]:
            host.command(Subscribe(TOPIC))
        await until(lambda: all(self.member(at) for at in range(members)))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            for at in sorted(self.alive):
                self.gates[at].on_timeout()

    def member(self, at: int, topic: str = TOPIC) -> bool:
        found = self.nodes[at].peer.topics.get(topic)
        return found is not None and found.calm

    def store(self, at: int, topic: str = TOPIC) -> Store:
        return self.nodes[at].peer.topics[topic].history.holdings.store

    def delivered(self, at: int) -> list[bytes]:
        found = [it for it in self.given[at] if isinstance(it, Deliver)]
        return [it.payload for effect in found for it in effect.publications]

    async def gets(self, at: int, payloads: list[bytes]) -> None:
        """Wait until a node was delivered so many; it must be these, in any order."""
        await until(lambda: len(self.delivered(at)) >= len(payloads))
        assert sorted(self.delivered(at)) == sorted(payloads)

    async def kill(self, at: int) -> None:
        self.alive.discard(at)
        await self.hosts[at].stop()

    async def client(self, at: int, id: bytes | None = None, **options: Any) -> "RawClient":
        client = RawClient(id or secrets.token_bytes(16), **options)
        await client.connect(self.hosts[at].hello.addresses[0])
        self.clients.append(client)
        return client

    async def stop(self) -> None:
        if self._ticking is not None:  # it started
            self._ticking.cancel()
        for client in self.clients:
            client.close()
        for at in sorted(self.alive):
            await self.hosts[at].stop()
        for database in self.databases:
            database.close()


class RawClient:
    """One connection: sends messages, keeps all answers. `slow`: acknowledges nothing."""

    def __init__(
        self, id: bytes, *, slow: bool = False, credentials: Credentials | None = None
    ) -> None:
        self.hello = Hello(VERSIONS, id, "planaria", role=CLIENT)
        self.credentials, self.slow = credentials, slow
        self.heard: list[ClientMessage] = []
        self.unfinished: list[Task] = []
        self.reason = ""
        self.connection: Connection
        self.stream: Stream = (handle_of(id), secrets.token_bytes(12))
        self.next = 0
        self._open = asyncio.Event()
        self._requests = 0

    async def connect(self, address: str) -> None:
        loop = asyncio.get_running_loop()
        context = self.credentials.context(server=False) if self.credentials else None
        _, self.connection = await loop.create_connection(
            lambda: Connection(self, dialled=True), *parse_address(address), ssl=context
        )
        async with asyncio.timeout(30):
            await self._open.wait()

    def close(self) -> None:
        self.connection.abort()

    # What the connection tells

    def connected(self, connection: Connection) -> None:
        pass

    def opened(self, connection: Connection) -> None:
        self._open.set()

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        message = CODEC.decode(body)
        assert isinstance(message, ClientMessage)
        self.heard.append(message)
        if self.slow and isinstance(message, Pieces):
            self.unfinished.append(task)
        else:
            connection.finish(task)

    def asked(self, connection: Connection, kind: int, body: bytes) -> None:
        pass

    def ready(self, connection: Connection) -> None:
        pass

    def closed(self, connection: Connection, reason: str) -> None:
        self.reason = reason
        self._open.set()

    # What tests do

    async def ends(self) -> None:
        """Wait until the node has hung up."""
        await until(lambda: self.reason)

    def say(self, kind: type[ClientMessage], *fields: Any, **named: Any) -> int:
        """Send a request; returns its number."""
        self._requests += 1
        message = kind(self._requests, *fields, **named)
        assert self.connection.send(CODEC.encode(message), message, bulk=kind is Put)
        return self._requests

    def answers(self, request: int) -> list[ClientMessage]:
        return [it for it in self.heard if it.request == request]

    async def answer(self, request: int, kind: type[Answer]) -> Answer:
        await until(lambda: self.answers(request))
        found = self.answers(request)[0]
        assert isinstance(found, kind), found
        return found

    async def ask(
        self, kind: type[ClientMessage], answer: type[Answer], *fields: Any, **named: Any
    ) -> Answer:
        return await self.answer(self.say(kind, *fields, **named), answer)

    def seal(self, *payloads: bytes, at: int | None = None, **columns: Any) -> Record:
        """The next record of this client's own stream."""
        drafts = [Draft(payload, **columns) for payload in payloads]
        record = seal(self.stream, self.next, drafts, time=int(time()) if at is None else at)
        self.next = record.end
        return record

    async def publish(self, *payloads: bytes, topic: str = TOPIC, **wish: Any) -> Stored:
        return await self.ask(Put, Stored, topic, self.seal(*payloads).data, **wish)

    async def resolve(self, pattern: str, since: str, time: int = 0) -> Resolved:
        """Where to begin; the answer comes in parts."""
        request = self.say(Resolve, pattern, since, time)
        await until(lambda: any(not it.more for it in self._resolved(request)))
        parts = self._resolved(request)
        vectors = {topic: it for part in parts for topic, it in part.vectors.items()}
        last = {topic: it for part in parts for topic, it in part.last.items()}
        return Resolved(request, vectors, parts[0].floor, last)

    def _resolved(self, request: int) -> list[Resolved]:
        return [it for it in self.answers(request) if isinstance(it, Resolved)]

    async def tail(
        self, pattern: str = TOPIC, vectors: dict[str, list[Position]] | None = None, **options: Any
    ) -> int:
        """Follow a pattern; returns when the node says that it does."""
        request = self.say(Tail, pattern, vectors or {}, **options)
        await self.answer_of(request, Tailing)
        return request

    async def answer_of(self, request: int, kind: type[Answer]) -> Answer:
        """The first answer of that kind, whatever comes before it."""
        await until(lambda: any(isinstance(it, kind) for it in self.answers(request)))
        return next(it for it in self.answers(request) if isinstance(it, kind))

    def pieces(self, request: int) -> list[Pieces]:
        return [it for it in self.answers(request) if isinstance(it, Pieces)]

    def publications(self, request: int, topic: str | None = None) -> list[Publication]:
        """What a tail or a range brought, in order."""
        found = [it for it in self.pieces(request) if topic in (None, it.topic)]
        return [
            one
            for message in found
            for piece in message.pieces
            for one in decode(piece.record).publications(piece.lo, piece.hi)
        ]

    def payloads(self, request: int, topic: str | None = None) -> list[bytes]:
        return [one.payload for one in self.publications(request, topic)]

    def vector(self, request: int, topic: str = TOPIC) -> list[Position]:
        """How far the positions have moved."""
        marks: dict[Stream, Mark] = {}
        for message in self.pieces(request):
            if message.topic == topic:
                marks.update(from_wire(message.after))
        return to_wire(marks)


def numbered(*range_of: int) -> list[bytes]:
    """The numbers of a range as payloads."""
    return [b"%d" % number for number in range(*range_of)]


async def publish(client: RawClient, *range_of: int) -> None:
    """Publish them, one by one."""
    for payload in numbered(*range_of):
        await client.publish(payload, copies=1)


def run(
    test: Callable[[Lab], Awaitable[None]],
    n: int = 3,
    members: int = 0,
    seconds: float = 60.0,
    **options: Any,
) -> None:
    """Run a test on a network of `n` nodes, of which the first `members` have the topic."""

    async def main() -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        lab = Lab(n, **options)
        try:
            await lab.start(members)
            await test(lab)
        finally:
            await lab.stop()
        assert errors == [], "nothing is raised behind the scenes"

    asyncio.run(asyncio.wait_for(main(), seconds))
