"""A small network in one process whose nodes answer tools: real hosts, real sockets."""

import asyncio
import random
import secrets
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic
from typing import Any

from msgspec import json
from msgspec.structs import replace

from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage
from planaria.core.ids import NodeId
from planaria.core.node import Subscribe
from planaria.core.state import State, encode_state
from planaria.network.client.messages import (
    MESSAGES,
    AskState,
    AskStatus,
    AskTopics,
    ClientMessage,
    Failed,
    StateIs,
    StatusIs,
    TopicsAre,
)
from planaria.network.connection import Connection
from planaria.network.context import Context
from planaria.network.host import Host
from planaria.network.identity import handle_of
from planaria.network.link import Task
from planaria.network.monitor import Monitor
from planaria.network.store.database import Database
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.ring_node import RingNode

INTERVAL = 0.1
CODEC = Codec(MESSAGES)


def ring_node(id: NodeId, supervisors: tuple[NodeId, ...], *, supervise: bool) -> RingNode:
    return RingNode(id, supervisors, random.Random(id), supervise=supervise)


class Watched(Host):
    """A host that lets clients in, as a live node does, and answers what tools ask."""

    ring: RingNode
    database: Database | None = None
    http: str | None = None
    clients = 0

    def __init__(self, ring: RingNode, id: bytes, name: str) -> None:
        super().__init__(
            ring,
            id,
            Codec(RingOverlay.messages),
            lambda effect: self.monitor.on_effect(effect),
            bulk=(Arc, Flood),
            interval=INTERVAL,
        )
        self.ring, self.name, self.started = ring, name, monotonic()
        self.host = self
        self.monitor = Monitor(self)
        self.mute = False

    def _tick(self, due: float) -> None:
        super()._tick(due)
        self.monitor.tick()

    def opened(self, connection: Connection) -> None:
        assert connection.theirs is not None
        if connection.theirs.role != "client":
            super().opened(connection)

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        assert connection.theirs is not None
        if connection.theirs.role != "client":
            super().received(connection, body, task)
            return
        connection.finish(task)
        try:
            question = CODEC.decode(body)
        except MalformedMessage:
            self.malformed += 1
            return
        assert isinstance(question, ClientMessage)
        if not self.mute:
            answer = self.answer(question)
            connection.send(CODEC.encode(answer), answer, bulk=False)

    def answer(self, question: ClientMessage) -> ClientMessage:
        number = question.request
        if isinstance(question, AskStatus):
            return StatusIs(number, json.encode(self.monitor.status()))
        if isinstance(question, AskTopics):
            return TopicsAre(number, sorted(self.ring.peer.topics))
        if isinstance(question, AskState):
            return self.state_of(number, question.topic)
        return Failed(number, "usage", "this node answers tools alone")

    def state_of(self, number: int, topic: str) -> StateIs:
        peer, supervisor = self.ring.peer.state(), None
        mine: State | None = None
        if topic in peer.topics:
            one = peer.topics[topic]
            holdings = replace(one.history.holdings, store=None)
            history = replace(one.history, holdings=holdings)
            mine = PeerState({topic: replace(one, history=history)})
        if self.ring.supervisor is not None:
            served = self.ring.supervisor.state()
            topics = {name: its for name, its in served.topics.items() if name == topic}
            supervisor = encode_state(replace(served, topics=topics))
        return StateIs(
            number,
            [*self.ring.peer.supervisors],
            None if mine is None else encode_state(mine),
            supervisor,
        )


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
        door = await self.nodes[0].start("127.0.0.1:0")
        for node in self.nodes[1:]:
            await node.start("127.0.0.1:0")
            await node.join(door)
        for node in self.peers:
            for topic in self.topics:
                node.command(Subscribe(topic))

    async def stop(self) -> None:
        for node in self.nodes:
            await node.stop()

    @property
    def context(self) -> Context:
        """How tools reach it: by its first node."""
        return Context(self.nodes[0].hello.addresses, insecure=True)

    def legitimate(self) -> bool:
        overlay = RingOverlay()
        overlay.supervisors = tuple(node.node.id for node in self.supervisors)
        states = {node.node.id: node.node.state() for node in self.nodes}
        for topic in self.topics:
            overlay.topic = topic
            if overlay.violations(states, []):
                return False
        return True


async def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something that must come; how long it takes is not judged."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


@contextmanager
def running(network: WatchedNetwork) -> Iterator[asyncio.AbstractEventLoop]:
    """Run a network in a thread of its own until the block ends, so that commands can ask it."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()

    def do(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(120)

    try:
        do(network.start())
        do(until(network.legitimate))
        yield loop
    finally:
        do(network.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
