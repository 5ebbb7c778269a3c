"""A small network in one process whose nodes answer tools: real hosts, gates and sockets."""

import asyncio
import random
import secrets
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from loop_lab import loop_in_thread
from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Subscribe
from planaria.network.charters import judge
from planaria.network.client.messages import AskState
from planaria.network.context import Context
from planaria.network.gate.clients import client_statuses
from planaria.network.gate.gate import Gate
from planaria.network.gate.session import Session
from planaria.network.host import Host
from planaria.network.identity import handle_of
from planaria.network.monitor import Monitor
from planaria.network.status import ClientStatus, OverlayStatus
from planaria.network.store.database import Database
from planaria.network.tls import Credentials
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.overlay import RingOverlay

INTERVAL = 0.1


def ring_node(id: NodeId, supervisors: tuple[NodeId, ...], *, supervise: bool) -> RingNode:
    return RingNode(id, supervisors, random.Random(id), supervise=supervise, judge=judge(None))


class Door(Gate):
    """A gate that can be deaf, and that can lie."""

    mute = False
    lie: Callable[[], None] | None = None

    def _handle(self, session: Session, message: Message) -> None:
        if self.lie is not None and isinstance(message, AskState):
            self.lie()
        if not self.mute:
            super()._handle(session, message)


class Watched:
    """A node as `planaria node` runs it, but without a directory."""

    database: Database | None = None
    http: str | None = None
    gate: Door

    def __init__(
        self, ring: RingNode, id: bytes, name: str, credentials: Credentials | None = None
    ) -> None:
        self.ring, self.name, self.started, self.id = ring, name, monotonic(), ring.id
        self.host = Host(
            ring,
            id,
            Codec(RingOverlay.messages),
            self._application,
            interval=INTERVAL,
            supervises=ring.supervisor is not None,
            credentials=credentials,
            cluster=credentials.cluster if credentials else "planaria",
        )
        self.monitor = Monitor(self)
        self._ticking: asyncio.Task[None] | None = None

    def overlays(self) -> dict[str, OverlayStatus]:
        return {}

    @property
    def clients(self) -> int:
        return len(self.gate.sessions) if hasattr(self, "gate") else 0

    def connected(self) -> list[ClientStatus]:
        return client_statuses(self.gate, monotonic()) if hasattr(self, "gate") else []

    @property
    def address(self) -> str:
        return self.host.hello.addresses[0]

    async def start(self) -> str:
        self.gate = Door(self.host, self.ring, self.monitor.shown)
        self._ticking = asyncio.ensure_future(self._tick())
        return await self.host.start("127.0.0.1:0")

    async def stop(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        await self.host.stop()

    def _application(self, effect: Effect) -> None:
        self.monitor.on_effect(effect)
        self.gate.on_effect(effect)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            self.monitor.tick()
            self.gate.on_timeout()


class WatchedNetwork:
    """`supervisors` and `n` peers that all want `topics`."""

    def __init__(self, n: int, supervisors: int = 1, topics: tuple[str, ...] = ("news",)) -> None:
        ids = [secrets.token_bytes(16) for _ in range(n + supervisors)]
        serving = tuple(handle_of(id) for id in ids[:supervisors])
        self.topics = topics
        self.nodes = []
        for at, id in enumerate(ids):
            supervise = at < supervisors
            name = f"s{at}" if supervise else f"n{at - supervisors}"
            ring = ring_node(handle_of(id), serving, supervise=supervise)
            self.nodes.append(Watched(ring, id, name))
        self.supervisors, self.peers = self.nodes[:supervisors], self.nodes[supervisors:]

    async def start(self) -> None:
        door = await self.nodes[0].start()
        for node in self.nodes[1:]:
            await node.start()
            await node.host.join(door)
        for node in self.peers:
            for topic in self.topics:
                node.host.command(Subscribe(topic))

    async def stop(self) -> None:
        for node in self.nodes:
            await node.stop()

    @property
    def context(self) -> Context:
        """How tools reach it: by its first node."""
        return Context((self.nodes[0].address,), insecure=True)

    def legitimate(self) -> bool:
        supervisors = [node.id for node in self.supervisors]
        states = {node.id: node.ring.state() for node in self.nodes}
        found = [topic_violations(topic, supervisors, states, []) for topic in self.topics]
        return not any(found)


async def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something that must come; how long it takes is not judged."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


@contextmanager
def running(network: WatchedNetwork) -> Iterator[asyncio.AbstractEventLoop]:
    """Run a network in a thread of its own until the block ends, so that commands can ask it."""
    with loop_in_thread() as loop:

        def do(work: Coroutine[Any, Any, None]) -> None:
            asyncio.run_coroutine_threadsafe(work, loop).result(120)

        try:
            do(network.start())
            do(until(network.legitimate))
            yield loop
        finally:
            do(network.stop())
