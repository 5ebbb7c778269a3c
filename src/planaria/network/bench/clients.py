"""Planaria with clients: three nodes as `planaria up` runs them, and light processes around."""

import asyncio
from collections.abc import Sequence

from planaria.network.bench.contender import TOPIC, Contender, Take
from planaria.network.client.client import Client, connect
from planaria.network.local import CLIENT, LocalNetwork


class Clients(Contender):
    """A publishing client and its subscribers over TLS; nodes store on disk, nobody waits for it.

    A message takes two hops more than between nodes: into the network, and out of it.
    """

    name = "planaria-client"
    has_hub = True
    durability = "memory"
    since = "now"
    nodes = 3
    only: int | None = None  # the number of the node to which all clients go
    _network: LocalNetwork | None = None
    _client: Client | None = None

    async def serve(self) -> str:
        """Run the nodes."""
        self._network = LocalNetwork(self.directory / "network", self.nodes, 1, 0)
        started = await self._network.start()
        self.pids += [one.pid for one in started]
        return " ".join([str(self._network.keys / CLIENT), *(one.listen for one in started)])

    async def _connect(self) -> Client:
        credentials, *servers = self.address.split(" ")
        first = self.number(len(servers))
        servers = servers[first:] + servers[:first]
        self._client = connect(servers, credentials=credentials)
        await self._client.__aenter__()
        return self._client

    def number(self, nodes: int) -> int:
        """To which node this process goes: each node has its share of the clients, or `only`."""
        return (self.index if self.only is None else self.only) % nodes

    async def publisher(self) -> str:
        """Connect."""
        await self._connect()
        return self.address

    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all, at the pace of the network."""
        assert self._client is not None
        await self._client.publish_many(TOPIC, payloads, durability=self.durability)

    async def one(self, payload: bytes) -> None:
        """Publish it, and do not wait for what becomes of it: subscribers tell."""
        assert self._client is not None
        self._client.try_publish(TOPIC, payload, durability=self.durability)

    async def subscribe(self, take: Take) -> None:
        """Tail the topic, batch by batch."""
        client = await self._connect()
        events = client.subscribe(TOPIC, since=self.since)
        await events.__aenter__()
        await events.ready()

        async def read() -> None:
            async for batch in events.batches():
                for event in batch:
                    take(event.payload)

        self._reading = asyncio.ensure_future(read())

    async def close(self) -> None:
        """End the nodes."""
        if self._client is not None:
            await self._client.close(flush=False)
        if self._network is not None:
            await self._network.kill()


class DurableClients(Clients):
    """The same, and a publisher waits until two nodes hold it on disk."""

    name = "planaria-client-durable"
    durability = "disk"
    durable = True


class ReplayingClients(DurableClients):
    """The same; subscribers begin with the first publication that is stored, at a node that has
    it."""

    name = "planaria-replay"
    since = "all"
    only: int | None = 1


class FirstClients(ReplayingClients):
    """Each at a node that is not in the topic yet: it gets all of it first."""

    name = "planaria-replay-first"
    nodes = 5  # one that holds the topic, and one for each reader
    only = None
