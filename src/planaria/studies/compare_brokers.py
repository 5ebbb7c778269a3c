"""NATS and Mosquitto under the workload of the live comparison, with their own clients.

A quarter of the clients is ended without a word, as nodes of overlays are; and the broker is killed
and started again at once, as whoever runs one does. Its clients reconnect as they do by default.
"""

import asyncio
import socket
import struct
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from planaria.core.ids import NodeId
from planaria.lab.contest.workload import FAULT, Workload
from planaria.network.bench.brokers import Brokered, Mosquitto, Nats
from planaria.studies.compare_live import HEAL_SECONDS, LiveFigures, Measured

PROBE = b"<probe %06d>"  # finds out who is served
PROBE_SECONDS = 0.1  # between two of them
ACKED = struct.Struct("=QQ")  # what Linux says of a connection: bytes acknowledged, and received
ACKED_AT = 120  # in `struct tcp_info`

Take = Callable[[bytes], None]


class BrokerClient(ABC):
    """One application of a broker."""

    def __init__(self, port: int, wish: str, take: Take) -> None:
        self.port, self.wish, self.take = port, wish, take

    @abstractmethod
    async def open(self) -> None:
        """Connect and subscribe to a topic with all below it, now and after every reconnection."""

    @abstractmethod
    async def publish(self, topic: str, payload: bytes) -> None:
        """Publish, or let the client do so when it is connected again."""

    @abstractmethod
    async def close(self) -> None:
        """Hang up."""

    @abstractmethod
    def socket(self) -> Any:
        """The connection."""


class NatsClient(BrokerClient):
    """Core NATS with nats-py: at most once."""

    async def open(self) -> None:
        """Connect; nats-py reconnects for as long as it takes."""
        import nats

        async def on_message(message: Any) -> None:
            self.take(message.data)

        async def on_error(_: Exception) -> None:
            """The broker is killed on purpose."""

        server = f"nats://127.0.0.1:{self.port}"
        self._client = await nats.connect(server, max_reconnect_attempts=-1, error_cb=on_error)
        for subject in (_subject(self.wish), f"{_subject(self.wish)}.>"):
            await self._client.subscribe(subject, cb=on_message)
        await self._client.flush()

    async def publish(self, topic: str, payload: bytes) -> None:
        """Publish; what nats-py has no connection for it keeps."""
        await self._client.publish(_subject(topic), payload)

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    def socket(self) -> Any:
        """The connection."""
        transport: Any = self._client._transport
        return transport._io_writer.get_extra_info("socket")


class MosquittoClient(BrokerClient):
    """MQTT with paho-mqtt, QoS 1: at least once, as far as a broker without files goes."""

    async def open(self) -> None:
        """Connect, in a thread of paho's."""
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        loop, subscribed = asyncio.get_running_loop(), asyncio.Event()
        client: Any = Client(CallbackAPIVersion.VERSION2)
        client.on_connect = lambda *_: client.subscribe(f"{self.wish}/#", qos=1)
        client.on_subscribe = lambda *_: loop.call_soon_threadsafe(subscribed.set)
        client.on_message = lambda _client, _data, it: loop.call_soon_threadsafe(
            self.take, it.payload
        )
        self._client = client
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        async with asyncio.timeout(HEAL_SECONDS):
            await subscribed.wait()

    async def publish(self, topic: str, payload: bytes) -> None:
        """Publish; what paho has no connection for it keeps."""
        self._client.publish(topic, payload, qos=1)

    async def close(self) -> None:
        """Hang up."""
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    def socket(self) -> Any:
        """The connection."""
        return self._client.socket()


class BrokerRun(Measured):
    """One broker, and a client in the place of each node. Bytes are those of all connections."""

    known: ClassVar[dict[type[Brokered], type[BrokerClient]]] = {
        Nats: NatsClient,
        Mosquitto: MosquittoClient,
    }

    def __init__(self, broker: type[Brokered], workload: Workload, directory: Path) -> None:
        super().__init__(broker.name, workload, directory)
        self.broker = broker(directory, "", 0)
        self.clients: dict[NodeId, BrokerClient] = {}
        self.messages = 0
        self._probe = 0
        self._probed: dict[NodeId, int] = {}  # the last probe that each was given
        self._starting: asyncio.Task[str] | None = None

    @property
    def alive(self) -> Collection[NodeId]:
        """The clients that were not ended."""
        return self.clients

    async def _start(self, stack: AsyncExitStack) -> None:
        stack.push_async_callback(self.broker.close)
        await self.broker.serve()
        for id, wish in self.workload.wishes.items():
            take = self._taker(id)
            client = self.clients[id] = self.known[type(self.broker)](self.broker.port, wish, take)
            stack.push_async_callback(self._end, id)
            await client.open()

    def _taker(self, id: NodeId) -> Take:
        def take(payload: bytes) -> None:
            self.messages += 1
            if id not in self.clients:
                return  # it was ended
            if payload.startswith(b"<probe "):
                self._probed[id] = max(self._probed.get(id, 0), int(payload[7:-1]))
            else:
                self._take(id, payload, monotonic())

        return take

    async def _end(self, id: NodeId) -> None:
        client = self.clients.pop(id, None)
        if client is not None:
            await client.close()

    async def _break(self) -> None:
        """End clients and kill the broker; it comes back while events are published."""
        for id in self.workload.victims:
            await self._end(id)
        await self.broker.close()
        self._starting = asyncio.create_task(self.broker.serve())

    async def _healed(self) -> bool:
        """Publish probes on all topics until everybody was given one; by whoever publishes."""
        if self._starting is not None:
            await self._starting
        first, end = self._probe + 1, monotonic() + HEAL_SECONDS
        while any(self._probed.get(id, 0) < first for id in self.clients):
            if monotonic() > end:
                return False
            self._probe += 1
            for id, client in self.clients.items():
                await client.publish(self.workload.wishes[id], PROBE % self._probe)
            await asyncio.sleep(PROBE_SECONDS)
        return True

    async def _arrived(self, phase: str) -> None:
        """What was published in the fault came before the probes, or not at all."""
        if phase != FAULT:
            await super()._arrived(phase)

    async def _send(self, node: NodeId, topic: str, payload: bytes) -> None:
        self.messages += 1
        await self.clients[node].publish(topic, payload)

    def _sent(self) -> Counter[str]:
        """In both directions, between the broker and all clients."""
        size = sum(sum(_bytes(client.socket())) for client in self.clients.values())
        return Counter(bytes=size, messages=self.messages)


async def compare_brokers(workload: Workload, report: Callable[[str], None]) -> list[LiveFigures]:
    """Those that are installed, one after the other; says what is missing."""
    found = []
    for broker in BrokerRun.known:
        if lacking := broker.lacking():
            report(f"{broker.name}: skipped, it is not installed ({lacking})")
            continue
        with tempfile.TemporaryDirectory(prefix="planaria-compare-") as directory:
            report(f"{broker.name}: {len(workload.wishes)} clients, {len(workload.events)} events")
            found.append(await BrokerRun(broker, workload, Path(directory)).run())
    return found


def _subject(topic: str) -> str:
    """A topic as NATS writes it."""
    return topic.replace("/", ".")


def _bytes(connection: Any) -> tuple[int, int]:
    """What a connection has sent and received, as Linux counts it."""
    counters = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, ACKED_AT + ACKED.size)
    sent, received = ACKED.unpack_from(counters, ACKED_AT)
    return int(sent), int(received)
