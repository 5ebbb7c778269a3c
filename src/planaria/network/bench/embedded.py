"""Planaria as an application embeds it: every process is a node; the hub supervises."""

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path
from random import Random

from planaria.core.codec import Codec
from planaria.core.node import Deliver, Effect, Joined, Publish, PublishMany, Subscribe
from planaria.network.bench.contender import TOPIC, Contender, Take
from planaria.network.host import Host
from planaria.network.identity import found_cluster, handle_of, issue
from planaria.network.store.database import Database
from planaria.network.tls import Credentials
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.supervisor import Supervisor

INTERVAL_SECONDS = 0.5
PACKED = 256  # publications given to the node before others have their turn


class Embedded(Contender):
    """Nodes over plain sockets, publications in memory."""

    name = "planaria"
    has_hub = True
    tls = False

    @classmethod
    def prepare(cls, directory: Path, processes: int) -> None:
        """Make keys for all."""
        if cls.tls:
            found_cluster(directory / "keys", "bench")
            for index in range(processes):
                issue(directory / "keys", f"n{index}")

    async def serve(self) -> str:
        """Supervise."""
        id, credentials = self._identity()
        handle = handle_of(id)
        supervisor = Supervisor(handle, (handle,))
        self._host = Host(
            supervisor, id, Codec(RingOverlay.messages), lambda _: None, bulk=(Arc, Flood),
            interval=INTERVAL_SECONDS, credentials=credentials,
        )  # fmt: skip
        return f"{handle}@{await self._host.start('127.0.0.1:0')}"

    def _identity(self) -> tuple[bytes, Credentials | None]:
        if not self.tls:
            return secrets.token_bytes(16), None
        credentials = Credentials(self.directory / "keys" / f"n{self.index}")
        return credentials.identity.id, credentials

    async def _join(self, take: Take) -> None:
        """Be a node and a subscriber."""
        supervisor, _, door = self.address.partition("@")
        id, credentials = self._identity()
        self._take, self._joined = take, False
        handle = handle_of(id)
        self._database = Database(self.directory / f"store{self.index}") if self.durable else None
        peer = Peer(handle, (int(supervisor),), Random(handle))
        if self._database is not None:
            peer.store = self._database.topic
        self._host = Host(
            peer, id, Codec(RingOverlay.messages), self._on_effect, bulk=(Arc, Flood),
            interval=INTERVAL_SECONDS, credentials=credentials,
            commit=None if self._database is None else self._database.topic(TOPIC).commit,
        )  # fmt: skip
        await self._host.start("127.0.0.1:0")
        await self._host.join(door)
        self._host.command(Subscribe(TOPIC))
        while not self._joined:
            await asyncio.sleep(0.02)

    def _on_effect(self, effect: Effect) -> None:
        if isinstance(effect, Deliver):
            take = self._take
            for one in effect.publications:
                take(one.payload)
        elif isinstance(effect, Joined):
            self._joined = True

    async def publisher(self) -> str:
        """Be a member that publishes, and throws away what it gets."""
        await self._join(lambda _: None)
        return self.address

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all, no faster than the links take it."""
        command, links = self._host.command, self._host.links
        for at in range(0, len(payloads), PACKED):
            packed = payloads[at : at + PACKED]
            command(PublishMany(TOPIC, [Publish(TOPIC, payload) for payload in packed]))
            await asyncio.sleep(0)
            while any(2 * it.link.bulk.bytes > it.link.bulk.bytes_max for it in links.values()):
                await asyncio.sleep(0.001)

    async def one(self, payload: bytes) -> None:
        """Publish it; alone, it leaves at once."""
        self._host.command(Publish(TOPIC, payload))

    async def subscribe(self, take: Take) -> None:
        """Be a member."""
        await self._join(take)

    async def close(self) -> None:
        """Stop the node and close its store."""
        await self._host.stop()
        if getattr(self, "_database", None) is not None:
            self._database.close()


class EmbeddedTLS(Embedded):
    """The same over TLS 1.3, both ends with certificates."""

    name = "planaria-tls"
    tls = True


class EmbeddedDurable(Embedded):
    """The same over plain sockets, every node with its store on disk, synced before delivery."""

    name = "planaria-durable"
    durable = True
