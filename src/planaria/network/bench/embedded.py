"""Planaria as an application embeds it: every process is a node; the hub supervises."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from planaria.network.bench.contender import TOPIC, Contender, Take
from planaria.network.config import Config
from planaria.network.identity import found_cluster, issue
from planaria.network.live import LiveNode


class Embedded(Contender):
    """Nodes over plain sockets, publications in memory."""

    name = "planaria"
    has_hub = True
    tls = False
    _live: LiveNode | None = None

    @classmethod
    def prepare(cls, directory: Path, processes: int) -> None:
        """Make keys for all."""
        super().prepare(directory, processes)
        if cls.tls:
            found_cluster(directory / "keys", "bench")
            for index in range(processes):
                issue(directory / "keys", f"n{index}", ("node", "supervise"))

    async def serve(self) -> str:
        """Supervise."""
        return (await self._start(supervise=True)).listen

    async def _start(self, *, supervise: bool = False) -> LiveNode:
        self._live = LiveNode(
            Config(
                dir=self.directory / f"node{self.index}",
                listen="127.0.0.1:0",
                join=(self.address,) if self.address else (),
                supervise=supervise,
                keys=self.directory / "keys" / f"n{self.index}" if self.tls else None,
                insecure=not self.tls,
                durability="disk" if self.durable else "none",
            )
        )
        await self._live.start()
        return self._live

    async def publisher(self) -> str:
        """Be a member, and throw away what comes back."""
        await self.subscribe(lambda _: None)
        return self.address

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all, at the pace that the node allows."""
        assert self._live is not None
        await self._live.publish_many(TOPIC, payloads)

    async def one(self, payload: bytes) -> None:
        """Publish it; alone, it leaves at once."""
        assert self._live is not None
        await self._live.publish(TOPIC, payload)

    async def subscribe(self, take: Take) -> None:
        """Be a member, and take batches of events."""
        subscription = (await self._start()).subscribe(TOPIC)
        await subscription.ready()

        async def read() -> None:
            async for batch in subscription:
                for event in batch:
                    take(event.payload)

        self._reading = asyncio.ensure_future(read())

    async def leave(self) -> None:
        """Stop the node, so that nobody takes it for a neighbour."""
        if self._live is not None:
            await self._live.stop()
            self._live = None

    async def close(self) -> None:
        """Stop the node, without the good order that costs the others work."""
        if self._live is not None:
            await self._live.stop(leave=False)


class EmbeddedTLS(Embedded):
    """The same over TLS 1.3, both ends with certificates."""

    name = "planaria-tls"
    tls = True


class EmbeddedDurable(Embedded):
    """The same over plain sockets, every node with its store on disk, synced before delivery."""

    name = "planaria-durable"
    durable = True
