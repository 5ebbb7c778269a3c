"""A batch that was staged is published whole and once, whoever dies on the way."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gate_lab
from gate_lab import TOPIC, Lab, numbered, until
from planaria.core.errors import PlanariaError, UsageError
from planaria.core.node import Notice
from planaria.network.client.batches import (
    Commit,
    Numbering,
    Staged,
    Stager,
    Unsettled,
    commit,
    named,
)
from planaria.network.client.client import Client, connect
from planaria.network.client.messages import AskBatch, BatchIs, MemberHas, Put
from planaria.network.gate.publishing import Publishing
from planaria.network.gate.session import Session
from planaria.protocols.skipring.history import History
from planaria.protocols.skipring.staging import Staging
from planaria.records.manifest import (
    Manifest,
)
from planaria.records.memory import MemoryStore
from planaria.records.record import Draft, Record, Stream, seal

QUERY = "a query"


def run(test: Callable[[Lab], Awaitable[None]], n: int = 3, **options: Any) -> None:
    gate_lab.run(test, n, members=n, seconds=120.0, **options)


def client(lab: Lab, at: int = 0) -> Client:
    alive = [at, *(it for it in sorted(lab.alive) if it != at)]
    servers = [lab.hosts[it].hello.addresses[0] for it in alive]
    return connect(servers, insecure=True, name="a driver")


async def stage(one: Client, *partitions: list[bytes], topic: str = TOPIC) -> list[Staged]:
    """Stage each partition as a task would, in records of three rows."""
    found = []
    for rows in partitions:
        stager = Stager(one, 2)
        for at in range(0, len(rows), 3):
            await stager.put(topic, partial(sealed, [Draft(row) for row in rows[at : at + 3]]))
        found += await stager.finish()
    return found


def sealed(drafts: list[Draft], stream: Stream, first: int, time: int) -> Record:
    return seal(stream, first, drafts, time=time)


def histories(lab: Lab) -> list[History]:
    return [it.history for at in lab.alive for it in lab.nodes[at].peer.topics.values()]


def rows(lab: Lab, at: int, topic: str = TOPIC) -> list[bytes]:
    batch = lab.nodes[at].peer.topics[topic].history.holdings.store.read({})
    return [row for part in batch.slices for row in part.record.payloads(part.lo, part.hi)]


def staged(lab: Lab, at: int) -> int:
    index = lab.nodes[at].peer.topics[TOPIC].history.staging.holdings.store.index
    return sum(stream[1][:1] == b"S" for stream in index.lanes)


async def everywhere(lab: Lab, expected: list[bytes]) -> None:
    await until(lambda: all(sorted(rows(lab, at)) == sorted(expected) for at in lab.alive))


def test_a_batch_is_seen_by_nobody_before_its_commit_and_by_all_after_it(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            found = await stage(one, numbered(10), numbered(10, 14))
            assert not any(rows(lab, at) for at in lab.alive)
            assert sum(staged(lab, at) for at in lab.alive) == 4  # two partitions, two copies
            assert await commit(one, Numbering(), QUERY, 0, found, copies=2)
            await everywhere(lab, numbered(14))
            await until(lambda: not any(staged(lab, at) for at in lab.alive))

    run(test, disk=tmp_path)


def test_a_batch_replayed_in_other_partitions_publishes_nothing() -> None:
    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            assert await commit(
                one, Numbering(), QUERY, 0, await stage(one, numbered(12)), copies=2
            )
        async with client(lab, 2) as again:
            found = await stage(again, numbered(5), numbered(5, 7), numbered(7, 12))
            assert not await commit(again, Numbering(), QUERY, 0, found, copies=2)
            found = await stage(again, numbered(12, 20))
            assert await commit(again, Numbering(), QUERY, 1, found, copies=2)
        await everywhere(lab, numbered(20))

    run(test)


def test_a_batch_is_recognized_by_its_rows_when_its_manifest_is_gone() -> None:
    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            found = await stage(one, numbered(12))
            assert await commit(one, Numbering(), QUERY, 7, found, copies=2)
            await everywhere(lab, numbered(12))
            for at in lab.alive:
                staging = lab.nodes[at].peer.topics[TOPIC].history.staging
                staging.load(Staging(MemoryStore()).state())
            for batch in (7, 6):
                found = await stage(one, numbered(5), numbered(5, 12))
                assert not await commit(one, Numbering(), QUERY, batch, found, copies=2)
            await everywhere(lab, numbered(12))

    run(test)


def test_batches_of_one_process_are_numbered_in_one_stream() -> None:
    async def test(lab: Lab) -> None:
        numbering = Numbering()
        async with client(lab) as one:
            for batch in range(5):
                found = await stage(one, numbered(4 * batch, 4 * batch + 4))
                await commit(one, numbering, QUERY, batch, found, copies=2)
        await everywhere(lab, numbered(20))
        assert [mark.next for mark in lab.store(1).vector().values()] == [20]

    run(test)


def test_a_missing_stage_fails_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planaria.network.client.batches.MISSING_SECONDS", 0.5)

    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            found = await stage(one, numbered(4))
            lost = found[0]._replace(incarnation=b"S" + bytes(11))
            with pytest.raises(Unsettled, match="1 of 2 stages for news are missing"):
                await commit(one, Numbering(), QUERY, 0, [*found, lost], copies=2)
            assert await commit(one, Numbering(), QUERY, 0, found, copies=2)
        await everywhere(lab, numbered(4))

    run(test)


def test_a_stage_whose_pieces_lie_at_different_members_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planaria.network.client.batches.MISSING_SECONDS", 0.5)

    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            found = await stage(one, numbered(12))
            moved = dict[int, list[Record]]()
            for at in lab.alive:
                staging = lab.nodes[at].peer.topics[TOPIC].history.staging
                for slice in staging.holdings.store.read({}).slices:
                    moved.setdefault(slice.record.first, []).append(slice.record)
                staging.load(Staging(MemoryStore()).state())
            for number, records in enumerate(moved.values()):
                at = sorted(lab.alive)[number % len(lab.alive)]
                history = lab.nodes[at].peer.topics[TOPIC].history
                assert history.staging.hold(records[0], history.horizon.present) == ""
            assert len(moved) > len(lab.alive) > 1
            assert await commit(one, Numbering(), QUERY, 0, found, copies=2)
            await everywhere(lab, numbered(12))
            gone = lab.nodes[0].peer.topics[TOPIC].history.staging
            lanes = gone.holdings.store.index.lanes
            await until(lambda: not any(stream[1][:1] == b"S" for stream in lanes))

    run(test)


def test_what_a_node_refuses_is_told_with_its_batch() -> None:
    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            for topic, said in (("a/#", "a/#"), (TOPIC, "no right to publish on news")):
                with pytest.raises(UsageError, match=said) as refused:
                    await stage(one, numbered(2), topic=topic)
                assert str(named("q", 7, refused.value)).startswith("batch 7 of query q: ")

    def refuse(session: Session, message: Put) -> None:
        session.fail(message.request, "usage", f"no right to publish on {message.topic}")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Publishing, "put", lambda _, *given: refuse(*given))
        run(test)


def test_a_manifest_that_a_dead_driver_left_is_finished_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It dies after members hold the manifest, before one of them publishes."""

    async def die(*_: object) -> None:
        raise ConnectionError

    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            found = await stage(one, numbered(9))
            with monkeypatch.context() as patched:
                patched.setattr("planaria.network.client.batches.Commit._publish", die)
                with pytest.raises(ConnectionError):
                    await commit(one, Numbering(), QUERY, 3, found, copies=2)
        assert not any(rows(lab, at) for at in lab.alive)
        async with client(lab, 2) as again:
            found = await stage(again, numbered(4), numbered(4, 9))
            assert not await commit(again, Numbering(), QUERY, 3, found, copies=2)
        await everywhere(lab, numbered(9))

    run(test)


