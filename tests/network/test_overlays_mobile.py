"""`mobile` on the live network: neighbours, carried topics, anonymity on the wire, partitions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from live_lab import config, run, running
from overlays_lab import at, diagnosis, network, part_of, payloads, until
from planaria.core.errors import UsageError
from planaria.core.message import Message
from planaria.network.chaos.parts import breakable
from planaria.network.live import LiveNode
from planaria.network.overlays.mobile import MobilePart
from planaria.protocols.mobile.dissemination import Kept
from planaria.protocols.mobile.messages import MobileMessage, RequestLinkDown
from planaria.protocols.publications.deliveries import position_id


@asynccontextmanager
async def line(home: Path, n: int) -> AsyncIterator[list[LiveNode]]:
    """Nodes in a line: each knows the one before it, and no other."""
    nodes: list[LiveNode] = []
    try:
        for number in range(n):
            link = tuple(it.listen for it in nodes[-1:])
            options: dict[str, Any] = {"link": link, "join": link, "supervise": number == 0}
            node = LiveNode(config(home / f"n{number}", name=f"n{number}", **options))
            nodes.append(node)
            part = node.node.parts["mobile"]
            assert isinstance(part, MobilePart)
            part.near = set()  # the first is told nobody, and must not take whom it has links to
            await node.start()
        yield nodes
    finally:
        for node in nodes:
            if node.database is not None:  # it runs
                await node.stop(leave=False)


def listened(node: LiveNode) -> list[bytes]:
    """All messages of mobile that come to a node from now on, as they come."""
    heard: list[bytes] = []
    inner = node.host.codec.decode

    def hear(data: bytes) -> Message:
        message = inner(data)
        if isinstance(message, MobileMessage):
            heard.append(data)
        return message

    node.host.codec.decode = hear  # type: ignore[method-assign]
    return heard


def test_a_node_says_which_publications_it_holds_by_the_ids_that_readers_know(
    tmp_path: Path,
) -> None:
    """Each by itself, and no garbage that a fault left in memory."""

    async def main() -> None:
        async with network(tmp_path, 2) as nodes:
            async with at(nodes[0]) as publisher:
                acks = [
                    await publisher.publish("held", b"%d" % it, overlay="mobile") for it in (1, 2)
                ]
            kept = part_of(nodes[1], "mobile").layers
            await until(lambda: "held" in kept and len(kept["held"].news.store) == 2)
            kept["held"].news.store[b"g" * 16] = Kept(3, b"garbage", 0)
            for node in nodes:
                broken = breakable(node.ring, node.node)["mobile"]
                spans = broken.held("held")
                assert all(end == first + 1 for _, _, first, end in spans)
                ids = {position_id(who, start, first) for who, start, first, _ in spans}
                assert ids == {ack.id for ack in acks}
                assert broken.held("other") == []

    run(main)


def test_a_publication_crosses_nodes_that_do_not_read_it_and_names_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        async with line(tmp_path, 4) as nodes:
            async with at(nodes[0]) as publisher, at(nodes[3]) as reader:
                async with reader.subscribe("secret", overlay="mobile") as events:
                    await events.ready()
                    heard = listened(nodes[2])
                    ack = await publisher.publish("secret", b"x" * 40, overlay="mobile")
                    event = await anext(events)
                    assert (event.payload, event.id) == (b"x" * 40, ack.id)
                    assert (event.publisher, event.sequence, event.timestamp) == (None,) * 3
                    assert (event.key, event.headers) == (None, {})
                    await publisher.publish_many("secret", [b"1", b"2", b"3"], overlay="mobile")
                    assert await payloads(events, 3) == [b"1", b"2", b"3"]
                wire = b"".join(heard)
                assert b"x" * 40 in wire
                for name in (publisher.publisher, nodes[0].ring.id):
                    assert name.to_bytes(8, "little") not in wire
                    assert name.to_bytes(8, "big") not in wire
            found = await diagnosis(*nodes)
            assert found.legitimate, found.findings
            assert nodes[1].status().overlays["mobile"].topics["secret"].neighbours == 2

    run(main)


def test_what_mobile_cannot_do_it_refuses_in_one_line(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 1) as (node,), at(node) as client:
            wrong: tuple[tuple[dict[str, Any], str], ...] = (
                ({"strict": True}, "promises no copies"),
                ({"key": b"k"}, "no keys and headers"),
                ({"headers": {"a": "b"}}, "no keys and headers"),
            )
            for options, words in wrong:
                with pytest.raises(UsageError, match=words):
                    await client.publish("a", b"", overlay="mobile", **options)
            with pytest.raises(UsageError, match="in mobile at most"):
                await client.publish("a", bytes(1 << 18), overlay="mobile")
            refused: tuple[tuple[str, dict[str, Any], str], ...] = (
                ("a", {"since": "all"}, "keeps no history"),
                ("a", {"compacted": True}, "compacted: mobile keeps no history"),
                ("a", {"where": "a = 1"}, "mobile has no conditions"),
                ("a/#", {}, "mobile has no wildcards"),
            )
            for pattern, options, words in refused:
                async with client.subscribe(pattern, overlay="mobile", **options) as events:
                    with pytest.raises(UsageError, match=words):
                        await events.ready()

    run(main)


def test_a_topic_that_was_read_once_is_let_go_by_all_though_a_node_came_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each asked the others for it again whenever they had left it, for ever."""
    monkeypatch.setattr(MobilePart, "release_seconds", 3.0)

    async def main() -> None:
        async with network(tmp_path, 2) as nodes:
            async with at(nodes[0]) as client, client.subscribe("t", overlay="mobile") as events:
                await events.ready()
                await until(lambda: "t" in part_of(nodes[1], "mobile").layers)
            await asyncio.sleep(1.5)  # so that it wants to leave when the others are back
            settings = config(tmp_path / "late", join=(nodes[0].listen,), supervise=False)
            async with LiveNode(settings) as late:
                await until(lambda: "t" in part_of(late, "mobile").layers)
                parts = [part_of(it, "mobile") for it in (*nodes, late)]
                await until(lambda: not any(it.layers for it in parts))
                await asyncio.sleep(2.0)
                assert not any(it.layers for it in parts)

    run(main)


