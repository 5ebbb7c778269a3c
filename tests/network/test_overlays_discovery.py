"""Neighbours of `mobile` found by multicast DNS, on the loopback interface."""

import asyncio
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from live_lab import config, run
from overlays_lab import at, part_of, payloads, until
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.network.host import Host
from planaria.network.live import LiveNode
from planaria.network.overlays import discovery, neighbours
from planaria.network.overlays.discovery import Discovery
from planaria.network.overlays.mobile import MobilePart
from planaria.network.overlays.neighbours import Neighbours


def test_nodes_that_know_no_address_find_each_other_and_lose_who_says_goodbye(
    tmp_path: Path,
) -> None:
    pytest.importorskip("zeroconf", reason="pip install 'planaria[discovery]'")

    async def main() -> None:
        one = LiveNode(config(tmp_path / "one", discover=True))
        other = LiveNode(config(tmp_path / "other", discover=True))
        stranger = LiveNode(config(tmp_path / "stranger", discover=True, cluster="elsewhere"))
        async with one, stranger, at(one) as publisher:
            async with (
                other,
                at(other) as reader,
                reader.subscribe("news", overlay="mobile") as events,
            ):
                await events.ready()
                await publisher.publish("news", b"found", overlay="mobile")
                assert await payloads(events, 1) == [b"found"]
            await until(lambda: not part_of(one, "mobile").reach)
            assert not part_of(stranger, "mobile").reach
            assert not stranger.host.links

    run(main)


def test_without_the_library_or_a_numeric_address_one_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="numeric address"):
        Discovery(None, "planaria", "localhost:7400")  # type: ignore[arg-type]
    monkeypatch.setitem(__import__("sys").modules, "zeroconf.asyncio", None)
    with pytest.raises(UsageError, match=r"planaria\[discovery\]"):
        Discovery(None, "planaria", "127.0.0.1:7400")  # type: ignore[arg-type]


class Found:
    """Keeps the addresses of neighbours."""

    def __init__(self) -> None:
        self.near: dict[str, None] = {}

    def discover(self, address: str) -> None:
        self.near[address] = None

    def forget(self, address: str) -> None:
        self.near.pop(address, None)


class Info:
    """What the library finds out about a name."""

    ports: ClassVar[dict[str, int]] = {}

    def __init__(self, _: str, name: str) -> None:
        self.port, self.properties = self.ports[name], {b"cluster": b"planaria"}

    async def async_request(self, *_: object) -> bool:
        await asyncio.sleep(0)
        return True

    def parsed_addresses(self) -> list[str]:
        return ["10.0.0.1"]


def test_however_many_names_are_announced_so_many_are_resolved_and_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zeroconf = pytest.importorskip("zeroconf", reason="pip install 'planaria[discovery]'")
    monkeypatch.setattr(discovery, "RESOLVED_MAX", 2)
    monkeypatch.setattr(discovery, "FOUND_MAX", 3)
    added, removed = zeroconf.ServiceStateChange.Added, zeroconf.ServiceStateChange.Removed
    ports = {f"n{at}": 1000 + at for at in range(10)}
    monkeypatch.setattr(Info, "ports", ports)

    async def main() -> None:
        near = Found()
        it = Discovery(cast(Neighbours, near), "planaria", "127.0.0.1:7400")
        it._library = SimpleNamespace(
            asyncio=SimpleNamespace(AsyncServiceInfo=Info),
            ServiceStateChange=zeroconf.ServiceStateChange,
        )
        it._zeroconf = SimpleNamespace(zeroconf=None)

        async def announce(*names: str, state: object = added) -> None:
            for name in names:
                it._changed(cast(Any, None), "", name, cast(Any, state))
                assert len(it._tasks) <= 2
                assert len(it._wanted) <= 3
            while it._tasks:
                await asyncio.sleep(0)

        await announce(*ports)
        assert [*near.near] == [f"10.0.0.1:{port}" for port in (1007, 1008, 1009)]
        ports["n9"] = 2000
        await announce("n9")
        assert [*near.near] == ["10.0.0.1:1007", "10.0.0.1:1008", "10.0.0.1:2000"]
        await announce("n8", state=removed)
        assert len(near.near) == len(it._addresses) == 2

    asyncio.run(main())


class Door:
    """A host that answers at some addresses."""

    def __init__(self, answers: dict[str, int | Exception]) -> None:
        self.answers, self.links = answers, dict[int, None]()
        self.node = SimpleNamespace(id=0)

    async def join(self, address: str) -> int:
        answer = self.answers[address]
        if isinstance(answer, Exception):
            raise answer
        for _ in range(9):
            await asyncio.sleep(0)
        return answer


def test_one_neighbour_that_goes_wrong_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    part = MobilePart(0, Random(0))
    wrong = (CapacityExceeded("full"), ValueError("a bug"))
    answers: dict[str, int | Exception] = {"a:1": wrong[0], "b:1": wrong[1], "c:1": 3}
    it = Neighbours(cast(Host, Door(answers)), part, [*answers])

    async def main() -> None:
        with pytest.raises(ValueError, match="a bug"):  # it is told, when the others have ended
            await it.ever()
        assert part.near == {3}
        monkeypatch.setattr(neighbours, "FOUND_MAX", 2)
        for number in range(5):
            address = f"d:{number}"
            answers[address] = CapacityExceeded("full")
            it.discover(address)
            await it._reach(address)
        assert [*it._found] == ["d:3", "d:4"]
        assert {*it._failed} == {"a:1", "d:3", "d:4"}
        it.forget("c:1")
        assert part.near == {3}, "it was named"

    asyncio.run(main())
