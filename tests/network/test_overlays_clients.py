"""What clients are promised in all overlays beside `ring`: once, in their own name, or told."""

import asyncio
from pathlib import Path
from time import time

import pytest

import planaria
from live_lab import run
from overlays_lab import at, network, payloads, until
from planaria.core.errors import UsageError
from planaria.core.node import Notice
from planaria.network.client.messages import Put, Stored
from planaria.network.gate import followers, others
from planaria.network.overlays.mobile import MobilePart
from planaria.network.overlays.part import LivePart
from planaria.protocols.mobile.messages import RequestLinkUp
from planaria.records.record import INCARNATION_BYTES, Draft, seal

OTHERS = ("gossip", "content", "mobile")


def test_a_repeat_through_another_node_is_one_publication(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 3) as nodes, at(nodes[2]) as reader:
            doors = [at(nodes[0], name="me"), at(nodes[1], name="me")]
            async with doors[0], doors[1]:
                start = bytes(INCARNATION_BYTES)
                for overlay in OTHERS:
                    events = reader.subscribe("news", overlay=overlay)
                    await events.ready()
                    for number, payload in enumerate((b"once", b"end")):
                        stream = (doors[0].publisher, start)
                        record = seal(stream, number, [Draft(payload)], time=int(time()))
                        for door in doors:
                            arguments = ("news", record.data, 2, False, True, overlay)
                            await door._requests.ask(Put, Stored, *arguments)
                    assert await payloads(events, 2) == [b"end", b"once"]
                    await doors[1].publish("news", b"last", overlay=overlay)
                    assert await payloads(events, 1) == [b"last"]
                    await events.close()

    run(main)


def test_nobody_publishes_in_the_name_of_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 1) as (node,), at(node) as client:
            stream = (client.publisher + 1, bytes(INCARNATION_BYTES))
            record = seal(stream, 0, [Draft(b"")], time=1)
            for overlay in OTHERS:
                arguments = ("news", record.data, 2, False, True, overlay)
                with pytest.raises(UsageError, match="this client publishes as"):
                    await client._requests.ask(Put, Stored, *arguments)
                broken = ("news", b"no record", 2, False, True, overlay)
                with pytest.raises(UsageError, match="record"):
                    await client._requests.ask(Put, Stored, *broken)

    run(main)


def test_a_slow_reader_loses_what_exceeds_its_bound_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "BEHIND_BYTES_MAX", 1 << 19)
    count, payload = 60, bytes(100_000)

    async def main() -> None:
        async with network(tmp_path, 1) as (node,), at(node) as client:
            events = client.subscribe("news", overlay="gossip", notices=True)
            await events.ready()
            for _ in range(count):
                await client.publish("news", payload, overlay="gossip")
            got, lost = 0, 0
            while got + lost < count:
                one = await asyncio.wait_for(anext(events), 20)
                if isinstance(one, Notice):
                    lost += one.detail["lost"]
                else:
                    got += 1
            assert got * len(payload) >= 1 << 19  # what was kept for it came
            assert lost == node.overlays()["gossip"].lost > 0

    run(main)


@pytest.mark.parametrize("overlay", OTHERS)
def test_what_a_client_has_of_a_node_that_dies_is_read_all_the_same(
    tmp_path: Path, overlay: str
) -> None:
    count = 20

    async def main() -> None:
        async with network(tmp_path, 3) as nodes, at(nodes[0]) as writer:
            servers = [nodes[2].listen, nodes[1].listen]
            async with planaria.connect(servers, insecure=True) as reader:
                events = reader.subscribe("news", overlay=overlay)
                await events.ready()
                sent = [b"%02d" % number for number in range(count)]
                for payload in sent:
                    await writer.publish("news", payload, overlay=overlay)
                await until(lambda: sum(it.passed for it in events._parcels) == count)
                await nodes[2].stop(leave=False)
                await until(lambda: events.channel.address == nodes[1].listen and events._tails)
                assert await payloads(events, count) == sent
                await until(lambda: not events._asked)  # and it goes on, without repeats
                await writer.publish("news", b"last", overlay=overlay)
                assert await payloads(events, 1) == [b"last"]

    run(main)


def test_a_client_has_so_many_tails_and_a_node_without_a_disk_keeps_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(others, "TAILS_MAX", 2)

    async def main() -> None:
        async with network(tmp_path, 1, durability="none") as (node,), at(node) as client:
            async with client.subscribe("a", "b", "c", overlay="mobile") as events:
                with pytest.raises(UsageError, match="2 tails of one client"):
                    await events.ready()
            with pytest.raises(UsageError, match="keeps nothing on disk"):
                await client.publish("a", b"", overlay="mobile")
            await client.publish("a", b"", overlay="mobile", durability="memory")
            await node.publish("a", b"", overlay="mobile")
            assert not (tmp_path / "n0" / "overlays").exists()

    run(main)


def test_what_nobody_uses_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with network(tmp_path, 1) as (node,), at(node) as client:
            async with client.subscribe("read/#", overlay="gossip") as events:
                await events.ready()
                await client.publish("written", b"", overlay="gossip")
                await until(lambda: len(node.overlays()["gossip"].topics) == 2)
                monkeypatch.setattr(LivePart, "release_seconds", 0.2)
                await until(lambda: node.overlays()["gossip"].topics.keys() == {"read/#"})
                await asyncio.sleep(0.5)  # a reader keeps it, however long it is quiet
                assert node.overlays()["gossip"].topics.keys() == {"read/#"}
            await until(lambda: not node.overlays()["gossip"].topics)
            monkeypatch.setattr(MobilePart, "release_seconds", 0.2)
            node.node.on_message(RequestLinkUp("ghost", 7, ()), 7)  # of a neighbour, or of nobody
            assert node.overlays()["mobile"].topics.keys() == {"ghost"}
            await until(lambda: not node.overlays()["mobile"].topics)

    run(main)
