"""The comparison on sockets: the same workload, its figures, and the table of them."""

import asyncio

import pytest
from msgspec.structs import replace

from planaria.cli.compare import live_rows
from planaria.cli.main import main
from planaria.lab.contest.workload import make_workload
from planaria.network.bench.brokers import Brokered, Mosquitto, Nats
from planaria.studies import compare_brokers, compare_live
from planaria.studies.compare_brokers import BrokerRun
from planaria.studies.compare_live import LiveFigures, broken

GOOD = LiveFigures("gossip", 1.5, 2.5, 300, 4.0, 0.0, 0.25, 0.0, 0, 1.0)


def test_mobile_keeps_its_promises_on_sockets_and_is_measured() -> None:
    said: list[str] = []
    workload = make_workload(4, 1, 3, seed=1)
    (found,) = asyncio.run(compare_live.compare_live(workload, said.append, ["mobile"]))
    assert said == ["mobile: 4 nodes, 3 events"]
    assert (found.lost, found.lost_in_fault, found.lost_after, found.twice) == (0, 0, 0, 0)
    assert found.recovery_seconds is not None
    assert 0 < found.p50_ms <= found.p99_ms
    assert found.bytes > found.messages > 0
    assert broken(found) == []


def test_the_table_says_what_was_lost_and_what_did_not_heal() -> None:
    head, row = live_rows([LiveFigures("gossip", 1.5, 2.5, 300, 4.0, 0.0, 0.25, 0.5, 3, None)])
    assert head.split()[0] == "overlay"
    assert row.split() == ["gossip", "1.5", "2.5", "300", "4.0", "0.0", "%", "25.0", "%", "50.0",
                           "%", "3", "no"]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "complaints"),
    [
        ({}, []),
        ({"lost": 0.5}, ["gossip lost 50.0% in calm"]),
        ({"lost_after": 0.01}, []),
        ({"overlay": "content", "lost_after": 0.01}, ["content lost 1.0% after the fault"]),
        ({"overlay": "ring"}, ["ring lost 25.0% in the fault"]),
        ({"twice": 2}, ["gossip delivered 2 events twice"]),
        ({"recovery_seconds": None}, ["gossip did not heal within 60 s"]),
        ({"overlay": "nats", "lost_after": 1.0, "recovery_seconds": None}, []),
    ],
)
def test_what_an_overlay_promised_and_did_not_keep_is_told(
    changes: dict[str, object], complaints: list[str]
) -> None:
    assert broken(replace(GOOD, **changes)) == complaints


def test_a_broken_promise_is_in_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def found(*_: object) -> list[LiveFigures]:
        return [replace(GOOD, recovery_seconds=None)]

    async def none(*_: object) -> list[LiveFigures]:
        return []

    monkeypatch.setattr(compare_live, "compare_live", found)
    monkeypatch.setattr(compare_brokers, "compare_brokers", none)
    assert main(["compare", "--live"]) == 1
    assert "broken promise: gossip did not heal" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--seeds=1", "--out=x", "--master=local", "--cell=x"])
def test_what_is_for_simulations_is_refused(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "--live", option]) == 2
    assert f"{option.partition('=')[0]}: not with --live" in capsys.readouterr().err


def test_a_broker_that_is_not_installed_is_skipped_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Brokered, "lacking", classmethod(lambda it: f"{it.name}: get it"))
    said: list[str] = []
    found = asyncio.run(compare_brokers.compare_brokers(make_workload(4, 1, 3, 1), said.append))
    assert found == []
    assert said == [
        "nats: skipped, it is not installed (nats: get it)",
        "mosquitto: skipped, it is not installed (mosquitto: get it)",
    ]


@pytest.mark.parametrize("broker", [Nats, Mosquitto], ids=lambda it: it.name)
def test_a_broker_is_killed_started_again_and_measured(
    broker: type[Brokered], monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := broker.lacking():
        pytest.skip(f"skipped: {lacking}")
    monkeypatch.setattr(BrokerRun, "known", {broker: BrokerRun.known[broker]})
    workload, said = make_workload(4, 1, 3, seed=1), list[str]()
    (found,) = asyncio.run(compare_brokers.compare_brokers(workload, said.append))
    assert said == [f"{broker.name}: 4 clients, 3 events"]
    assert (found.lost, found.lost_after) == (0, 0)
    assert found.recovery_seconds is not None
    assert 0 < found.p50_ms <= found.p99_ms
    assert found.bytes > len("<event 000000>") > found.messages > 1
