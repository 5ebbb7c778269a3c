"""`planaria hunt`: exit codes, tables for people, JSON for programs, one line for mistakes."""

import json
import socket
from pathlib import Path

import click
import pytest
from pyspark.sql import SparkSession

from planaria import __version__
from planaria.cli.hunt import CONDITIONS, _in_words, hunt
from planaria.cli.main import main
from planaria.simulator.worlds.registry import REGISTERED
from planaria.spark.store import code_version
from spark_lab import Stubborn, contents
from toys import ROOT, SORTED

pytest_plugins = ("spark_session",)


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("PLANARIA_SPARK_MASTER", raising=False)


def test_a_sound_overlay_gives_exit_code_0_and_recovery_times(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["hunt", SORTED, "--seeds", "30", "--n", "2:6", "--nemesis", "crash", "--nemesis"]
    words += ["none", "--schedulers", "fifo,lifo", "--out", str(tmp_path)]
    words += ["--silent-failures", "no"]  # the toy has no other way to notice a crash
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["starts"], result["fresh"], result["version"]) == (30, 30, __version__)
    assert result["starts_per_minute"] > 0
    assert result["findings"] == result["errors"] == []
    kinds = [(row["start"], row["nemesis"]) for row in result["recovery"]]
    assert kinds == [(a, b) for a in ("corrupt", "legitimate") for b in ("crash", "none")]
    for row in result["recovery"]:
        assert 0 <= row["p50"] <= row["p99"] <= row["max"] <= 60
    assert sum(row["starts"] for row in result["recovery"]) == 30
    assert [row["scheduler"] for row in result["schedulers"]] == ["fifo", "lifo"]
    assert sum(row["starts"] for row in result["schedulers"]) == 30
    conditions = [(row["delay"], row["silent_failures"]) for row in result["conditions"]]
    assert conditions == [("fixed:23", False), ("uniform:1:50", False)]
    assert all(0 < row["of_bound"] <= 1 for row in result["conditions"])
    assert result["code"] == code_version([Path(SORTED.split(":")[0])], ["planaria.spark.hunt"])
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "findings: none" in printed
    assert printed.startswith(f"{SORTED}: 30 starts\n")


