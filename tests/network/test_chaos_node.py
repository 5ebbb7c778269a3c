"""What a node does to itself when an admin says so, and that it does so only if started for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from live_lab import TOPIC, config, run, until
from planaria.chaos.target import Target
from planaria.core.errors import UsageError
from planaria.network.config import FILE, load_config
from planaria.network.context import Context
from planaria.network.doctor import diagnose
from planaria.network.identity import found_cluster, issue
from planaria.network.live import LiveNode
from planaria.network.survey import Surveyor


@asynccontextmanager
async def two(directory: Path) -> AsyncIterator[tuple[LiveNode, LiveNode, Target]]:
    """Two members of one topic that may be broken, and how to break them."""
    async with LiveNode(config(directory / "a", name="a", allow_chaos=True)) as one:
        settings = config(directory / "b", name="b", allow_chaos=True, join=(one.listen,))
        async with LiveNode(settings) as two:
            tails = [node.subscribe(TOPIC) for node in (one, two)]
            await until(lambda: all(TOPIC in node.ring.peer.topics for node in (one, two)))
            target = Target(Context((one.listen,), insecure=True))
            await target.find()
            yield one, two, target
            await target.close()
            del tails


async def legitimate(target: Target) -> None:
    async with Surveyor(target.context) as surveyor:
        while not (await diagnose(surveyor)).legitimate:
            await asyncio.sleep(0.1)


def test_a_node_that_was_not_started_for_it_refuses_in_one_line(tmp_path: Path) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path)) as node:
            target = Target(Context((node.listen,), insecure=True))
            with pytest.raises(UsageError, match="not started with --allow-chaos: nobody may"):
                await target.find()
            await target.close()

    run(main)


def test_it_takes_the_certificate_of_an_admin(tmp_path: Path) -> None:
    async def main() -> None:
        keys = tmp_path / "keys"
        found_cluster(keys, "c")
        issue(keys, "n", ("node", "supervise"))
        issue(keys, "guest", ("client",))
        issue(keys, "boss", ("client", "admin"))
        settings = config(tmp_path / "n", insecure=0, keys=keys / "n", allow_chaos=True)
        async with LiveNode(settings) as node:
            guest = Target(Context((node.listen,), keys / "guest"))
            with pytest.raises(UsageError, match="role 'admin' may break a node"):
                await guest.find()
            boss = Target(Context((node.listen,), keys / "boss"))
            await boss.find()
            await asyncio.gather(guest.close(), boss.close())

    run(main)


def test_the_permission_ends_with_the_process(tmp_path: Path) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path, allow_chaos=True)):
            assert "chaos" not in (tmp_path / FILE).read_text()

    run(main)
    assert not load_config(tmp_path, {}, environment={"PLANARIA_ALLOW_CHAOS": "1"}).allow_chaos
    with (tmp_path / FILE).open("a") as file:
        file.write("allow_chaos = true\n")
    with pytest.raises(UsageError, match="allow_chaos"):
        load_config(tmp_path, {}, environment={})


def test_arbitrary_memory_is_another_memory_and_heals(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as (one, other, target):
            for number in range(20):
                await one.publish(TOPIC, b"%d" % number)
            await until(lambda: len(other.ring.peer.topics[TOPIC].history.holdings) == 20)
            for seed in range(2):
                before = one.ring.snapshot()
                a = target.members["a"]
                options = {"nodes": target.handles, "topics": [TOPIC]}
                assert (await target.ask(a, "corrupt", seed, **options)).affected == 1
                assert one.ring.snapshot() != before
                await legitimate(target)
            payloads = {b"%d" % number for number in range(20)}
            holdings = one.ring.peer.topics[TOPIC].history.holdings
            await until(lambda: payloads <= {it.payload for it in holdings.read({}).publications()})

    run(main)


def test_forged_and_replayed_messages_are_input_like_any_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as (one, _, target):
            await one.publish(TOPIC, b"said")
            for member in target.members.values():
                forged = await target.ask(member, "forge", 3, count=200, nodes=target.handles)
                assert forged.affected == 200
                replayed = await target.ask(member, "replay", 3, count=200)
                while not replayed.affected:  # nothing was said to it yet
                    await asyncio.sleep(0.05)
                    replayed = await target.ask(member, "replay", 3, count=200)
                assert replayed.affected == 200
            await legitimate(target)

    run(main)


def test_a_clock_jumps_and_comes_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as (one, other, target):
            a = target.members["a"]
            assert (await target.ask(a, "skew", seconds=10**6)).affected == 1
            assert one.status().time - other.status().time > 10**5
            await until(lambda: (one.ring.peer.topics[TOPIC].history.horizon.seconds or 0) > 1)
            assert (await target.ask(a, "calm")).affected == 1
            assert abs(one.status().time - other.status().time) < 100
            assert (await target.ask(a, "calm")).affected == 0

    run(main)


def test_a_node_says_which_positions_it_holds(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as (one, _, target):
            ack = await one.publish_many(TOPIC, [b"1", b"2", b"3"])
            assert ack is not None
            held = (await target.ask(target.members["a"], "holdings", topic=TOPIC)).found["held"]
            assert held == [[ack.publisher, ack.incarnation, ack.sequence, ack.sequence + 3]]
            nothing = await target.ask(target.members["a"], "holdings", topic="other")
            assert nothing.found["held"] == []

    run(main)


def test_what_cannot_be_done_is_told_in_one_line(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as (_, _, target):
            a = target.members["a"]
            with pytest.raises(
                Exception, match="unknown fault of a node 'corrpt'; did you mean corrupt"
            ):
                await target.ask(a, "corrpt")
            with pytest.raises(Exception, match="skew: KeyError 'seconds'"):
                await target.ask(a, "skew")

    run(main)
