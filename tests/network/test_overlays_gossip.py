"""`gossip` on the live network: the same client API, a charter, merging networks, restarts."""

import asyncio
from pathlib import Path

import pytest

from live_lab import config, run, running
from overlays_lab import at, diagnosis, network, part_of, payloads, until
from planaria.core.errors import UsageError
from planaria.network.charters import local_key, seal_locally
from planaria.network.client.errors import Unreachable
from planaria.network.client.messages import ChartersAre, PutCharter
from planaria.network.live import LiveNode
from planaria.network.overlays.gossip import SETTLED
from planaria.protocols.skipring.charter import Charter


async def lay_down(node: LiveNode, home: Path, topic: str, overlay: str, version: int = 1) -> None:
    """A charter of a topic, handed to one node."""
    charter = Charter(topic, version, version - 1, 1, overlay)  # type: ignore[arg-type]
    sealed = seal_locally(charter, local_key(home / "admin.pem"))
    async with at(node) as client:
        await client._requests.ask(PutCharter, ChartersAre, sealed)


def test_subscribers_of_a_topic_and_above_get_it_once_with_all_that_it_has(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 4) as nodes, at(nodes[1]) as publisher, at(nodes[2]) as reader:
            above = reader.subscribe("a/#", overlay="gossip")
            exact = reader.subscribe("a/b", overlay="gossip")
            async with above, exact:
                await above.ready()
                await exact.ready()
                ack = await publisher.publish(
                    "a/b", b"1", key=b"k", headers={"unit": "C"}, overlay="gossip"
                )
                assert (ack.copies, ack.members) == (0, 0)
                event = await anext(above)
                assert (event.topic, event.payload, event.key) == ("a/b", b"1", b"k")
                assert (event.id, event.headers) == (ack.id, {"unit": "C"})
                await publisher.publish("a/b/c", b"below", overlay="gossip")
                await publisher.publish("a/b", b"2", overlay="gossip")
                assert await payloads(above, 2) == [b"2", b"below"]
                assert await payloads(exact, 2) == [b"1", b"2"]
            status = nodes[2].status().overlays["gossip"]
            assert status.deliveries == 3
            assert not status.lost
            found = await diagnosis(nodes[0])
            assert found.legitimate, found.findings

    run(main)


def test_what_gossip_cannot_do_it_refuses_in_one_line(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 1) as (node,), at(node) as client:
            with pytest.raises(UsageError, match="promises no copies"):
                await client.publish("a", b"", overlay="gossip", strict=True)
            for options, words in (
                ({"since": "all"}, "keeps no history"),
                ({"since": "last"}, "keeps no history"),
                ({"since": 5}, "since 5: gossip keeps no history"),
                ({"where": "a = 1"}, "topic alone"),
                ({"since": {"floor": 7, "topics": {}}}, "no positions"),
            ):
                async with client.subscribe("a", overlay="gossip", **options) as events:
                    with pytest.raises(UsageError, match=words):
                        await events.ready()
            async with client.subscribe("a/+", overlay="gossip") as events:
                with pytest.raises(UsageError, match="a topic and all below"):
                    await events.ready()
            async with client.subscribe("a", overlay="gossip") as events:
                await events.ready()
                with pytest.raises(UsageError, match="no positions"):
                    events.vector()
            with pytest.raises(UsageError, match="did you mean gossip"):
                client.subscribe("a", overlay="gosip")

    run(main)


def test_a_charter_says_which_overlay_a_topic_and_all_below_it_are_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 3) as nodes:
            await lay_down(nodes[0], tmp_path, "loud", "gossip")
            await lay_down(nodes[0], tmp_path, "loud/kept", "ring")
            async with at(nodes[1]) as publisher, at(nodes[2]) as reader:
                async with reader.subscribe("loud/#") as events:
                    await events.ready()
                    await publisher.publish("loud/x", b"gossip")
                    assert await payloads(events, 1) == [b"gossip"]
                with pytest.raises(UsageError, match="in gossip by its charter"):
                    await publisher.publish("loud/x", b"", overlay="ring")
                with pytest.raises(UsageError, match="keeps no history"):
                    await publisher.read("loud/x")
                ack = await publisher.publish("loud/kept", b"ring")
                assert ack.copies
                async with reader.subscribe("loud/kept", since="all") as events:
                    assert await payloads(events, 1) == [b"ring"]
            assert "loud/x" not in nodes[1].ring.peer.topics
            assert "loud/kept" not in nodes[1].overlays()["gossip"].topics

    run(main)


