"""A network of its own to break: started for one run, gone afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from planaria.chaos.target import Member, Target
from planaria.network.context import read_context
from planaria.network.local import LocalNetwork


@asynccontextmanager
async def own_network(
    directory: Path, nodes: int, supervisors: int, interval: float | None
) -> AsyncIterator[Target]:
    """Start nodes that may be broken, and end them all when the block ends."""
    network = LocalNetwork(directory, nodes, supervisors, 0, chaos=True, interval=interval)

    async def start(member: Member) -> None:
        child = next(it for it in network.children if it.name == member.name)
        assert child.process is not None
        await child.process.wait()
        await network.restart(child)

    try:
        await network.start()
        target = Target(read_context(network.context), start)
        try:
            yield target
        finally:
            for member in target.members.values():
                target.go_on(member)
            await target.close()
    finally:
        await asyncio.shield(network.kill())
