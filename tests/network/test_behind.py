"""Who cannot take what is published is left behind, and catches up while others go on."""

import asyncio
from pathlib import Path

import pytest

from planaria.network import host as hosts
from planaria.network.config import Config
from planaria.network.embedded import Subscription
from planaria.network.live import LiveNode

TOPIC = "news"
LARGE = bytes(1 << 15)
SECONDS = 60.0


def node(directory: Path, *join: str, supervise: bool = False) -> LiveNode:
    return LiveNode(
        Config(
            dir=directory,
            listen="127.0.0.1:0",
            join=join,
            supervise=supervise,
            insecure=1,
            durability="none",
            interval=0.1,
        )
    )


async def read(subscription: Subscription, into: list[int]) -> None:
    async for batch in subscription:
        into += [int.from_bytes(event.payload[:8], "big") for event in batch]


def test_a_node_that_read_nothing_for_a_while_catches_up_with_publishers_that_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "SILENCE_SECONDS", SECONDS)  # slow, but not dead

    async def main() -> None:
        hub = node(tmp_path / "hub", supervise=True)
        await hub.start()
        nodes = [node(tmp_path / f"n{at}", hub.listen) for at in range(4)]
        taken: list[list[int]] = [[] for _ in nodes]
        tasks: list[asyncio.Task[None]] = []
        try:
            for one, into in zip(nodes, taken, strict=True):
                await one.start()
                subscription = one.subscribe(TOPIC)
                await subscription.ready()
                tasks.append(asyncio.ensure_future(read(subscription, into)))
            await settled(nodes)
            await leave_behind_and_catch_up(nodes, taken, tasks)
        finally:
            for task in tasks:
                task.cancel()
            for one in (*nodes, hub):
                await one.stop(leave=False)

    asyncio.run(main())


async def settled(nodes: list[LiveNode]) -> None:
    """Wait for the shortcut of SR(4): without it the slow node is on the way to another."""
    members = [one.ring.peer.topics[TOPIC].subscriber for one in nodes]
    async with asyncio.timeout(SECONDS):
        while sum(len(one.neighbours()) for one in members) < 10:
            await asyncio.sleep(0.01)


def read_nothing(slow: LiveNode) -> None:
    """Stop reading from all links, new ones too; one that was at work has resumed by itself."""
    for link in slow.host.links.values():
        if link._transport is not None and link._transport.is_reading():
            link._transport.pause_reading()


async def leave_behind_and_catch_up(
    nodes: list[LiveNode], taken: list[list[int]], tasks: list[asyncio.Task[None]]
) -> None:
    publisher, slow, published = nodes[0], nodes[-1], 0

    async def publish(body: bytes) -> None:
        nonlocal published
        await publisher.publish(TOPIC, published.to_bytes(8, "big") + body)
        published += 1

    async with asyncio.timeout(SECONDS):
        for _ in range(300):  # far beyond what the windows of all links hold
            read_nothing(slow)
            await publish(LARGE)
        while min(map(len, taken[:-1])) < 300:
            await asyncio.sleep(0.01)
    assert sum(one.host.dropped for one in nodes[:-1]), "nothing more was queued for it"
    assert len(taken[-1]) < 300

    async def go_on() -> None:
        while True:
            await publish(b"")
            await asyncio.sleep(0.02)

    tasks.append(asyncio.ensure_future(go_on()))
    for link in slow.host.links.values():
        assert link._transport is not None
        link._transport.resume_reading()
    async with asyncio.timeout(SECONDS):
        while len(taken[-1]) < published:
            await asyncio.sleep(0.001)
    tasks.pop().cancel()
    async with asyncio.timeout(SECONDS):
        while min(map(len, taken)) < published:
            await asyncio.sleep(0.01)
    whole = list(range(published))
    assert taken[:-1] == [whole] * (len(nodes) - 1)
    # Patience with holes may end before it has caught up: then what fills them is late.
    assert sorted(taken[-1]) == whole
