"""The comparison on sockets: the same workload, its figures, and the table of them."""

import asyncio

from planaria.cli.compare import live_rows
from planaria.lab.contest.workload import make_workload
from planaria.studies.compare_live import LiveFigures, compare_live


def test_mobile_keeps_its_promises_on_sockets_and_is_measured() -> None:
    said: list[str] = []
    workload = make_workload(4, 1, 3, seed=1)
    (found,) = asyncio.run(compare_live(workload, said.append, ["mobile"]))
    assert said == ["mobile: 4 nodes, 3 events"]
    assert (found.lost, found.lost_in_fault, found.lost_after, found.twice) == (0, 0, 0, 0)
    assert found.recovery_seconds is not None
    assert 0 < found.p50_ms <= found.p99_ms
    assert found.bytes > found.messages > 0


def test_the_table_says_what_was_lost_and_what_did_not_heal() -> None:
    head, row = live_rows([LiveFigures("gossip", 1.5, 2.5, 300, 4.0, 0.0, 0.25, 0.5, 3, None)])
    assert head.split()[0] == "overlay"
    assert row.split() == ["gossip", "1.5", "2.5", "300", "4.0", "0.0", "%", "25.0", "%", "50.0",
                           "%", "3", "no"]  # fmt: skip
