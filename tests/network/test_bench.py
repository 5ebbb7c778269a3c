"""The benchmark of the live network: real processes, honest ratios, nothing left behind."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from planaria.cli import bench as command
from planaria.cli.main import main, planaria
from planaria.network.bench import contender as module
from planaria.network.bench import replay
from planaria.network.bench.brokers import Nats
from planaria.network.bench.clients import Clients, FirstClients, ReplayingClients
from planaria.network.bench.contender import Contender, Take
from planaria.network.bench.contenders import OURS, PEERS, REPLAYS, contender
from planaria.network.bench.embedded import Embedded
from planaria.network.bench.measure import Plan, Round, System, compare
from planaria.network.bench.processes import Failed, environment
from planaria.network.bench.report import as_json, ratios
from planaria.network.bench.worker import BURST, Reader, payload

TINY = Plan(rounds=1, burst_seconds=0.02, steady_seconds=0.1, subscribers=2)


def alive(system: System) -> list[int]:
    return [pid for it in system._processes for pid in it.pids if Path(f"/proc/{pid}").exists()]


class Nonsense(Embedded):
    """A system that no worker knows."""

    name = "nonsense"


@pytest.mark.parametrize("ours", [Embedded, Clients])
def test_a_system_is_measured_by_separate_processes_and_none_is_left(
    ours: type[Contender], tmp_path: Path
) -> None:
    async def measure() -> None:
        system = System(ours, tmp_path / "system", TINY)
        try:
            await system.start()
            await system.round()
            pids = alive(system)
        finally:
            await system.stop()
        assert len(set(pids)) >= 4
        assert os.getpid() not in pids
        assert alive(system) == []
        result = system.result()
        assert result.lost == 0
        assert min(result.deliveries_per_s, result.cpu_us, result.p50_ms) > 0
        assert result.p99_ms >= result.p50_ms

    asyncio.run(measure())


def test_a_system_that_fails_is_named_and_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    results = asyncio.run(compare([Nonsense], TINY, tmp_path, said.append))
    assert results == {}
    assert any(line.startswith("nonsense hub ended: KeyError") for line in said)


def test_ratios_are_of_ours_to_each_peer() -> None:
    ours, peer = Round(300.0, 2.0, 1.0, 9.0, 0), Round(100.0, 4.0, 0.5, 3.0, 7)
    results = {"planaria": ours, "zmq": peer}
    found = {"deliveries_per_s": 3.0, "cpu_us": 0.5, "p50_ms": 2.0, "p99_ms": 3.0}
    assert ratios(results) == {"planaria": {"zmq": found}}
    said = json.loads(json.dumps(as_json(results, TINY, 1.5)))
    assert said["ratios"]["planaria"]["zmq"] == found
    assert said["systems"]["zmq"]["lost"] == 7


def test_every_name_is_that_of_its_system() -> None:
    names = [*OURS, *PEERS, *REPLAYS]
    assert [contender(name).name for name in names] == names


def test_what_is_missing_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert Nats.lacking() == "nats: pip install 'planaria[bench]'"
    monkeypatch.setattr(module, "find_spec", lambda _: True)
    monkeypatch.setattr(module, "find_program", lambda _: None)
    assert Nats.lacking() == "nats: apt-get install nats-server"
    monkeypatch.setattr(module, "find_program", lambda name: name)
    assert Nats.lacking() == ""


def test_the_command_refuses_peers_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--against", "zmq,rabbit"]) == 2
    assert "unknown peer 'rabbit'" in capsys.readouterr().err
    shown = CliRunner().invoke(planaria, ["bench", "--help"]).output
    assert all(name in shown for name in PEERS)


def test_peers_that_were_asked_for_begin_before_more_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A minute on a slow machine was over before the peer's turn came."""
    begun: list[str] = []

    async def measured(contenders: list[type[Contender]], *_: Any) -> dict[str, Round]:
        begun.extend(it.name for it in contenders)
        return dict.fromkeys(begun, Round(1.0, 1.0, 1.0, 1.0, 0))

    monkeypatch.setattr(command, "compare", measured)
    monkeypatch.setattr(module, "find_spec", lambda _: True)
    said = CliRunner().invoke(planaria, ["bench", "--against", "zenoh,zmq", "--json"]).output
    assert begun == ["planaria", "zenoh", "zmq", *OURS[1:]]
    assert [*json.loads(said)["systems"]] == [*OURS, "zenoh", "zmq"]


def test_late_joiners_read_all_of_the_past_and_leave_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    pasts: list[replay.Past] = []
    made = replay.Past

    def kept(*given: Any) -> replay.Past:
        pasts.append(made(*given))
        return pasts[-1]

    monkeypatch.setattr(replay, "Past", kept)
    monkeypatch.setattr(replay, "LATE_SECONDS", 0.0)
    contenders: list[type[Contender]] = [ReplayingClients, Nonsense]
    found = asyncio.run(replay.replays(contenders, tmp_path, said.append, count=600, rounds=1))
    assert [*found] == ["planaria-replay"]
    assert min(found.values()) > 0
    assert any(line.startswith("nonsense hub ended") for line in said)
    pids = [pid for past in pasts for it in past._processes for pid in it.pids]
    assert len(set(pids)) >= 6, "hub, three nodes, publisher and reader"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_late_clients_come_to_the_node_of_the_publisher_or_each_to_a_new_one(
    tmp_path: Path,
) -> None:
    publisher, *readers = range(1, 2 + replay.ROUNDS)
    for kind in (ReplayingClients, FirstClients):
        numbers = [kind(tmp_path, "", it).number(kind.nodes) for it in (publisher, *readers)]
        assert len(set(numbers)) == (1 if kind is ReplayingClients else 1 + replay.ROUNDS)


def test_workers_keep_what_they_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each reads a past with all that it imports meanwhile compiled anew."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PLANARIA_ELSE", "kept")
    found = environment()
    assert "PYTHONDONTWRITEBYTECODE" not in found
    assert found["PLANARIA_ELSE"] == "kept"


def test_a_late_reader_leaves_when_it_has_read(tmp_path: Path) -> None:
    class Going(Nonsense):
        gone = False

        async def subscribe(self, take: Take) -> None:
            take(payload(BURST, 0, 32))

        async def leave(self) -> None:
            self.gone = True

    system = Going(tmp_path, "", 1)
    answer = asyncio.run(Reader(system).do({"do": "replay", "count": 1}))
    assert answer["count"] == 1
    assert system.gone


def test_a_late_joiner_that_misses_something_is_told(tmp_path: Path) -> None:
    class Short(replay.Past):
        async def _process(self, role: str) -> Any:
            return Answering()

    class Answering:
        async def tell(self, do: str, **_: object) -> dict[str, float]:
            return {"count": 5, "seconds": 1.0}

        async def end(self) -> None:
            """It is none."""

    with pytest.raises(Failed, match="a late reader got 5 of 6"):
        asyncio.run(Short(Embedded, tmp_path, 6).read())
