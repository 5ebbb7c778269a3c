"""A whole node in this process: what it resumes, promises and refuses."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from live_lab import INTERVAL, TOPIC, config, run, running, until
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import Clock, Command, Effects, Unsubscribe
from planaria.network import embedded
from planaria.network.client.events import Event
from planaria.network.embedded import Subscription
from planaria.network.identity import found_cluster, issue
from planaria.network.live import LiveNode
from planaria.network.memberships import NAMED
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.pace import PACE_MAX


async def read(events: Subscription, count: int) -> list[Event]:
    found: list[Event] = []
    async for batch in events:
        found += batch
        if len(found) >= count:
            break
    return found


def test_an_embedding_application_publishes_and_reads_without_sockets(tmp_path: Path) -> None:
    async def main() -> None:
        live = LiveNode(config(tmp_path))
        events = live.subscribe("news/#")
        async with live:
            ack = await live.publish("news/a", b"one", key=b"k", headers={"unit": "C"})
            many = await asyncio.gather(*[live.publish("news/b", b"%d" % at) for at in range(500)])
            await events.ready()
            found = await read(events, 501)
            assert [one.id for one in found] == [ack.id, *(it.id for it in many)]
            first = found[0]
            assert (first.topic, first.payload, first.key) == ("news/a", b"one", b"k")
            assert first.headers == {"unit": "C"}
            assert [one.payload for one in found[1:]] == [b"%d" % at for at in range(500)]
            assert len(live.store("news/b").index.shown) < 20  # records, not a row each
        assert [batch async for batch in events] == []

    run(main)


def test_a_restart_resumes_topics_and_records_and_numbers_anew(tmp_path: Path) -> None:
    async def main() -> None:
        seen = set()
        for turn in range(3):
            async with LiveNode(config(tmp_path)) as live:
                if turn == 0:
                    await live.subscribe(TOPIC).ready()
                await until(lambda: live.ring.peer.topics[TOPIC].subscriber.member)
                assert len(live.store(TOPIC)) == turn
                ack = await live.publish(TOPIC, b"%d" % turn)
                seen.add(ack.incarnation)
                assert ack.sequence == 0
        assert len(seen) == 3

    run(main)


def test_a_supervisor_is_sure_of_its_members_at_its_first_start_and_not_after_a_restart(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        for turn in range(2):
            async with LiveNode(config(tmp_path, interval=2.0)) as live:
                assert live.ring.supervisor is not None
                assert live.ring.supervisor.settled(TOPIC) == (turn == 0)

    run(main)


def test_topics_of_a_live_node_become_calm(tmp_path: Path) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path)) as live:
            await live.publish(TOPIC, b"the last for long")
            pace = live.ring.peer.topics[TOPIC].subscriber.pace
            await until(lambda: pace.pace == PACE_MAX)

    run(main)


def test_an_older_copy_of_the_store_never_takes_old_positions_again(tmp_path: Path) -> None:
    async def main() -> None:
        home, copy = tmp_path / "node", tmp_path / "copy"
        async with LiveNode(config(home)) as live:
            before = [await live.publish(TOPIC, b"kept")]
        shutil.copytree(home / "store", copy)
        async with LiveNode(config(home)) as live:
            before += [await live.publish(TOPIC, b"lost") for _ in range(3)]
        shutil.rmtree(home / "store")
        shutil.copytree(copy, home / "store")
        async with LiveNode(config(home)) as live:
            after = await live.publish(TOPIC, b"new")
            assert after.id not in {one.id for one in before}
            assert len(live.store(TOPIC)) == 2

    run(main)


def test_patterns_are_resumed_as_patterns(tmp_path: Path) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path)) as live:
            await live.publish("a/b", b"")
            await live.subscribe("a/#").ready()
            live.host.command(Unsubscribe("a/b"))  # stays, for the pattern
            await until(lambda: live.memberships.names == {"a/#": "named", "a/b": "matched"})
        async with LiveNode(config(tmp_path)) as live:
            await until(lambda: "a/b" in live.ring.peer.topics)
            live.host.command(Unsubscribe("a/#"))
            await until(lambda: not live.memberships.names)
        async with LiveNode(config(tmp_path)) as live:
            assert not live.ring.peer.topics

    run(main)


def test_a_join_is_told_only_when_it_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setattr("planaria.network.memberships.RETRY_SECONDS", 0.05)
        async with LiveNode(config(tmp_path)) as live:
            write, full = live.memberships.write, True

            def fails(changes: dict[str, str]) -> None:
                if full:
                    raise OSError("disk full")
                write(changes)

            monkeypatch.setattr(live.memberships, "write", fails)
            ready = asyncio.ensure_future(live.subscribe(TOPIC).ready())
            await until(lambda: live.ring.peer.topics[TOPIC].subscriber.member)
            await until(lambda: not live.ring.peer.topics[TOPIC].awaited)
            await asyncio.sleep(3 * INTERVAL)
            assert not ready.done()
            full = False
            await ready
            assert live.memberships.names == {TOPIC: NAMED}

    run(main)


def test_no_record_is_on_disk_before_the_membership_of_its_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path)) as live:
            write, full = live.memberships.write, True

            def fails(changes: dict[str, str]) -> None:
                if full:
                    raise OSError("disk full")
                write(changes)

            monkeypatch.setattr(live.memberships, "write", fails)
            with pytest.raises(CapacityExceeded, match="disk full"):
                await live.publish(TOPIC, b"nobody would ever ask for it")
            full = False
            await live.publish(TOPIC, b"kept")
            assert live.memberships.names == {TOPIC: NAMED}

    run(main)


def test_without_durability_no_record_is_left(tmp_path: Path) -> None:
    async def main() -> None:
        settings = config(tmp_path, durability="none")
        async with LiveNode(settings) as live:
            await live.publish(TOPIC, b"gone")
            assert len(live.ring.peer.topics[TOPIC].history.holdings.store) == 1
        async with LiveNode(settings) as live:
            assert len(live.ring.peer.topics[TOPIC].history.holdings.store) == 0
        assert not (tmp_path / "store").exists()

    run(main)


def test_a_reader_too_far_behind_is_told_after_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setattr(embedded, "BEHIND_BYTES_MAX", 5000)
        async with LiveNode(config(tmp_path)) as live:
            events = live.subscribe(TOPIC)
            for _ in range(4):
                await live.publish(TOPIC, bytes(2000))
            assert len(await anext(events)) == 2
            with pytest.raises(CapacityExceeded, match="behind"):
                await anext(events)

    run(main)


def test_what_cannot_be_published_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise CapacityExceeded("disk full")

    async def main() -> None:
        async with LiveNode(config(tmp_path)) as live:
            good, large, wild = await asyncio.gather(
                live.publish(TOPIC, b"good"),
                live.publish(TOPIC, bytes(9 << 20)),
                live.publish("a/#", b""),
                return_exceptions=True,
            )
            assert not isinstance(good, BaseException)
            assert isinstance(large, UsageError)
            assert isinstance(wild, UsageError)
            store, admit = live.store(TOPIC), live.store(TOPIC)._admit
            monkeypatch.setattr(store, "_admit", full)
            with pytest.raises(CapacityExceeded, match="disk full"):
                await live.publish(TOPIC, b"not now")
            monkeypatch.setattr(store, "_admit", admit)
            await live.publish(TOPIC, b"again")

    run(main)


def test_three_nodes_over_tls_deliver_to_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        found_cluster(tmp_path / "keys", "demo")
        nodes: list[LiveNode] = []
        events: list[Subscription] = []
        try:
            for at in range(3):
                keys = issue(tmp_path / "keys", f"n{at}", ("node", "supervise"))
                join = tuple(it.listen for it in nodes)
                settings = config(
                    tmp_path / f"d{at}", keys=keys, insecure=0, supervise=at < 2, join=join
                )
                nodes.append(LiveNode(settings))
                events.append(nodes[-1].subscribe(TOPIC))
                await nodes[-1].start()
            assert nodes[2].host.hello.cluster == "demo"
            for each in events:
                await each.ready()
            for node in nodes:
                await node.publish(TOPIC, node.name.encode())
            for each in events:
                found = await read(each, 3)
                assert sorted(one.payload for one in found) == [b"n0", b"n1", b"n2"]
        finally:
            for node in reversed(nodes):
                await node.stop()

    run(main)


@pytest.mark.parametrize("jump", [86_400, -86_400])
def test_a_clock_that_jumps_loses_nothing(tmp_path: Path, jump: int) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            nodes: list[LiveNode] = []
            for at in range(3):
                settings = config(tmp_path / f"d{at}", join=tuple(it.listen for it in nodes))
                nodes.append(await stack.enter_async_context(LiveNode(settings)))
            events = [node.subscribe(TOPIC) for node in nodes]
            for each in events:
                await each.ready()
            said: list[bytes] = []
            for turn in range(3):
                if turn == 1:
                    _set_clock(nodes[0], jump)
                if turn == 2:
                    _set_clock(nodes[0], 0)
                await asyncio.sleep(3 * INTERVAL)
                for node in nodes:
                    said.append(b"%d %s" % (turn, node.name.encode()))
                    await node.publish(TOPIC, said[-1])
            for each in events:
                found = await read(each, len(said))
                assert sorted(one.payload for one in found) == sorted(said)

    run(main)


def _set_clock(node: LiveNode, ahead: int) -> None:
    """Let a node's wall clock be wrong by so many seconds."""
    ring = node.ring

    def on_command(command: Command) -> Effects:
        wrong = Clock(command.seconds + ahead) if isinstance(command, Clock) else command
        return RingNode.on_command(ring, wrong)

    node.host.node = SimpleNamespace(  # type: ignore[assignment]
        id=ring.id,
        reads_clock=True,
        on_command=on_command,
        on_message=ring.on_message,
        on_timeout=ring.on_timeout,
    )


