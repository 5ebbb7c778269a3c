"""Nodes with `--durability none` beside others: what is acknowledged as on disk is on a disk."""

from pathlib import Path

import pytest

from live_lab import TOPIC, config, run
from overlays_lab import at, network, until
from planaria.core.errors import UsageError
from planaria.network.live import LiveNode


def test_only_members_with_a_disk_are_counted_unless_memory_is_enough(tmp_path: Path) -> None:
    async def main() -> None:
        kept = config(tmp_path / "kept")
        async with LiveNode(kept) as disk:
            other = config(tmp_path / "other", durability="none", join=(disk.listen,))
            async with LiveNode(other) as memory, at(memory) as client:
                for node in (disk, memory):
                    await node.subscribe(TOPIC).ready()
                ack = await client.publish(TOPIC, b"on a disk", copies=2)
                assert (ack.copies, ack.members) == (1, 2)
                ack = await client.publish(TOPIC, b"in memory", copies=2, durability="memory")
                assert (ack.copies, ack.members) == (2, 2)
                topics = memory.ring.peer.topics
                await until(lambda: len(topics[TOPIC].history.holdings) == 2)

    run(main)


def test_a_network_without_any_disk_refuses_what_is_to_be_on_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 2, durability="none") as (one, two), at(two) as client:
            await one.subscribe(TOPIC).ready()
            with pytest.raises(UsageError, match=r"keep nothing on disk .* durability 'memory'"):
                await client.publish(TOPIC, b"")
            assert (await client.publish(TOPIC, b"", durability="memory")).copies == 1
            assert (await one.publish(TOPIC, b"")).copies == 0

    run(main)
