"""How a node ends: nothing lost with it, its door first, its directory free."""

import asyncio
from pathlib import Path

import pytest

from live_lab import TOPIC, config, run, running, until
from planaria.cli import node as command
from planaria.network import handover
from planaria.network.connection import Connection
from planaria.network.contacts import parse_address
from planaria.network.handover import in_question, neighbours
from planaria.network.live import LiveNode
from planaria.protocols.publications import retention
from planaria.records.record import TIME_MAX
from planaria.records.store import Store
from records_lab import no_room


def test_who_comes_while_a_node_stops_is_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(config(tmp_path)) as live:
            address = parse_address(live.listen)
            _, writer = await asyncio.open_connection(*address)
            await until(lambda: live.host._connections)
            with monkeypatch.context() as patched:
                patched.setattr(Connection, "close", lambda *_: None)  # the other takes its time
                stopping = asyncio.ensure_future(live.stop(leave=False))
                await until(live.host._stopped.is_set)
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection(*address)
                assert not stopping.done()
                await stopping
            writer.close()

    run(main)


def test_a_node_that_cannot_start_frees_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: LiveNode) -> None:
        raise RuntimeError("a defect")

    async def main() -> None:
        with monkeypatch.context() as broken:
            broken.setattr(LiveNode, "start", fail)
            with pytest.raises(RuntimeError, match="a defect"):
                await command._serve(config(tmp_path), stop_with_stdin=False)
        async with LiveNode(config(tmp_path)):
            pass

    run(main)


def held(node: LiveNode) -> list[bytes]:
    """The payloads at a node, as they are in its store."""
    batch = node.ring.peer.topics[TOPIC].history.holdings.store.read({}, limit=1000)
    return [it.payload for one in batch.slices for it in one.record.publications(one.lo, one.hi)]


async def alone_then_with(one: LiveNode, other: LiveNode, count: int) -> None:
    """`one` publishes while it is the only member; `other` joins in the same moment."""
    await one.subscribe(TOPIC).ready()
    for number in range(count):
        await one.publish(TOPIC, b"%d" % number)
    other.subscribe(TOPIC)
    membership = one.ring.peer.topics[TOPIC]
    await until(lambda: neighbours(membership) and other.ring.peer.topics[TOPIC].holds)


@pytest.fixture
def _all_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a test takes, what was published in it is in question."""
    monkeypatch.setattr(retention, "ON_ITS_WAY_SECONDS", TIME_MAX)


@pytest.mark.usefixtures("_all_is_on_its_way")
@pytest.mark.parametrize("durability", ["disk", "none"])
def test_what_only_a_node_that_stops_holds_is_handed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, durability: str
) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path / "stays", durability=durability)) as stays:
            settings = config(tmp_path / "goes", supervise=False, join=(stays.listen,))
            async with LiveNode(settings) as goes:
                await alone_then_with(goes, stays, 20)
                assert len(in_question(goes.ring.peer.topics[TOPIC])) == 20
            assert sorted(held(stays), key=int) == [b"%d" % number for number in range(20)]
            assert goes.handover._bytes == 0

    run(main)
    assert "held by this node alone" not in caplog.text


def test_what_neighbours_have_shown_to_hold_is_not_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ON_ITS_WAY_SECONDS", 0)

    async def main() -> None:
        async with LiveNode(config(tmp_path / "stays")) as stays:
            settings = config(tmp_path / "goes", supervise=False, join=(stays.listen,))
            async with LiveNode(settings) as goes:
                await alone_then_with(goes, stays, 3)
                await until(lambda: not in_question(goes.ring.peer.topics[TOPIC]))
                assert len(held(stays)) == 3

    run(main)


@pytest.mark.usefixtures("_all_is_on_its_way")
@pytest.mark.parametrize("silent", [False, True])
def test_a_neighbour_that_takes_nothing_keeps_nobody_from_stopping(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    silent: bool,
) -> None:
    if silent:
        monkeypatch.setattr(handover, "HANDOVER_SECONDS", 0.5)

    async def main() -> None:
        async with LiveNode(config(tmp_path / "stays")) as stays:
            opened = stays.ring.peer.store

            def full(topic: str) -> Store:
                store = opened(topic)
                monkeypatch.setattr(store, "_admit", no_room)
                return store

            stays.ring.peer.store = full
            settings = config(tmp_path / "goes", supervise=False, join=(stays.listen,))
            async with LiveNode(settings) as goes:
                await alone_then_with(goes, stays, 2)
                if silent:
                    goes.handover._command = lambda _: None  # deposits get lost
            assert held(stays) == []

    run(main)
    assert "2 records may be held by this node alone" in caplog.text
