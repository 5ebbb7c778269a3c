"""NATS, JetStream, Redis and Mosquitto: a server between publisher and subscribers."""

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

from planaria.network.bench.contender import TOPIC, Contender, Server, Take, free_port

PIPELINE = 128  # commands in one write to Redis
STREAM_ENTRIES = 1000  # of a stream that are read at once
UNACKNOWLEDGED = 4000  # publications on their way to JetStream
PENDING_BYTES = 1 << 30  # what nats-py keeps for a slow callback: nothing may be dropped


class Brokered(Contender):
    """A contender whose hub is a server of its own."""

    has_hub = True
    port = 0  # where it listened before: a server that is started again is found there
    _server: Server | None = None

    async def _start(self, arguments: Sequence[str], port: int) -> None:
        self._server, self.port = await Server.start(self.program, arguments, port), port
        self.pids.append(self._server.process.pid)

    async def close(self) -> None:
        """End the server."""
        if self._server is not None:
            await self._server.stop()


class Nats(Brokered):
    """Core NATS with nats-py."""

    name = "nats"
    modules = ("nats",)
    program = "nats-server"

    async def serve(self) -> str:
        """Run nats-server."""
        port = self.port or free_port()
        log = str(self.directory / "nats.log")
        options = ["-a", "127.0.0.1", "-p", str(port), "-l", log, *self._options()]
        await self._start(options, port)
        return f"nats://127.0.0.1:{port}"

    def _options(self) -> list[str]:
        return []

    async def publisher(self) -> str:
        """Connect."""
        self._client = await self._connect()
        return self.address

    async def _connect(self) -> Any:
        import nats

        return await nats.connect(self.address, max_outstanding_pings=1000)

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all, then wait until the server has them."""
        publish = self._client.publish
        for payload in payloads:
            await publish(TOPIC, payload)
        await self._client.flush(timeout=60)

    async def one(self, payload: bytes) -> None:
        """Publish it and write it out."""
        await self._client.publish(TOPIC, payload)
        await self._client._flush_pending()

    async def subscribe(self, take: Take) -> None:
        """Subscribe with a callback."""

        async def on_message(message: Any) -> None:
            take(message.data)

        self._client = await self._connect()
        limits = {"pending_msgs_limit": 0, "pending_bytes_limit": PENDING_BYTES}
        await self._client.subscribe(TOPIC, cb=on_message, **limits)
        await self._client.flush()


class JetStream(Nats):
    """JetStream: a stream in files, ordered consumers. Its server syncs files every two minutes."""

    name = "jetstream"
    durable = True

    def _options(self) -> list[str]:
        return ["-js", "-sd", str(self.directory / "jetstream")]

    async def publisher(self) -> str:
        """Make the stream."""
        self._client = await self._connect()
        self._stream = self._client.jetstream(publish_async_max_pending=UNACKNOWLEDGED)
        await self._stream.add_stream(name=TOPIC, subjects=[TOPIC])
        return self.address

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all, so many unacknowledged at a time; then wait for the acknowledgements."""
        publish = self._stream.publish_async
        waiting: list[Awaitable[Any]] = [
            await publish(TOPIC, payload, wait_stall=30) for payload in payloads
        ]
        await asyncio.gather(*waiting)

    async def one(self, payload: bytes) -> None:
        """Publish it; the acknowledgement is waited for."""
        await self._stream.publish(TOPIC, payload)

    async def subscribe(self, take: Take) -> None:
        """An ordered consumer."""

        async def on_message(message: Any) -> None:
            take(message.data)

        self._client = await self._connect()
        await self._client.jetstream().subscribe(TOPIC, cb=on_message, ordered_consumer=True)


