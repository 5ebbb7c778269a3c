"""The hunt finds what is broken, makes it small, and finds nothing where nothing is."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.simulator.schedule import NAMED, parse_schedule
from planaria.simulator.worlds.registry import REGISTERED, find_kind
from planaria.spark.grid import Cell, Grid, Value, rotated
from planaria.spark.hunt import (
    Hunt,
    Target,
    chosen_starts,
    diverse,
    named_schedules,
    publishes,
    recovery,
)
from toys import ROOT, SORTED

pytest_plugins = ("spark_session",)

AXES: Grid = {
    "scheduler": ["fifo", "starve"],
    "intervals": [60],
    "closure": [10],
    "messages": [20_000],
}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def target(reference: str, *nemesis: str, **options: Any) -> Target:
    return Target(reference, (reference,), options, named_schedules(nemesis))


def cells(starts: list[str], n: list[int], nemesis: list[str], seeds: int) -> tuple[Cell, ...]:
    return rotated({"start": starts, "n": n, "nemesis": nemesis, **AXES}, range(seeds))


def test_it_finds_the_broken_promises_and_no_others_and_shrinks_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The nodes are deaf to failures, so crashes and nothing else keep them from healing."""
    deaf = target("tests/broken.py:DeafToFailure", "none", "crash", "churn")
    grid: Grid = {
        "start": ["legitimate"],
        "n": [5, 9],
        "nemesis": ["none", "crash", "churn"],
        **AXES,
    }
    hunt = Hunt(deaf, grid, range(24), str(tmp_path))
    assert hunt.sweep.run(spark) == 24
    rows = hunt.sweep.rows(spark)
    table = {row.nemesis: row for row in recovery(rows, ["start", "nemesis"]).collect()}
    assert table["none"].failed == table["none"].void == 0
    assert table["none"].p50 == table["none"].max == 0
    assert table["crash"].failed == table["crash"].starts == 8
    findings = hunt.findings(spark, rows, shrunk_max=3)
    assert len(findings) == rows.where("checker is not null").count() >= 8
    assert [it.n for it in findings] == sorted(it.n for it in findings)
    assert [it.smaller is not None for it in findings[:4]] == [True, True, True, False]
    for finding in findings[:3]:
        assert finding.smaller is not None
        assert finding.scenario is not None
        assert "--n 2 " in finding.smaller or "--n 3 " in finding.smaller
        assert "--scheduler" not in finding.smaller
        words = shlex.split(finding.smaller)
        text = Path(finding.scenario).read_text()
        assert f"# {finding.smaller}\n" in text
        assert [str(it) for it in parse_schedule(text)] == [words[words.index("--fault") + 1]]
        repeated = str(tmp_path / "repeated.parquet")
        assert main([*words[1:], "--no-shrink", "--trace", repeated]) == 1
        assert main(["trace", "diff", str(finding.trace), repeated]) == 0
    again = Hunt(deaf, grid, range(24), str(tmp_path))
    assert again.sweep.run(spark) == 0
    assert again.findings(spark, again.sweep.rows(spark), 3) == findings
    rows.unpersist()


def test_one_finding_of_each_kind_is_shrunk_before_a_second_of_any() -> None:
    broken = [
        ("convergence", "sorted at 1: has 2"),
        ("convergence", "sorted at 0: has 3"),
        ("closure", "sorted at 0: has 3"),
        ("convergence", "sorted at 4: has 5"),
        ("convergence", "channel at 2: names 7"),
        ("closure", "sorted at 2: has 3"),
    ]
    assert diverse(broken) == [0, 2, 4, 1, 5, 3]
    assert diverse([]) == []


@pytest.mark.parametrize(
    ("overlay", "checker"),
    [
        ("tests/broken.py:Forgetful", "convergence"),
        ("tests/broken.py:Raising", "no-exception"),
        ("tests/broken.py:Repeating", "delivered-once"),
        ("tests/hunted.py:Relapsing", "closure"),
        ("tests/hunted.py:Storming", "messages"),
        (SORTED, None),
    ],
)
def test_each_kind_of_broken_promise_is_found(overlay: str, checker: str | None) -> None:
    hunted = target(overlay, "none", "lossy")
    tried = [hunted.try_cell(it) for it in cells(["corrupt"], [4, 8], ["none", "lossy"], 8)]
    found = {result.summary["checker"] for result in tried}
    assert found - {None} == {checker} - {None}
    assert {result.failed for result in tried} == {name is not None for name in found}


@pytest.mark.parametrize("overlay", sorted(REGISTERED))
def test_every_registered_overlay_can_be_hunted(overlay: str) -> None:
    options = {it.name.replace("-", "_"): it.default for it in find_kind(overlay).options}
    hunted = target(overlay, "none", "restart", **options)
    for cell in cells(["corrupt", "legitimate"], [1, 6], ["none", "restart"], 6):
        result = hunted.try_cell(cell)
        assert set(result.summary) >= {"legitimate", "healed_in", "checker"}
        assert hunted.replay(cell).startswith(f"planaria sim {overlay} --n ")


def test_every_condition_of_a_cell_reaches_its_trial_and_its_replay_command() -> None:
    hunted = target("ring", "crash", supervisors=2)
    given: dict[str, Value] = {
        "n": 4,
        "start": "legitimate",
        "scheduler": "constant",
        "nemesis": "crash",
    }
    cell = Cell({**given, "delay": "fixed:23", "silent_failures": True, "publish": 3}, 5)
    assert [str(action) for action in hunted.spec(cell).faults] == [
        "at 0.5 publish count=2",
        "at 1 crash share=0.33",
        "at 2.5 publish count=1",
    ]
    assert hunted.replay(cell) == (
        "planaria sim ring --n 4 --seed 5 --start legitimate --scheduler constant "
        "--delay fixed:23 --silent-failures --fault 'at 0.5 publish count=2' "
        "--fault 'at 1 crash share=0.33' --fault 'at 2.5 publish count=1'"
    )
    trial, outcome, violation = hunted.attempt(hunted.spec(cell))
    assert violation is None
    assert not trial.simulator.detects_failed_sends
    assert all(fault.affected for fault in outcome.faults)


def test_only_overlays_with_publications_are_asked_to_publish() -> None:
    """Publications are lookups in a DHT and a tree; sorted lists have none of either."""
    assert all(publishes(target(name)) for name in REGISTERED)
    assert not publishes(target(SORTED))


def test_all_stands_for_every_start_of_the_overlay() -> None:
    hunted = target("ring")
    assert chosen_starts(hunted, ["all"]) == list(find_kind("ring").make().starts)
    assert chosen_starts(hunted, ["fresh", "corrupt", "fresh"]) == ["fresh", "corrupt"]
    with pytest.raises(UsageError, match=r"unknown start 'warm' \(one of all, fresh, "):
        chosen_starts(hunted, ["warm"])


def test_all_stands_for_every_schedule_that_is_not_too_heavy() -> None:
    assert list(named_schedules(["all"])) == list(NAMED)
    assert named_schedules(["burst"]) == {"burst": "at 1 publish count=4200\n"}


def test_a_fault_without_effect_is_told() -> None:
    """One node alone has no links to cut; two have one."""
    hunted = target(SORTED, "partition")
    for n, void in ((1, True), (2, False)):
        for cell in cells(["legitimate"], [n], ["partition"], 4):
            assert hunted.try_cell(cell).summary["void"] == void