def test_a_batch_that_reached_some_topics_is_finished_in_the_others_or_said_to_be_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its driver dies when the rows of one topic are settled; then its manifests are lost."""
    monkeypatch.setattr("planaria.network.client.batches.MISSING_SECONDS", 0.5)
    honest = Commit._publish_topic

    async def die(self: Commit, manifest: Manifest, topic: str, have: list[MemberHas]) -> None:
        if topic != TOPIC:
            raise ConnectionError
        await honest(self, manifest, topic, have)

    async def both(one: Client, lo: int, hi: int) -> list[Staged]:
        return [*await stage(one, numbered(lo, hi)), *await stage(one, numbered(3), topic="z")]

    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            for batch, lost in ((0, False), (1, True)):
                found = await both(one, 3 * batch, 3 * batch + 3)
                with monkeypatch.context() as patched:
                    patched.setattr(Commit, "_publish_topic", die)
                    with pytest.raises(ConnectionError):
                        await commit(one, Numbering(), QUERY, batch, found, copies=2)
                await everywhere(lab, numbered(3 * batch + 3))
                assert len(rows(lab, 0, "z")) == 3 * batch
                for history in histories(lab) if lost else ():
                    history.staging.load(Staging(MemoryStore()).state())
                again = await both(one, 3 * batch, 3 * batch + 3)
                if lost:
                    with pytest.raises(Unsettled, match="no row of it is on z"):
                        await commit(one, Numbering(), QUERY, batch, again, copies=2)
                else:
                    assert not await commit(one, Numbering(), QUERY, batch, again, copies=2)
                assert len(rows(lab, 0, "z")) == 3

    run(test)


def test_whoever_holds_a_part_holds_the_manifest_before_a_row_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def die(*_: object) -> None:
        raise ConnectionError

    async def test(lab: Lab) -> None:
        found = list[Staged]()
        for at in (0, 2):
            async with client(lab, at) as task:
                found += await stage(task, numbered(4))
        holders = [it for it in histories(lab) if it.staging.holdings.store.index.lanes]
        assert len(holders) > 2, "more than the copies of a manifest"
        async with client(lab) as one:
            with monkeypatch.context() as patched:
                patched.setattr(Commit, "_publish", die)
                with pytest.raises(ConnectionError):
                    await commit(one, Numbering(), QUERY, 0, found, copies=2)
        assert all([*it.staging.manifests()] for it in holders)

    run(test, n=4)


def test_a_manifest_that_one_dead_node_holds_is_never_published() -> None:
    """A manifest reaches A, A dies, the driver replays through B, A returns."""

    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            found = await stage(one, numbered(9))
            manifest = Numbering().manifest(one.publisher, QUERY, 0, found)
            lab.nodes[0].peer.topics[TOPIC].history.stage(0, manifest.record)
            kept = lab.nodes[0].peer.topics[TOPIC].history.staging.state()
            holder = lab.nodes[0].peer.topics[TOPIC].history.staging
            holder.holdings.ask(lambda store: store.drop(manifest.record.stream))  # A is away
            assert await commit(one, Numbering(), QUERY, 0, found, copies=2)
            holder.load(kept)  # and is back, with what it had
        await everywhere(lab, numbered(9))
        await asyncio.sleep(1)
        await everywhere(lab, numbered(9))

    run(test)


def test_of_two_drivers_of_one_checkpoint_one_wins_or_both_are_told() -> None:
    async def test(lab: Lab) -> None:
        payloads = (numbered(6), numbered(6, 10))
        async with client(lab) as one, client(lab, 1) as other:
            both = [
                commit(it, Numbering(), QUERY, 0, await stage(it, its), copies=3)
                for it, its in zip((one, other), payloads, strict=True)
            ]
            ends = await asyncio.gather(*both, return_exceptions=True)
        finished = [at if end is True else 1 - at for at, end in enumerate(ends) if end in (0, 1)]
        refused = [str(it) for it in ends if isinstance(it, PlanariaError)]
        assert len(finished) + len(refused) == 2, ends
        assert all("do two drivers write" in it for it in refused)
        assert ends.count(True) <= 1
        assert len({*finished}) <= 1, "one driver's batch, whoever finished it"
        await everywhere(lab, payloads[finished[0]] if finished else [])

    run(test)


def test_a_driver_that_finds_the_manifests_of_two_others_is_told_and_publishes_nothing() -> None:
    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            for at, payloads in enumerate((numbered(6), numbered(6, 10))):
                manifest = Numbering().manifest(one.publisher, QUERY, 0, await stage(one, payloads))
                lab.nodes[at].peer.topics[TOPIC].history.stage(at, manifest.record)
            found = await stage(one, numbered(10, 12))
            with pytest.raises(Unsettled, match="do two drivers write with one checkpoint"):
                await commit(one, Numbering(), QUERY, 0, found, copies=2)
        assert not any(rows(lab, at) for at in lab.alive)

    run(test)


def test_a_batch_under_two_manifests_is_told_as_equivocation() -> None:
    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            for payloads in (numbered(6), numbered(6, 10)):
                found = await stage(one, payloads)
                manifest = Numbering().manifest(one.publisher, QUERY, 0, found)
                portion = manifest.portions[TOPIC]
                for at in lab.alive:  # as on the two sides of a partition
                    history = lab.nodes[at].peer.topics[TOPIC].history
                    due = history.staging.settle(manifest, portion, history.holdings, [])
                    view = lab.nodes[at].peer.topics[TOPIC]._view()
                    for _, record in due:
                        taken = history.deposit(view, at, record, spread=False, durable=False)
                        lab.given[at] += taken
        notices = [it for it in lab.given[0] + lab.given[1] if isinstance(it, Notice)]
        assert {it.kind for it in notices} == {"equivocation"}
        assert {it.detail["batch"] for it in notices} == {0}

    run(test)


def test_a_batch_settles_whole_when_its_driver_dies_after_the_first_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Members that hold the manifest see one of its rows, and publish what they hold."""
    monkeypatch.setattr("planaria.protocols.skipring.staging.SETTLE_BYTES", 1)

    async def test(lab: Lab) -> None:
        async with client(lab) as one:
            found = await stage(one, numbered(30))
            manifest = Numbering().manifest(one.publisher, QUERY, 0, found)
            for at in (0, 1):
                lab.nodes[at].peer.topics[TOPIC].history.stage(at, manifest.record)
            question = (TOPIC, manifest.record.data, True)
            answer = await one.requests.ask(AskBatch, BatchIs, *question)
            assert not any(has.settled for has in answer.answers)
        assert any(rows(lab, at) for at in lab.alive)
        await everywhere(lab, numbered(30))

    run(test)


def test_a_node_killed_in_the_middle_leaves_the_batch_whole(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        async with client(lab, 3) as one:
            found = await stage(one, *(numbered(40 * at, 40 * at + 40) for at in range(4)))
            committing = asyncio.create_task(commit(one, Numbering(), QUERY, 0, found, copies=2))
            await until(lambda: any(rows(lab, at) for at in lab.alive))
            await lab.kill(1)
            assert await committing
        await everywhere(lab, numbered(160))

    run(test, n=4)