def test_two_networks_meet_and_are_one(tmp_path: Path) -> None:
    async def main() -> None:
        first = network(tmp_path / "a", 3)
        second = network(tmp_path / "b", 3)
        async with first as left, second as right, at(left[1]) as one, at(right[1]) as other:
            mine, theirs = (it.subscribe("news", overlay="gossip") for it in (one, other))
            async with mine, theirs:
                await mine.ready()
                await theirs.ready()
                await one.publish("news", b"alone", overlay="gossip")
                assert await payloads(mine, 1) == [b"alone"]
                await right[2].host.join(left[2].listen)
                sizes = [part_of(it, "gossip").neighbours for it in (*left, *right)]
                await until(lambda: all(it.size == 6 for it in sizes))
                found = await diagnosis(left[0], right[0])
                gossip = [it for it in found.findings if it.invariant.startswith("gossip")]
                assert not gossip
                assert found.nodes == 6
                await one.publish("news", b"together", overlay="gossip")
                assert await payloads(theirs, 1) == [b"together"]

    run(main)


def test_a_node_that_was_away_knows_what_it_knew_and_joins_through_any_live_node(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with network(tmp_path, 3) as nodes, at(nodes[0]) as publisher:
            join = (nodes[1].listen,)
            async with running(config(tmp_path / "away", supervise=False, join=join)) as away:
                async with at(away) as client, client.subscribe("news", overlay="gossip") as events:
                    await events.ready()
                    await publisher.publish("news", b"before", overlay="gossip")
                    assert await payloads(events, 1) == [b"before"]
                away.several.keeping.write(away.several.keeping.snapshots())
                before = part_of(away, "gossip")
                await away.host.stop()  # as if it was killed: nobody is told
            again = LiveNode(config(tmp_path / "away", supervise=False, join=(nodes[2].listen,)))
            assert again.node.parts["gossip"].awake
            assert list(part_of(again, "gossip").memory) == list(before.memory)
            async with again, at(again) as client:
                events = client.subscribe("news", overlay="gossip")
                await events.ready()
                await publisher.publish("news", b"after", overlay="gossip")
                assert await payloads(events, 1) == [b"after"]

    run(main)


def test_a_node_that_takes_no_part_says_so_and_wakes_for_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 1, overlay=("ring",)) as (node,), at(node, patience=0.5) as it:
            join = (node.listen,)
            async with LiveNode(config(tmp_path / "other", join=join)) as other, at(other) as them:
                async with them.subscribe("a", overlay="gossip") as events:
                    await events.ready()
                with pytest.raises(Unreachable, match="takes no part in gossip"):
                    await asyncio.wait_for(it.publish("a", b"", overlay="gossip"), 20)
                assert not node.overlays()
                assert not node.host.malformed

    run(main)


def test_who_reads_all_topics_publishes_where_others_meet(tmp_path: Path) -> None:
    """Two that publish on a new topic find each other first, and not the reader above it."""

    async def main() -> None:
        async with (
            network(tmp_path, 3) as nodes,
            at(nodes[0]) as reader,
            at(nodes[1]) as one,
            at(nodes[2]) as other,
            reader.subscribe("a/#", overlay="gossip") as above,
            one.subscribe("#", overlay="gossip") as all_,
        ):
            await above.ready()
            await all_.ready()
            groups = part_of(nodes[1], "gossip").groups.values()
            await until(lambda: all(it.intervals >= SETTLED for it in groups))
            for number in range(3):
                topic = f"a/{number}/x"
                await asyncio.gather(
                    one.publish(topic, b"1", overlay="gossip"),
                    other.publish(topic, b"2", overlay="gossip"),
                )
            assert await payloads(above, 6) == [b"1"] * 3 + [b"2"] * 3

    run(main)
