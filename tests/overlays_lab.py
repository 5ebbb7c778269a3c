"""Networks of whole nodes in the process of a test, and clients in any of their overlays."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import planaria
from live_lab import config
from planaria.network.client.events import Event
from planaria.network.client.subscription import Subscription
from planaria.network.context import Context
from planaria.network.doctor import Diagnosis, diagnose
from planaria.network.live import LiveNode
from planaria.network.survey import Surveyor

PATIENCE = 40.0  # seconds for what must come; how long it takes is not judged


@asynccontextmanager
async def network(home: Path, n: int, **options: Any) -> AsyncIterator[list[LiveNode]]:
    """Some nodes, the first of which supervises; all know the first."""
    nodes: list[LiveNode] = []
    try:
        for number in range(n):
            join = tuple(it.listen for it in nodes[:1])
            settings = {"supervise": number == 0, "join": join, "name": f"n{number}", **options}
            nodes.append(LiveNode(config(home / f"n{number}", **settings)))
            await nodes[-1].start()
        yield nodes
    finally:
        for node in reversed(nodes):
            await node.stop(leave=False)


def part_of(node: LiveNode, overlay: str) -> Any:
    """The protocol's node in an overlay."""
    return node.node.parts[overlay].node


def at(node: LiveNode, **options: Any) -> planaria.Client:
    """A client of one node, which knows no other until it asks."""
    return planaria.connect(node.listen, insecure=True, **options)


async def until(holds: Callable[[], object]) -> None:
    """Wait for something that must come."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


async def payloads(events: Subscription[Event], count: int) -> list[bytes]:
    """The next so many, sorted."""
    async with asyncio.timeout(PATIENCE):
        return sorted([(await anext(events)).payload for _ in range(count)])


async def diagnosis(*nodes: LiveNode, wait: float = PATIENCE) -> Diagnosis:
    """What `doctor` says when it was told these nodes."""
    context = Context(servers=tuple(it.listen for it in nodes), insecure=True)
    async with Surveyor(context) as surveyor:
        return await diagnose(surveyor, wait)