def test_a_node_that_stops_leaves_its_rings_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path / "one")) as one:
            settings = config(tmp_path / "two", supervise=False, join=(one.listen,))
            async with LiveNode(settings) as two:
                await one.subscribe(TOPIC).ready()
                await two.subscribe(TOPIC).ready()
                assert one.ring.supervisor is not None
                served = one.ring.supervisor.topics[TOPIC]
                await until(lambda: len(served.database) == 2)
            assert len(served.database) == 1
            assert not served.suspects  # nobody had to miss it

    run(main)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": "nowhere"}, "is no readable certificate"),
        ({"keys": "member"}, "has not the role 'supervise'"),
        ({"keys": "client"}, "has not the role 'node'"),
        ({"keys": "member", "cluster": "b"}, "is of cluster 'a', not of 'b'"),
    ],
)
def test_keys_that_do_not_fit_are_one_line_and_free_the_directory(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    found_cluster(tmp_path / "keys", "a")
    issue(tmp_path / "keys", "member", ("node",))
    issue(tmp_path / "keys", "client", ("client",))
    options = {**options, "keys": tmp_path / "keys" / options["keys"], "insecure": 0}
    for _ in range(2):
        with pytest.raises(UsageError) as refused:
            LiveNode(config(tmp_path / "node", **options))._release()
        assert said in str(refused.value)


def test_a_directory_serves_one_node_at_a_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path)):
            with pytest.raises(UsageError, match="in use by process"):
                LiveNode(config(tmp_path))._release()
        LiveNode(config(tmp_path))._release()
        (tmp_path / "id").write_text("not an id")
        with pytest.raises(UsageError, match="is no id"):
            LiveNode(config(tmp_path))._release()

    run(main)