class Redis(Brokered):
    """Publish and subscribe of Redis, pipelined, with redis-py on asyncio."""

    name = "redis"
    modules = ("redis",)
    program = "redis-server"

    async def serve(self) -> str:
        """Run redis-server, nothing on disk, and drop no slow subscriber."""
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        options += ["--dir", str(self.directory)]
        options += ["--client-output-buffer-limit", "pubsub 0 0 0"]
        await self._start(options, port)
        return f"redis://127.0.0.1:{port}"

    def _connect(self) -> Any:
        from redis.asyncio import Redis as Client

        return Client.from_url(self.address)

    async def publisher(self) -> str:
        """Connect."""
        self._client = self._connect()
        return self.address

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all in pipelines."""
        for at in range(0, len(payloads), PIPELINE):
            pipeline = self._client.pipeline(transaction=False)
            for payload in payloads[at : at + PIPELINE]:
                pipeline.publish(TOPIC, payload)
            await pipeline.execute()

    async def one(self, payload: bytes) -> None:
        """Publish it."""
        await self._client.publish(TOPIC, payload)

    async def subscribe(self, take: Take) -> None:
        """Listen in a task."""
        listener = self._connect().pubsub(ignore_subscribe_messages=True)
        await listener.subscribe(TOPIC)

        async def run() -> None:
            async for message in listener.listen():
                take(message["data"])

        self._task = asyncio.create_task(run())


class RedisStreams(Redis):
    """Streams of Redis: everything is kept in memory and read from the beginning."""

    name = "redis-streams"
    durable = False

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Add all in pipelines."""
        for at in range(0, len(payloads), PIPELINE):
            pipeline = self._client.pipeline(transaction=False)
            for payload in payloads[at : at + PIPELINE]:
                pipeline.xadd(TOPIC, {"payload": payload})
            await pipeline.execute()

    async def one(self, payload: bytes) -> None:
        """Add it."""
        await self._client.xadd(TOPIC, {"payload": payload})

    async def subscribe(self, take: Take) -> None:
        """Read on from the beginning, with the blocking client, which is the faster one."""
        from redis import Redis as Client

        client: Any = Client.from_url(self.address)
        last = b"0"

        def run() -> None:
            nonlocal last
            while True:
                for _, entries in client.xread({TOPIC: last}, count=STREAM_ENTRIES, block=0):
                    for number, fields in entries:
                        take(fields[b"payload"])
                        last = number

        Thread(target=run, daemon=True).start()


class Mosquitto(Brokered):
    """MQTT 3.1.1, QoS 0, with Mosquitto and paho-mqtt."""

    name = "mosquitto"
    modules = ("paho",)
    program = "mosquitto"

    async def serve(self) -> str:
        """Run mosquitto, which drops nothing for being slow."""
        port = self.port or free_port()
        lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "persistence false"]
        lines += ["max_queued_messages 0", "log_type error", "set_tcp_nodelay true"]
        config = Path(self.directory / "mosquitto.conf")
        config.write_text("\n".join(lines) + "\n")
        await self._start(["-c", str(config)], port)
        return str(port)

    def _connect(self, take: Take | None = None) -> Any:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client: Any = Client(CallbackAPIVersion.VERSION2)
        subscribed = Event()

        def on_connect(*_: Any) -> None:
            if take is None:
                subscribed.set()
            else:
                client.subscribe(TOPIC)

        client.on_connect = on_connect
        client.on_subscribe = lambda *_: subscribed.set()
        if take is not None:
            client.on_message = lambda _client, _userdata, message: take(message.payload)
        client.max_queued_messages_set(0)
        client.connect("127.0.0.1", int(self.address))
        Thread(target=client.loop_forever, daemon=True).start()
        subscribed.wait(30)
        return client

    async def publisher(self) -> str:
        """Connect."""
        self._client = self._connect()
        return self.address

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all; the last one has left when this returns."""
        last: Any = None
        for payload in payloads:
            last = self._client.publish(TOPIC, payload)
        if last is not None:
            last.wait_for_publish(60)

    async def one(self, payload: bytes) -> None:
        """Publish it."""
        self._client.publish(TOPIC, payload)

    async def subscribe(self, take: Take) -> None:
        """Subscribe with a callback, in the client's thread."""
        self._connect(take)
