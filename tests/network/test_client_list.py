"""Who is connected, as a node's status tells it: what they do, how far behind they are, to whom."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec import convert, json

from live_lab import TOPIC, config, run, running, until
from planaria.network.client.access import Access, shown
from planaria.network.client.asking import Asker
from planaria.network.client.client import Client, connect
from planaria.network.client.messages import Tail, Tailing
from planaria.network.context import Context
from planaria.network.gate import clients, session
from planaria.network.gate.gate import Gate
from planaria.network.gate.session import Session
from planaria.network.live import LiveNode
from planaria.network.status import ClientStatus, FollowedStatus, Status
from planaria.records.positions import Mark
from planaria.records.record import Draft, seal
from secure_lab import Secure
from secure_lab import run as run_secure

RIGHTS = """
[[allow]]
who = ["alice"]
rights = ["publish", "subscribe"]
topics = ["#"]
[[allow]]
who = ["boss"]
rights = ["supervise", "subscribe"]
topics = ["#"]
"""
SECRET = """
[[deny]]
who = ["boss"]
rights = ["supervise"]
topics = ["secret/#"]
"""


def gate_of(node: LiveNode) -> Gate:
    assert node.gate is not None
    return node.gate


def connected(node: LiveNode) -> list[ClientStatus]:
    return json.decode(json.encode(node.status()), type=Status).connected


def test_a_status_tells_who_is_connected_and_what_they_do(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            node = await stack.enter_async_context(running(config(tmp_path / "a", name="a")))
            client = await stack.enter_async_context(connect([node.listen], insecure=True))
            await (await stack.enter_async_context(client.subscribe(TOPIC, where="x > 1"))).ready()
            crowd = client.subscribe("crowd", overlay="gossip")
            await (await stack.enter_async_context(crowd)).ready()
            for number in range(3):
                await client.publish(TOPIC, b"%d" % number)
            await client.publish("crowd", b"hello", overlay="gossip")
            await until(lambda: all(not one.behind for it in connected(node) for one in it.follows))
            follows = [one for it in connected(node) for one in it.follows]
            assert follows == [
                FollowedStatus(TOPIC, "ring", "x > 1"),
                FollowedStatus("crowd", "gossip"),
            ]
            publishes = [one for it in connected(node) for one in it.publishes]
            assert [(it.topic, it.overlay, it.publications) for it in publishes] == [
                ("crowd", "gossip", 1),
                (TOPIC, "ring", 3),
            ]
            assert len({it.stream for it in publishes}) == 2
            assert len({it.id for it in connected(node)}) == 1, "a connection for each subscription"
            for it in connected(node):
                assert it.name is None
                assert it.follows_total + it.publishes_total > 0
                assert it.address.startswith("127.0.0.1:")
                assert it.address != node.listen
                assert min(it.seconds, it.sent, it.received, it.requests) > 0
            await client.close()
            await until(lambda: node.status().connected == [])

    run(main)


def test_who_takes_nothing_is_behind_by_what_it_was_not_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(config(tmp_path / "a", name="a")) as node:
            client = connect([node.listen], insecure=True)
            async with client, client.subscribe(TOPIC) as events:
                await events.ready()
                (here,) = [it for it in gate_of(node).sessions.values() if it.tails]
                link = here.connection.link
                await until(lambda: not (link.control.sent or link.bulk.sent))  # or it has room
                link.busy = True
                await node.publish_many(TOPIC, [b"1", b"2", b"3"])

                def behind() -> int | None:
                    return next(one.behind for it in connected(node) for one in it.follows)

                await until(lambda: behind() == 3)
                (tail,) = here.tails.values()
                (stream,) = tail.cursors[TOPIC].grown
                tail.cursors[TOPIC].marks[stream] = Mark(-(1 << 70))
                assert behind() == clients.NUMBER_MAX, "whatever a fault left in memory"
                del tail.cursors[TOPIC].marks[stream]
                link.busy = False
                gate_of(node).tails.wake(tail)
                await until(lambda: behind() == 0)

    run(main)


def test_only_the_first_are_listed_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "CLIENTS_SHOWN", 2)
    monkeypatch.setattr(clients, "SHOWN_MAX", 3)
    monkeypatch.setattr(clients, "NAMES_MAX", 20)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            node = await stack.enter_async_context(running(config(tmp_path / "a", name="a")))
            access = Access(*shown(Context((node.listen,), insecure=True), None))
            askers = [Asker(node.listen, access) for _ in range(3)]
            one, _, last = [await stack.enter_async_context(it) for it in askers]
            for number, pattern in enumerate(["a" * 21, "b", "c", "d", "e"]):
                await last.ask(Tail, Tailing, pattern, {}, 1, None, False)
                await one.ask(Tail, Tailing, f"t{number}", {}, 1, None, False)
            status = node.status()
            assert (status.clients, len(status.connected)) == (3, 2)
            assert [it.pattern for it in status.connected[0].follows] == ["t0", "t1", "t2"]
            monkeypatch.setattr(clients, "CLIENTS_SHOWN", 3)
            third = node.status().connected[2]
            assert [it.pattern for it in third.follows] == ["b", "c", "d"]
            assert third.follows_total == 5

    run(main)


def test_streams_that_are_counted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PUBLISHED_MAX", 2)
    one = Session(None)  # type: ignore[arg-type]
    for topic in ("a", "b", "a", "c"):
        one.count("ring", topic, seal((7, bytes(12)), 0, [Draft(b"x")], time=1))
    assert [(place[1], count) for place, count in one.published.items()] == [("a", 2), ("c", 1)]


async def seen_by(client: Client) -> list[ClientStatus]:
    return convert((await client.status())["connected"], list[ClientStatus])


def names(found: list[ClientStatus]) -> set[str]:
    follows = {one.pattern for it in found for one in it.follows}
    assert follows == {one.topic for it in found for one in it.publishes}
    return follows


def test_the_list_is_for_who_may_supervise_and_shows_what_charters_let_them(
    tmp_path: Path,
) -> None:
    async def test(lab: Secure) -> None:
        (tmp_path / "rights.toml").write_text(RIGHTS)
        node = await lab.node(rights=tmp_path / "rights.toml")
        async with lab.client("alice", node) as alice, AsyncExitStack() as stack:
            for topic in ("open", "pay"):
                await (await stack.enter_async_context(alice.subscribe(topic))).ready()
                await alice.publish(topic, b"x")
            assert await seen_by(alice) == []
            async with lab.client("boss", node) as boss:
                found = await seen_by(boss)
                assert {it.name for it in found} == {"alice", "boss"}
                assert names(found) == {"open", "pay"}
                lab.charter("pay", 1, (("supervise", ("root",)),))
                while "pay" in names(found):
                    await asyncio.sleep(0.05)
                    found = await seen_by(boss)
                assert names(found) == {"open"}
                assert sum(it.follows_total for it in found) == 2

    run_secure(tmp_path, test)


def test_who_may_not_supervise_a_part_is_shown_nobody(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        (tmp_path / "rights.toml").write_text(RIGHTS + SECRET)
        node = await lab.node(rights=tmp_path / "rights.toml")
        async with (
            lab.client("alice", node) as alice,
            lab.client("boss", node) as boss,
            alice.subscribe("open") as events,
        ):
            await events.ready()
            assert await seen_by(boss) == []

    run_secure(tmp_path, test)