def test_a_broken_overlay_gives_exit_code_1_and_commands_that_repeat_it(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["hunt", "tests/broken.py:Raising", "--seeds", "2", "--n", "3", "--nemesis", "none"]
    assert main([*words, "--out", str(tmp_path / "x"), "--shrink", "1"]) == 1
    lines, said = (text.splitlines() for text in capsys.readouterr())
    done = said.index("planaria: every start is done; reading the results")
    assert said[done + 1] == "planaria: 2 findings; making 1 smaller"
    assert "findings: 2" in lines
    assert sum(line.startswith("- no-exception, seed ") for line in lines) == 2
    smaller = lines[lines.index("  smaller:") + 1]
    assert smaller.startswith("    planaria sim tests/broken.py:Raising --n ")
    scenario = next(line for line in lines if line.startswith("  scenario: "))
    assert Path(scenario.removeprefix("  scenario: ")).read_text().startswith("# no-exception: ")


def test_a_finding_that_could_not_be_made_smaller_says_why(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("planaria.spark.hunt.Target", Stubborn)
    words = ["hunt", "tests/broken.py:Raising", "--seeds", "3", "--n", "3", "--nemesis", "none"]
    words += ["--shrink", "2", "--out", str(tmp_path / "x")]
    assert main([*words, "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [it["smaller"] for it in findings] == [None, None, None]
    raised, killed, untried = [it["shrink_error"] for it in findings]
    assert raised.startswith("KeyError: 'stubborn' in spark_lab.py:")
    assert (killed, untried) == ("the worker died", None)
    assert main(words) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "shrinking failed" in line] == [
        f"  shrinking failed: {reason}" for reason in (raised, killed)
    ]


def test_tables_of_a_long_hunt_fit_into_80_columns() -> None:
    """With a hundred thousand starts, and schedules that are files far away."""
    figures = {"starts": 100_000, "failed": 100, "void": 999, "p50": 103.5}
    figures |= {"p99": 1127.2519, "max": 1_234, "of_bound": 0.98765}
    far = "/home/somebody/projects/network/schedules/" + "everything-at-once" * 3
    conditions = dict(zip(CONDITIONS, ("uniform:1:50", True, 4), strict=True))
    lines = _in_words(
        {
            "overlay": "ring", "starts": 100_000, "fresh": 0, "findings": [], "errors": [],
            "recovery": [{"start": "legitimate", "nemesis": far, **figures}],
            "schedulers": [{"scheduler": "priority", **figures}],
            "conditions": [{**conditions, **figures}],
            "out": "out",
        }
    ).splitlines()  # fmt: skip
    assert max(map(len, lines)) <= 80
    (row,) = [line.split() for line in lines if line.startswith("uniform:1:50")]
    assert row[:6] == ["uniform:1:50", "yes", "4", "100000", "100", "999"]
    assert row[6:] == ["103.5", "1127", "1234", "0.9877"]


@pytest.mark.parametrize("overlay", sorted(REGISTERED))
def test_the_options_of_an_overlay_do_not_collide_with_those_of_the_hunt(overlay: str) -> None:
    command = hunt.get_command(click.Context(hunt), overlay)
    assert command is not None
    names = [name for param in command.params for name in param.opts]
    assert len(names) == len({*names})


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "missing OVERLAY"),
        (["--seeds", "5"], "name the overlay first"),
        (["no-such-overlay"], "unknown overlay 'no-such-overlay'"),
        ([SORTED, "--seeds", "0"], "at least one cell"),
        ([SORTED, "--seeds", "many"], "--seeds 'many'"),
        ([SORTED, "--seeds", "9:5"], "range is empty"),
        ([SORTED, "--seeds", "99999999999"], "more than 10,000,000 seeds"),
        ([SORTED, "--seeds", "5:99999999999"], "more than 10,000,000 seeds"),
        ([SORTED, "--n", "1:99999999999"], "n 1000001: between 1 and"),
        ([SORTED, "--n", "0:3"], "n 0: between 1 and"),
        ([SORTED, "--n", "1-3"], "--n '1-3'"),
        ([SORTED, "--start", "upside-down"], "unknown start 'upside-down'"),
        ([SORTED, "--schedulers", "fifo,kind"], "unknown scheduler 'kind'"),
        ([SORTED, "--delay", "soon"], "delay 'soon'"),
        ([SORTED, "--silent-failures", "perhaps"], "'perhaps' is not one of"),
        (["ring", "--publish", "-1"], "publish"),
        ([SORTED, "--nemesis", "nobody"], "nemesis 'nobody'"),
        ([SORTED, "--intervals", "0"], "intervals 0"),
        ([SORTED, "--closure", "-1"], "closure -1"),
        ([SORTED, "--out", "README.md"], "README.md"),
        ([SORTED, "--out", "docs"], "not empty"),
        ([SORTED, "--out", "/proc/planaria"], "cannot write"),
        (["ring", "--supervisors", "x"], "'x' is not a valid integer"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if "--out" not in words and words:
        words = [*words, "--out", str(tmp_path)] if not words[0].startswith("-") else words
    assert main(["hunt", *words]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_results_of_another_version_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = {"layout": 1, "experiment": "hunt", "code": "0.0.1+abc"}
    (tmp_path / "sweep.json").write_text(json.dumps(theirs))
    before = contents(tmp_path)
    assert main(["hunt", "ring", "--seeds", "1", "--out", str(tmp_path)]) == 2
    assert "holds results of code '0.0.1+abc'" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_a_master_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{unused.getsockname()[1]}"
        words = ["hunt", "ring", "--seeds", "1", "--out", str(tmp_path / "out")]
        assert main([*words, "--master", master]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("planaria: error: nobody answers")
    assert main([*words, "--master", "moon"]) == 2
    assert "planaria: error: master 'moon'" in capsys.readouterr().err
