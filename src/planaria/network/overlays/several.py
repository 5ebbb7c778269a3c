"""What a node does for its parts in the overlays beside `ring`, from its start to its end."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from planaria.core.composite import Around, InOverlay, Wake
from planaria.core.ids import NodeId
from planaria.core.node import LinkDown, LinkUp
from planaria.network.config import Config
from planaria.network.host import Host
from planaria.network.overlays.discovery import Discovery
from planaria.network.overlays.keeping import Keeping
from planaria.network.overlays.mobile import MobilePart
from planaria.network.overlays.neighbours import Neighbours
from planaria.network.overlays.part import LivePart
from planaria.network.overlays.registry import compose
from planaria.protocols.skipring.node import RingNode

AROUND_MAX = 64  # nodes that a part is told of


class Several:
    """The parts of one node: `node` is all of them and its `ring` in one."""

    def __init__(self, config: Config, ring: RingNode, rng: Random) -> None:
        self._config, self._ring = config, ring
        self.node = compose(ring, config.overlay, rng)
        mobile = self.node.parts.get(MobilePart.overlay)
        if isinstance(mobile, MobilePart):
            mobile.node.walk = config.walk
        self.keeping = Keeping(config.dir, self.node, disk=config.durability == "disk")
        self._discovery: Discovery | None = None

    async def start(self, host: Host, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Keep what the parts hold, tell them whom they may ask, and meet neighbours."""
        spawn(self.keeping.keep())
        spawn(self._tell_around(host))
        part, config = self.node.parts.get(MobilePart.overlay), self._config
        if not isinstance(part, MobilePart) or not (config.link or config.discover):
            return
        neighbours = Neighbours(host, part, config.link)
        host.command(Wake(part.overlay))
        if config.discover:
            hello = host.hello
            self._discovery = Discovery(neighbours, hello.cluster, hello.addresses[0])
            await self._discovery.start()
        spawn(neighbours.ever())

    async def stop(self) -> None:
        """Write for the last time."""
        await self.keeping.finish()
        if self._discovery is not None:
            await self._discovery.stop()

    def leaving(self) -> bool:
        """Does a part wait to be let go?"""
        return any(it.leaving() for it in self.node.awake() if isinstance(it, LivePart))

    async def _tell_around(self, host: Host) -> None:
        """Those with links, and supervisors, can be asked by who looks for others."""
        near: tuple[NodeId, ...] = ()
        while True:
            known = sorted({*host.links, *self._ring.supervisors} - {self._ring.id})
            if near != (near := tuple(known[:AROUND_MAX])):
                host.command(Around(near))
            self._report_reach(host)
            await asyncio.sleep(self._config.interval)

    def _report_reach(self, host: Host) -> None:
        """Tell again who is in reach: a fault may have changed what was told before."""
        part = self.node.parts.get(MobilePart.overlay)
        if not isinstance(part, MobilePart) or not part.awake:
            return
        known, linked = set(part.node.reach), set(host.links)
        for peer in sorted(known - linked):
            host.command(InOverlay(part.overlay, LinkDown(peer)))
        for peer in sorted(linked - known):
            if part.links_to(peer):
                host.command(InOverlay(part.overlay, LinkUp(peer)))