def test_a_quiet_topic_is_carried_again_for_who_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MobilePart, "release_seconds", 0.5)

    async def main() -> None:
        async with line(tmp_path, 3) as nodes, at(nodes[0]) as reader, at(nodes[2]) as publisher:
            events = reader.subscribe("quiet", overlay="mobile")
            await events.ready()
            layers = part_of(nodes[1], "mobile").layers
            for number in range(3):
                for expected in (True, False):
                    await until(lambda here=expected: ("quiet" in layers) == here)  # type: ignore[misc]
                await publisher.publish("quiet", b"%d" % number, overlay="mobile")
                assert await payloads(events, 1) == [b"%d" % number]

    run(main)


def test_what_a_node_has_to_hand_on_keeps_it_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 1) as (node,), at(node) as client:
            await client.publish("t", b"", overlay="mobile")
            part = node.node.parts["mobile"]
            assert isinstance(part, MobilePart)
            part.admits(RequestLinkDown("t", 7), 7)
            assert part.let_go() == set()
            part.node.layers["t"].news.store.clear()
            part.admits(RequestLinkDown("t", 7), 7)
            part.admits(RequestLinkDown("unknown", 7), 7)
            assert (part.let_go(), part.let_go()) == ({"t"}, set())

    run(main)


def test_what_was_published_while_a_neighbour_was_away_comes_when_it_is_back(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with (
            line(tmp_path, 3) as nodes,
            at(nodes[0]) as one,
            at(nodes[2]) as other,
            other.subscribe("news", overlay="mobile") as events,
        ):
            await events.ready()
            await one.publish("news", b"before", overlay="mobile")
            assert await payloads(events, 1) == [b"before"]
            home, options = nodes[1].listen, nodes[1].config
            await nodes[1].host.stop()  # as if it was killed
            await nodes[1].stop(leave=False)
            await until(lambda: not part_of(nodes[0], "mobile").reach)
            await one.publish("news", b"apart", overlay="mobile")
            await other.publish("news", b"too", overlay="mobile")
            assert await payloads(events, 1) == [b"too"]
            again = LiveNode(config(options.dir, listen=home, link=options.link, supervise=False))
            nodes[1] = again
            await again.start()
            assert await payloads(events, 1) == [b"apart"]

    run(main)


def test_an_acknowledged_publication_outlives_its_node_and_comes_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(config(tmp_path / "alone")) as alone:
            async with at(alone) as client:
                await client.publish("news", b"kept", overlay="mobile")
            alone.several.keeping.write = lambda *_, **__: {}  # type: ignore[method-assign]
            await alone.host.stop()  # as if it was killed: nothing more is written
        async with (
            network(tmp_path, 1) as (node,),
            at(node) as reader,
            reader.subscribe("news", overlay="mobile") as events,
        ):
            await events.ready()
            async with LiveNode(config(tmp_path / "alone", link=(node.listen,))):
                assert await payloads(events, 1) == [b"kept"]
                async with at(node) as other:
                    await other.publish("news", b"next", overlay="mobile")
                assert await payloads(events, 1) == [b"next"]

    run(main)


def test_a_publication_can_walk_before_it_is_flooded(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 3, walk=2) as nodes, at(nodes[1]) as one, at(nodes[2]) as two:
            async with two.subscribe("news", overlay="mobile") as events:
                await events.ready()
                await one.publish_many("news", [b"a", b"b", b"c"], overlay="mobile")
                assert await payloads(events, 3) == [b"a", b"b", b"c"]
            assert {part_of(it, "mobile").layers["news"].news.walk for it in nodes} == {2}

    run(main)


def test_two_networks_meet_and_are_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            line(tmp_path / "a", 2) as left,
            line(tmp_path / "b", 2) as right,
            at(left[0]) as one,
            at(right[1]) as other,
            other.subscribe("news", overlay="mobile") as events,
        ):
            await events.ready()
            await one.publish("news", b"early", overlay="mobile")
            bridge = config(tmp_path / "bridge", link=(left[1].listen, right[0].listen))
            async with LiveNode(bridge):
                assert await payloads(events, 1) == [b"early"]

    run(main)


def test_a_node_is_in_several_overlays_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 3) as nodes, at(nodes[1]) as publisher, at(nodes[2]) as reader:
            subscriptions = {
                it: reader.subscribe("same", overlay=it) for it in ("ring", "gossip", "mobile")
            }
            for overlay, events in subscriptions.items():
                await events.ready()
                await publisher.publish("same", overlay.encode(), overlay=overlay)
            for overlay, events in subscriptions.items():
                assert await payloads(events, 1) == [overlay.encode()]
                await events.close()
            assert nodes[2].overlays().keys() == {"gossip", "mobile"}

    run(main)