def test_who_waits_for_a_node_that_stops_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        nobody_lets_it_join = config(tmp_path / "node", supervise=False)
        async with running(nobody_lets_it_join) as live:
            live._commits.append(lambda _: None)  # a disk that does not answer
            waiting: list[asyncio.Future[object]] = [
                asyncio.ensure_future(live.publish(TOPIC, b"1"))
            ]
            await asyncio.sleep(0)
            waiting.append(asyncio.ensure_future(live.publish(TOPIC, b"2")))
            joining = asyncio.ensure_future(live.subscribe("other").ready())
            await live.stop(leave=False)
            for one in waiting:
                with pytest.raises(UsageError, match="has stopped"):
                    await one
            with pytest.raises(UsageError, match="has stopped"):
                await live.publish(TOPIC, b"too late")
            with pytest.raises(UsageError, match="closed before it was ready"):
                await joining

    run(main)


def test_a_node_starts_once_and_another_of_its_directory_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        live = LiveNode(config(tmp_path / "node"))
        await live.start()
        with pytest.raises(UsageError, match="starts once"):
            await live.start()
        await live.publish(TOPIC, b"it runs as before")
        await live.stop()
        with pytest.raises(UsageError, match="starts once"):
            await live.start()
        async with LiveNode(config(tmp_path / "node")) as again:
            await again.publish(TOPIC, b"it goes on")

    run(main)
