"""An application that embeds a node publishes in batches, beside others that do not."""

import asyncio
from pathlib import Path

import pytest

from planaria.core.errors import UsageError
from planaria.network.application import RING_BYTES, _portions
from planaria.network.config import Config
from planaria.network.live import LiveNode
from planaria.network.store.writer import PENDING_BYTES_MAX
from planaria.records.packing import PACKED_BYTES, PACKED_PUBLICATIONS
from planaria.records.record import PAYLOAD_BYTES_MAX

TOPIC = "news"


def embedded(directory: Path, durability: str) -> LiveNode:
    return LiveNode(
        Config(
            dir=directory,
            listen="127.0.0.1:0",
            supervise=True,
            insecure=1,
            interval=0.1,
            durability=durability,  # type: ignore[arg-type]
        )
    )


@pytest.mark.parametrize("durability", ["none", "disk"])
def test_batches_and_single_publications_are_numbered_and_acknowledged_in_order(
    tmp_path: Path, durability: str
) -> None:
    count = 2 * PACKED_PUBLICATIONS + 7

    async def main() -> None:
        node = embedded(tmp_path / "node", durability)
        events = node.subscribe(TOPIC)
        async with node:
            await events.ready()
            many = node.publish_many(TOPIC, (b"m%d" % number for number in range(count)))
            single = [node.publish(TOPIC, b"s%d" % number) for number in range(50)]
            batch, acks = await asyncio.gather(many, asyncio.gather(*single))
            small = await asyncio.gather(
                *[node.publish_many(TOPIC, [b"t%d" % number] * 3) for number in range(5)]
            )
            assert batch is not None
            assert batch.count == count
            assert await node.publish_many(TOPIC, []) is None
            with pytest.raises(UsageError, match="at most"):
                await node.publish_many(TOPIC, [b"good", bytes(2 << 20)])
            got: list[tuple[int | None, bytes]] = []
            while len(got) < count + 65:
                got += [(one.sequence, one.payload) for one in await anext(events)]
        assert [number for number, _ in got] == list(range(count + 65))
        said = dict(got)
        assert [said[ack.sequence] for ack in acks if ack] == [b"s%d" % it for it in range(50)]
        assert said[batch.sequence] == b"m0"
        for number, ack in enumerate(small):
            assert ack is not None
            assert [said[ack.sequence + at] for at in range(3)] == [b"t%d" % number] * 3
        in_order = [it for _, it in got if it.startswith(b"m")]
        assert in_order == [b"m%d" % number for number in range(count)]

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("most", [PACKED_BYTES, RING_BYTES])
def test_no_portion_is_larger_than_its_bound_unless_it_is_one_payload(most: int) -> None:
    sizes = [1, 0, most, 1, most - 1, 1, 1, most + 1, 2, *[most // 100] * 250, *[1] * 1_500]
    sent = [bytes([at % 256]) * size for at, size in enumerate(sizes)]
    portions = [*_portions(iter(sent), most)]
    assert [it for some in portions for it in some] == sent
    assert [[len(it) for it in some] for some in portions[:6]] == [
        [1, 0], [most], [1, most - 1], [1, 1], [most + 1], [2, *[most // 100] * 100],
    ]  # fmt: skip
    assert max(map(len, portions)) == PACKED_PUBLICATIONS
    assert all(len(some) == 1 or sum(map(len, some)) <= most for some in portions)


def test_large_payloads_of_one_leave_room_for_what_others_publish(tmp_path: Path) -> None:
    """512 at once would be more than a store takes that has not written them yet."""
    size = 150_000
    assert PACKED_PUBLICATIONS * size > PENDING_BYTES_MAX > 2 * RING_BYTES
    assert size < PAYLOAD_BYTES_MAX

    async def main() -> None:
        async with embedded(tmp_path / "node", "disk") as node:
            many = asyncio.ensure_future(node.publish_many("large", [bytes(size)] * 600))
            small = 0
            while not many.done():
                await node.publish(TOPIC, b"small")
                small += 1
            assert small > 3
            ack = await many
            assert ack is not None
            assert ack.count == 600

    asyncio.run(main())
