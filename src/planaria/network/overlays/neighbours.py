"""Whom a node of `mobile` is a neighbour of: those named with `--link`, and those discovered.

Without either, all to which it has a link. A link has two ends, and it is enough that one of them
was told.
"""

import asyncio
import logging
from collections.abc import Sequence

from planaria.core.composite import InOverlay
from planaria.core.errors import PlanariaError
from planaria.core.ids import NodeId
from planaria.core.node import LinkUp
from planaria.network.host import Host
from planaria.network.overlays.mobile import MobilePart

RETRY_SECONDS = 1.0  # between attempts to reach a neighbour that is out of reach
SILENCE = 30  # attempts between two complaints
FOUND_MAX = 256  # discovered neighbours that are dialled; of more the first are forgotten

log = logging.getLogger("planaria.node")


class Neighbours:
    """Dials the neighbours of a node, again and again while they are out of reach."""

    def __init__(self, host: Host, part: MobilePart, given: Sequence[str]) -> None:
        self._host, self._part = host, part
        self._near: set[NodeId] = set()
        part.near = self._near
        self._given = dict.fromkeys(given)
        self._found: dict[str, None] = {}
        self._who: dict[str, NodeId] = {}  # who answered at an address
        self._failed: dict[str, int] = {}

    def discover(self, address: str) -> None:
        """There is a neighbour at this address."""
        self._found.pop(address, None)
        self._found[address] = None
        if len(self._found) > FOUND_MAX:
            self.forget(next(iter(self._found)))

    def forget(self, address: str) -> None:
        """There is none any more, unless it was named."""
        self._found.pop(address, None)
        if address not in self._given:
            self._failed.pop(address, None)
            self._near.discard(self._who.pop(address, -1))

    async def ever(self) -> None:
        """As long as the node runs."""
        while True:
            addresses = {**self._given, **self._found}
            due = [it for it in addresses if self._who.get(it) not in self._host.links]
            ended = await asyncio.gather(*map(self._reach, due), return_exceptions=True)
            for error in filter(None, ended):  # after all the others have had their turn
                raise error
            await asyncio.sleep(RETRY_SECONDS)

    async def _reach(self, address: str) -> None:
        try:
            await self._join(address)
        except PlanariaError as error:
            failed = self._failed.get(address, 0)
            self._failed[address] = failed + 1
            if failed % SILENCE == 0:
                log.warning("neighbour %s is out of reach: %s", address, error)

    async def _join(self, address: str) -> None:
        peer = await self._host.join(address)
        if address not in self._given and address not in self._found:
            return  # forgotten meanwhile
        self._failed.pop(address, None)
        if peer == self._host.node.id:
            self._given.pop(address, None)
            self._found.pop(address, None)
            return
        self._who[address] = peer
        self._near.add(peer)
        if self._part.awake and peer in self._host.links:
            self._host.command(InOverlay(self._part.overlay, LinkUp(peer)))
