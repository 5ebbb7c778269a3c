"""A small network with certificates in one process, and clients with names."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from planaria.network.charters import seal
from planaria.network.client.client import Client, connect
from planaria.network.config import Config
from planaria.network.identity import found_cluster, issue
from planaria.network.live import LiveNode
from planaria.network.tls import Credentials
from planaria.protocols.skipring.charter import Allowed, Charter
from planaria.protocols.skipring.charters import LayDown

INTERVAL = 0.1
PATIENCE = 1.0  # of clients that nobody has
SECONDS = 60.0  # for a whole test; how long it takes is not judged


class Secure:
    """Nodes of one authority, the first of which supervises; `people` have certificates."""

    def __init__(self, directory: Path, people: Sequence[str] = ("alice", "carol")) -> None:
        self.directory, self.keys = directory, directory / "keys"
        found_cluster(self.keys, "demo")
        self.people = {name: issue(self.keys, name, ("client",)) for name in people}
        self.admin = Credentials(issue(self.keys, "boss", ("admin", "client")))
        self.people["boss"] = self.admin.directory
        self.nodes: list[LiveNode] = []

    async def node(self, **options: Any) -> LiveNode:
        """Start one more node."""
        at, first = len(self.nodes), not self.nodes
        roles = ("node", "supervise") if first else ("node",)
        usual = {
            "dir": self.directory / f"node{at}",
            "keys": issue(self.keys, f"n{at}", roles),
            "listen": "127.0.0.1:0",
            "join": tuple(it.listen for it in self.nodes),
            "supervise": first,
            "interval": INTERVAL,
        }
        node = LiveNode(Config(**{**usual, **options}))
        self.nodes.append(node)
        await node.start()
        return node

    def client(self, name: str, node: LiveNode) -> Client:
        """A client of one node; it learns of others only when that one is gone."""
        return connect([node.listen], credentials=self.people[name], patience=PATIENCE)

    def charter(
        self,
        topic: str,
        version: int,
        allow: Allowed,
        overlay: Literal["ring", "gossip", "content", "mobile"] = "ring",
    ) -> None:
        """Have the supervisor take a charter that the admin signed."""
        now = int(time.time())
        laid = Charter(topic, version, version - 1, now, overlay, allow=allow)
        self.nodes[0].host.command(LayDown(seal(laid, self.admin)))

    async def stop(self) -> None:
        for node in reversed(self.nodes):
            if node.database is not None:
                await node.stop(leave=False)


def run(
    directory: Path, test: Callable[[Secure], Awaitable[None]], seconds: float = SECONDS
) -> None:
    """Run a test on such a network; nothing of it is left."""

    async def main() -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        lab = Secure(directory)
        try:
            async with asyncio.timeout(seconds):
                await test(lab)
        finally:
            await lab.stop()
        assert errors == [], "nothing is raised behind the scenes"

    asyncio.run(main())
