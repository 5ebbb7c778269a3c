"""ZeroMQ and zenoh: a socket from the publisher to each subscriber, nothing between them."""

import asyncio
from collections.abc import Sequence
from threading import Thread
from typing import Any

from planaria.network.bench.contender import TOPIC, Contender, Take, free_port


class ZeroMQ(Contender):
    """PUB and SUB sockets in an asyncio application; nothing is dropped, the publisher queues."""

    name = "zmq"
    modules = ("zmq",)

    async def publisher(self) -> str:
        """Bind."""
        import zmq

        self._socket: Any = self._context().socket(zmq.PUB)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.LINGER, 0)
        return f"tcp://127.0.0.1:{self._socket.bind_to_random_port('tcp://127.0.0.1')}"

    def _context(self) -> Any:
        from zmq.asyncio import Context

        return Context.instance()

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Send all."""
        send = self._socket.send
        for payload in payloads:
            await send(payload)

    async def one(self, payload: bytes) -> None:
        """Send it."""
        await self._socket.send(payload)

    async def subscribe(self, take: Take) -> None:
        """Receive in a task."""
        receive = self._receiver().recv

        async def run() -> None:
            while True:
                take(await receive())

        self._task = asyncio.create_task(run())

    def _receiver(self) -> Any:
        import zmq

        receiver: Any = self._context().socket(zmq.SUB)
        receiver.setsockopt(zmq.SUBSCRIBE, b"")
        receiver.setsockopt(zmq.LINGER, 0)
        receiver.connect(self.address)
        return receiver


class ZeroMQBlocking(ZeroMQ):
    """The same with the blocking API, in a thread that does nothing else: the least it can cost."""

    name = "zmq-blocking"

    def _context(self) -> Any:
        from zmq import Context

        return Context.instance()

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Send all."""
        send = self._socket.send
        for payload in payloads:
            send(payload)

    async def one(self, payload: bytes) -> None:
        """Send it."""
        self._socket.send(payload)

    async def subscribe(self, take: Take) -> None:
        """Receive in a thread."""
        receive = self._receiver().recv

        def run() -> None:
            while True:
                take(receive())

        Thread(target=run, daemon=True).start()


class Zenoh(Contender):
    """Peers that connect directly, reliable, blocking when congested; callbacks."""

    name = "zenoh"
    modules = ("zenoh",)

    async def publisher(self) -> str:
        """Listen."""
        import zenoh

        address = f"tcp/127.0.0.1:{free_port()}"
        self._session: Any = zenoh.open(_zenoh_config("listen", address))
        self._publisher = self._session.declare_publisher(
            TOPIC,
            congestion_control=zenoh.CongestionControl.BLOCK,
            reliability=zenoh.Reliability.RELIABLE,
        )
        return address

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Put all."""
        put = self._publisher.put
        for payload in payloads:
            put(payload)

    async def one(self, payload: bytes) -> None:
        """Put it."""
        self._publisher.put(payload)

    async def subscribe(self, take: Take) -> None:
        """Connect to the publisher alone."""
        import zenoh

        self._session = zenoh.open(_zenoh_config("connect", self.address))
        self._subscriber = self._session.declare_subscriber(
            TOPIC, lambda sample: take(sample.payload.to_bytes())
        )


def _zenoh_config(side: str, address: str) -> Any:
    import zenoh

    config: Any = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/gossip/enabled", "false")
    if side == "connect":
        config.insert_json5("listen/endpoints", "[]")
    config.insert_json5(f"{side}/endpoints", f'["{address}"]')
    return config
