"""Topics that a node has left: their records go, in time, and what a file lost comes back."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from live_lab import TOPIC, config, run, running, until
from planaria.core.node import Unsubscribe
from planaria.network import releasing
from planaria.network.client.client import connect
from planaria.network.gate import ring
from planaria.network.live import LiveNode
from planaria.network.memberships import FILE, LEFT, NAMED, RELEASED, SERVED, Memberships
from planaria.network.releasing import RELEASED_SECONDS, Releasing
from planaria.network.store import database as stores
from planaria.network.store.database import Database
from planaria.network.store.opening import FILE as STORED
from planaria.records.store import Store
from records_lab import A, B, record


def fill(database: Database, name: str, count: int) -> Store:
    store = database.topic(name)
    store.append([record(A if at % 2 else B, at, text=name) for at in range(count)])
    store.staging().append([record(A, at, text="staged") for at in range(3)])
    store._note(A)  # as when a record expires
    return store


def rows(directory: Path) -> tuple[int, int]:
    """How many records, and how many streams, the file of a store has."""
    with closing(sqlite3.connect(directory / STORED)) as file:
        query = "SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM streams)"
        found: tuple[int, int] = file.execute(query).fetchone()
    return found


async def read(node: LiveNode, count: int) -> list[bytes]:
    """What a client reads there from the beginning."""
    async with connect(node.listen, insecure=True) as client:
        events = client.subscribe(TOPIC, since="all")
        async with events:
            return [(await anext(events)).payload for _ in range(count)]


@pytest.mark.parametrize("opened", [True, False])
def test_what_is_abandoned_is_erased_in_steps_and_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    monkeypatch.setattr(stores, "SWEEP_MAX", 4)
    with Database(tmp_path) as database:
        fill(database, "gone", 10)
        fill(database, "kept", 5)
    with Database(tmp_path) as database:
        for name in ("gone", "kept") if opened else ():
            assert len(database.topic(name).staging()) == 3
        database.abandon("gone")
        for _ in range(2):
            database.sweep()
    assert rows(tmp_path) == (10 + 5 + 2 * 3 - 8, 1)
    with Database(tmp_path) as database:
        assert database.unopened() == ["gone", "kept"]  # as after a crash: the rest is found
        database.abandon("gone")
        for _ in range(2):
            database.sweep()
        assert len(database.topic("kept")) == 5
        assert len(database.topic("kept").staging()) == 3
        assert len(database.topic("gone")) == 0
    assert rows(tmp_path) == (5 + 3, 1)


def test_what_cannot_be_erased_is_not_abandoned(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        fill(database, TOPIC, 2)
    with Database(tmp_path) as database, pytest.MonkeyPatch.context() as patched:
        assert len(database.topic(TOPIC)) == 2
        patched.setattr(database, "writer", None)  # as of a store that is read-only
        database.abandon(TOPIC)
        database.sweep()
        assert len(database.topic(TOPIC)) == 2
        patched.undo()


@pytest.mark.parametrize(
    ("code", "damaged"), [(sqlite3.SQLITE_BUSY, False), (sqlite3.SQLITE_CORRUPT, True)]
)
def test_topics_that_cannot_be_read_are_damage_only_if_they_are(
    tmp_path: Path, code: int, *, damaged: bool
) -> None:
    error = sqlite3.OperationalError("cannot be read")
    error.sqlite_errorcode = code

    def execute(_: str) -> None:
        raise error

    with Database(tmp_path, lambda _: None) as database:
        with pytest.MonkeyPatch.context() as patched:
            reading = SimpleNamespace(execute=execute, close=database.reading.close)
            patched.setattr(database, "reading", reading)
            assert database.unopened() == []
        assert database.damaged == damaged


def test_a_topic_that_is_joined_again_while_it_is_erased_keeps_what_comes_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "SWEEP_MAX", 2)
    with Database(tmp_path) as database:
        fill(database, TOPIC, 6)
        database.abandon(TOPIC)
        database.sweep()
        fill(database, TOPIC, 4)
        for _ in range(5):
            database.sweep()
    with Database(tmp_path) as database:
        store = database.topic(TOPIC)
        assert len(store.get(list(store.index.shown))) == 4
        assert len(database.topic(TOPIC).staging()) == 3
    assert rows(tmp_path)[0] == 4 + 3


def test_a_copy_goes_an_hour_after_its_node_was_let_go_and_not_before(tmp_path: Path) -> None:
    now, members, done, forgotten = [0.0], {"stays"}, list[str](), list[str]()
    file = Memberships(tmp_path)
    file.write({"stays": RELEASED, "goes": RELEASED, "left": LEFT, "named": NAMED})
    database = SimpleNamespace(abandon=done.append, sweep=lambda: done.append("swept"))
    one = Releasing(file, cast(Any, database), lambda: members, forgotten.append, lambda: now[0])
    for now[0], expected in (
        (1.0, ["swept"]),
        (RELEASED_SECONDS, ["swept"]),
        (RELEASED_SECONDS + 2, ["goes", "swept"]),
        (3 * RELEASED_SECONDS, ["swept"]),
    ):
        one.step()
        assert done == expected
        done.clear()
    assert forgotten == ["goes"]
    assert file.left == {"stays": RELEASED, "left": LEFT}
    members.clear()  # the hour begins when it is out of the ring
    one.step()
    now[0] += RELEASED_SECONDS
    one.step()
    assert done == ["swept", "swept"]
    file.write({"goes": NAMED})  # joined again, and left again: another hour
    one.step()
    file.write({"goes": RELEASED})
    one.step()
    now[0] += 1.0
    one.step()
    assert done.count("stays") == 1
    assert "goes" not in done
    now[0] += RELEASED_SECONDS
    one.step()
    assert done.count("goes") == 1
    file.close()


@pytest.mark.parametrize("damage", ["lost", "emptied", "garbled"])
def test_a_lone_node_whose_memberships_are_lost_serves_its_history(
    tmp_path: Path, damage: str
) -> None:
    async def main() -> None:
        async with running(config(tmp_path)) as live, connect(live.listen, insecure=True) as client:
            for at in range(3):
                await client.publish(TOPIC, b"%d" % at)
        file = tmp_path / FILE
        assert TOPIC in file.read_text()
        if damage == "lost":
            file.unlink()
        else:
            file.write_bytes(b"" if damage == "emptied" else b"\xff" * 40)
        async with running(config(tmp_path)) as live:
            await until(lambda: TOPIC in live.ring.peer.topics)
            assert await read(live, 3) == [b"0", b"1", b"2"]
        assert TOPIC in file.read_text()

    run(main)


def test_a_node_that_is_not_needed_deletes_its_copy_and_can_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "RELEASE_SECONDS", 0.3)
    monkeypatch.setattr(ring, "KEEPERS", 1)
    monkeypatch.setattr(releasing, "RELEASED_SECONDS", 0.3)

    def held(node: LiveNode) -> int:
        assert node.database is not None
        return 0 if TOPIC not in node.database._stores else len(node.database.topic(TOPIC))

    async def main() -> None:
        async with running(config(tmp_path / "a")) as one:
            join = (one.listen,)
            settings = config(tmp_path / "b", join=join, supervise=False)
            async with running(settings) as two:
                expected = [b"%d" % at for at in range(5)]
                for payload in expected:
                    await one.publish(TOPIC, payload)
                for _ in range(2):
                    assert await read(two, 5) == expected
                    await until(lambda: held(two) == 5)
                    await until(lambda: TOPIC not in two.ring.peer.topics)
                    await until(lambda: held(two) == 0)
                    assert held(one) == 5
                    assert two._wanted() == {}, "of what is gone nothing more is said"
            assert rows(tmp_path / "b" / "store")[0] == 0
            async with running(settings) as two:
                await asyncio.sleep(0.3)
                assert TOPIC not in two.ring.peer.topics, "it was left, not lost"
                assert await read(two, 5) == expected

    run(main)


@pytest.mark.parametrize("pattern", [TOPIC, "#"])
def test_what_was_joined_for_clients_is_let_go_after_a_restart_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.setattr(ring, "KEEPERS", 1)

    async def main() -> None:
        async with running(config(tmp_path / "a")) as one:
            settings = config(tmp_path / "b", join=(one.listen,), supervise=False)
            await one.publish(TOPIC, b"one")
            async with running(settings) as two:
                async with connect(two.listen, insecure=True) as client:
                    await anext(client.subscribe(pattern, since="all"))
                await until(lambda: two.memberships.names.get(pattern) == SERVED)
            async with running(settings) as two:
                await until(lambda: TOPIC in two.ring.peer.topics)
                assert two._wanted()[pattern] == SERVED
                monkeypatch.setattr(ring, "RELEASE_SECONDS", 0.3)
                await until(lambda: not two.ring.peer.topics)
                await until(lambda: two._wanted() == {TOPIC: RELEASED})
            monkeypatch.setattr(ring, "RELEASE_SECONDS", 600.0)

    run(main)


def test_what_an_application_wants_as_well_is_no_longer_for_clients_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "RELEASE_SECONDS", 0.3)

    async def main() -> None:
        (tmp_path / FILE).write_text(json.dumps({TOPIC: SERVED}))
        live = LiveNode(config(tmp_path))
        live.subscribe(TOPIC)
        async with live:
            await until(lambda: live.memberships.names.get(TOPIC) == NAMED)

    run(main)


def test_who_leaves_by_its_own_wish_keeps_its_copy_though_it_was_released_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releasing, "RELEASED_SECONDS", 0.3)

    async def main() -> None:
        async with running(config(tmp_path)) as live:
            await live.publish(TOPIC, b"one")
            assert live.gate is not None
            live.gate.memberships.released.add(TOPIC)
            assert live._wanted() == {TOPIC: NAMED}
            await asyncio.sleep(0.3)
            assert json.dumps({TOPIC: NAMED}) in (tmp_path / FILE).read_text()
            live.host.command(Unsubscribe(TOPIC))
            await until(lambda: TOPIC not in live.ring.peer.topics)
            await until(lambda: live.memberships.left == {TOPIC: LEFT})
            await asyncio.sleep(0.6)
            assert len(live.store(TOPIC)) == 1

    run(main)
