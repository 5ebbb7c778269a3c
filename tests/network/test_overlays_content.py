"""`content` on the live network: conditions in the network, covering and merging, joins, gaps."""

import json
from pathlib import Path
from typing import Any

import pytest

from live_lab import config, run
from overlays_lab import at, diagnosis, network, part_of, payloads, until
from planaria.core.errors import UsageError
from planaria.network.live import LiveNode

CONTENT = "content"


def flight(**attributes: Any) -> bytes:
    return json.dumps(attributes).encode()


def leases(nodes: list[LiveNode]) -> int:
    """Entries for neighbours in all routing tables."""
    tables = [part_of(it, CONTENT).table.entries for it in nodes]
    return sum(len(its) for table in tables for to, its in table.items() if to >= 0)


def test_each_client_gets_what_its_condition_selects_once_and_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 4) as nodes, at(nodes[1]) as publisher, at(nodes[3]) as reader:
            late = reader.subscribe("flights/#", where="delay > 60", overlay=CONTENT)
            united = reader.subscribe("flights/ua", where="unit = 'min'", overlay=CONTENT)
            async with late, united:
                await late.ready()
                await united.ready()
                acks = [
                    await publisher.publish(
                        f"flights/{carrier}",
                        flight(delay=delay, topic="a member of this name is none"),
                        headers={"unit": "min"},
                        key=b"k",
                        overlay=CONTENT,
                    )
                    for carrier, delay in (("ua", 61), ("aa", 90), ("ua", 5), ("aa", 60))
                ]
                first, second = await anext(late), await anext(late)
                assert [first.id, second.id] == [acks[0].id, acks[1].id]
                assert (first.topic, first.key, first.headers) == (
                    "flights/ua",
                    b"k",
                    {"unit": "min"},
                )
                mine = [await anext(united) for _ in range(2)]
                assert [it.id for it in mine] == [acks[0].id, acks[2].id]
            found = await diagnosis(nodes[0])
            assert found.legitimate, found.findings
            await until(lambda: not leases(nodes))  # of clients that are gone

    run(main)


def test_conditions_are_covered_and_merged_in_the_network(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 2) as nodes, at(nodes[1]) as reader:
            conditions = ("delay > 60", "delay > 90", "delay BETWEEN 0 AND 60")
            subscriptions = [reader.subscribe("f", where=it, overlay=CONTENT) for it in conditions]
            for one in subscriptions:
                await one.ready()
            await until(lambda: leases(nodes) == 1)
            status = nodes[1].status().overlays[CONTENT]
            assert (status.clients, len(status.topics)) == (3, 3)
            async with at(nodes[0]) as publisher:
                for delay in (30, 70, -1, 95):
                    await publisher.publish("f", flight(delay=delay), overlay=CONTENT)
            late, very_late, punctual = subscriptions
            assert await payloads(late, 2) == [flight(delay=70), flight(delay=95)]
            assert await payloads(very_late, 1) == [flight(delay=95)]
            assert await payloads(punctual, 1) == [flight(delay=30)]
            sent = part_of(nodes[0], CONTENT).notifications_sent
            assert sent == 3  # nobody wants -1, and it stays where it is

    run(main)


def test_what_content_cannot_do_it_refuses_in_one_line(tmp_path: Path) -> None:
    async def main() -> None:
        async with network(tmp_path, 1) as (node,), at(node) as client:
            with pytest.raises(UsageError, match="promises no copies"):
                await client.publish("a", b"{}", overlay=CONTENT, strict=True)
            many = flight(**{f"a{it}": it for it in range(70)})
            with pytest.raises(UsageError, match="attributes: at most"):
                await client.publish("a", many, overlay=CONTENT)
            refused: tuple[tuple[dict[str, Any], str], ...] = (
                ({"since": "all"}, "keeps no history"),
                ({"compacted": True}, "compacted: content keeps no history"),
                ({"where": "topic = 'b'"}, "nothing on 'a' can satisfy"),
            )
            for options, words in refused:
                async with client.subscribe("a", overlay=CONTENT, **options) as events:
                    with pytest.raises(UsageError, match=words):
                        await events.ready()

    run(main)


@pytest.mark.parametrize("leave", [False, True])
def test_two_networks_meet_and_a_node_that_was_away_is_a_broker_again(
    leave: bool, tmp_path: Path
) -> None:
    async def main() -> None:
        first, second = (network(tmp_path / it, 2, interval=0.05) for it in "ab")
        async with (
            first as left,
            second as right,
            at(left[1]) as one,
            at(right[1]) as other,
            other.subscribe("x", where="n > 1", overlay=CONTENT) as events,
        ):
            await events.ready()
            await one.publish("y", flight(n=1), overlay=CONTENT)  # wakes the other network
            await right[1].host.join(left[1].listen)
            brokers = [*left, *right]
            await until(lambda: all(part_of(it, CONTENT).links for it in brokers))
            found = await diagnosis(left[0], right[0])
            assert not [it for it in found.findings if it.invariant.startswith(CONTENT)]
            await one.publish("x", flight(n=2), overlay=CONTENT)
            assert await payloads(events, 1) == [flight(n=2)]
            if not leave:
                await left[0].host.stop()  # as if it was killed
            await left[0].stop(leave=leave)
            again = LiveNode(config(tmp_path / "a" / "n0", join=(right[1].listen,), interval=0.05))
            left[0] = again
            await again.start()
            assert again.node.parts[CONTENT].awake
            async with at(again) as third:
                await until(lambda: part_of(again, CONTENT).links)
                found = await diagnosis(right[0])
                assert not [it for it in found.findings if it.invariant.startswith(CONTENT)]
                await third.publish("x", flight(n=3), overlay=CONTENT)
            assert await payloads(events, 1) == [flight(n=3)]

    run(main)
