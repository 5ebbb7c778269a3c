"""`planaria compare`: exit codes, tables for people, JSON for programs, one line for mistakes."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from planaria import __version__
from planaria.cli.compare import in_words as printed
from planaria.cli.main import main
from planaria.studies import compare
from planaria.studies.advice import advice, broken, by_fault, in_calm
from planaria.studies.compare_page import page, picture
from planaria.studies.compare_runs import COLUMNS, contest

pytest_plugins = ("spark_session",)

SMALL = ["compare", "--n", "6", "--topics", "2", "--events", "3", "--seeds", "2"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only some contenders and faults."""
    monkeypatch.setattr(compare, "CONTENDERS", dict.fromkeys(("ring", "star", "flooding")))
    monkeypatch.setattr(compare, "FAULTS", ("none", "busiest"))


def row(contender: str, fault: str = "none", **changed: Any) -> dict[str, Any]:
    """A row of the table with nothing wrong in it."""
    kind = "overlay" if contender in ("ring", "gossip", "content", "mobile") else "baseline"
    found: dict[str, Any] = {"contender": contender, "kind": kind, "fault": fault}
    found |= dict.fromkeys(("copies", "messages", "hops", "delay", "memory", "memory_max"), 2.0)
    found |= dict.fromkeys(("repeats", "strays", "lost", "lost_after"), 0.0)
    return found | {"duplicates": 0, "recovered": 1.0, "recovery": 4.0, "seeds": 2} | changed


def test_a_directory_of_others_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theirs").write_text("")
    assert main([*SMALL, "--out", str(tmp_path)]) == 2
    said = f"planaria: error: {tmp_path} is not empty and holds no sweep: name another\n"
    assert capsys.readouterr().err == said
    assert [it.name for it in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.usefixtures("few")
def test_comparison_writes_table_picture_and_page_and_says_what_follows(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*SMALL, "--out", str(tmp_path)]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == __version__
    assert (found["broken"], found["errors"]) == ([], [])
    kinds = [(it["contender"], it["fault"], it["kind"]) for it in found["table"]]
    assert kinds == [
        (name, fault, "overlay" if name == "ring" else "baseline")
        for name in ("ring", "star", "flooding")
        for fault in ("none", "busiest")
    ]
    star = found["table"][3]
    assert (star["lost_after"], star["recovered"], star["recovery"], star["seeds"]) == (
        1,
        0,
        None,
        2,
    )
    written = parquet.read_table(tmp_path / "compare.parquet")
    assert written.column_names == [*compare.TABLE]
    assert written.to_pylist() == found["table"]
    assert (tmp_path / "compare.csv").read_text().count("\n") == 7
    assert "<svg" in (tmp_path / "compare.svg").read_text()
    assert "Which one should I use?" in (tmp_path / "compare.html").read_text()
    assert main(words) == 0  # nothing is run again
    text = capsys.readouterr().out
    assert "which one should I use?" in text
    assert "star never recovers from busiest; after busiest it keeps losing 100%" in text
    assert f"results in {tmp_path}" in text


def test_runs_that_raise_leave_the_table_to_others_and_get_no_advice(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No worker knows a contender `nobody`."""
    monkeypatch.setattr(compare, "CONTENDERS", dict.fromkeys(("nobody", "star")))
    monkeypatch.setattr(compare, "FAULTS", ("none",))
    words = [*SMALL, "--out", str(tmp_path / "some")]
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [it["contender"] for it in found["table"]] == ["star"]
    assert "Nothing ever breaks: star" in found["advice"][2]
    assert found["advice"][-1] == "No advice on these, whose runs raised exceptions: nobody."
    (error,) = found["errors"]
    assert (error["cells"], error["error"].split(":")[0]) == (2, "KeyError")
    assert "KeyError" in (tmp_path / "some/compare.html").read_text()
    monkeypatch.setattr(compare, "CONTENDERS", {"nobody": None})
    assert main([*SMALL, "--out", str(tmp_path / "all")]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    last = output.err.splitlines()[-1]
    assert last.startswith("planaria: error: compare: all 2 simulations raised KeyError: 'nobody'")
    assert "; replay: planaria compare --n 6" in last


@pytest.mark.usefixtures("few")
def test_one_cell_can_be_run_again_alone(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = compare.Comparison(6, 2, 3, 2)
    cell = comparison.cells[-1]
    command = comparison.work().replay(cell).split()
    assert command[:1] == ["planaria"]
    assert main(command[1:]) == 0
    assert json.loads(capsys.readouterr().out) == contest(cell).summary


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--n", "2"], "n 2: between"),
        (["--topics", "0"], "topics 0"),
        (["--events", "1"], "events 1"),
        (["--seeds", "0"], "--seeds"),
        (["--cell", "x"], "unknown cell 'x'"),
        (["--master", "nonsense"], "nonsense"),
    ],
)
def test_wrong_options_are_one_line_and_exit_code_2(
    words: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "--out", str(tmp_path), *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert complaint in output.err.splitlines()[-1]


def test_table_averages_seeds_and_keeps_who_never_recovered_apart(spark: SparkSession) -> None:
    names = [name for name in COLUMNS if name not in ("twice", "recovery")]
    columns = ", ".join(f"{name} double" for name in names)
    schema = f"contender string, fault string, {columns}, twice bigint, recovery bigint"
    data = [
        ("star", "crash", *([2.0] * len(names)), 1, None),
        ("star", "crash", *([4.0] * len(names)), 2, 7),
        ("ring", "crash", *([1.0] * len(names)), 0, 5),
        ("ring", "none", *([1.0] * len(names)), 0, 0),
    ]
    found = compare.table(spark.createDataFrame(data, schema))
    shown = "contender kind fault copies duplicates recovered recovery recovery_max seeds".split()
    expected = [
        ("ring", "overlay", "none", 1.0, 0, 1.0, 0.0, 0, 1),
        ("ring", "overlay", "crash", 1.0, 0, 1.0, 5.0, 5, 1),
        ("star", "baseline", "crash", 3.0, 3, 0.5, 7.0, 7, 2),
    ]
    assert [tuple(row[name] for name in shown) for row in found] == expected


def test_advice_follows_the_figures() -> None:
    rows = [
        row("ring", messages=9.0),
        row("ring", "crash", messages=9.0),
        row("gossip", delay=1.0),
        row("gossip", "crash", lost=0.3, delay=1.0),
        row("star", messages=1.0, strays=0.5),
        row("star", "crash", lost_after=0.8, recovered=0.0, recovery=None),
    ]
    lines = advice(rows)
    assert lines[0] == (
        "Nothing may be lost, whatever happens: ring "
        "(fewest messages ring, quickest ring, least memory ring)."
    )
    assert "ring, gossip (fewest messages gossip, quickest gossip" in lines[1]
    assert "ring, gossip, star (fewest messages star, quickest gossip" in lines[2]
    assert lines[3] == ("star never recovers from crash; after crash it keeps losing 80%.")
    assert lines[4] == "Events also pass through nodes that did not ask for them: star."
    harmless = advice([row("star"), row("star", "crash", recovered=0.0, recovery=None)])
    assert harmless[3].endswith("crash; that lost nothing in these runs.")
    better = advice([*rows[:3], row("gossip", "crash"), *rows[4:]])
    assert "ring, gossip" in better[0]
    assert by_fault(rows)[1:] == [
        ["ring", "0, 4", "0, 4"],
        ["gossip", "0, 4", "30%, 4"],
        ["star", "0, 4", "80%, never"],
    ]
    assert in_calm(rows)[1][:3] == ["ring", "2", "9"]


def test_nothing_is_said_of_whom_a_run_raised() -> None:
    """What is left of the ring is good: its runs without a fault are the ones that raised."""
    rows = [row("ring", "crash"), row("star"), row("star", "crash", lost=0.2)]
    lines = advice(rows, ["ring"])
    assert lines[0] == "Nothing may be lost, whatever happens: none of these."
    assert lines[-1] == "No advice on these, whose runs raised exceptions: ring."
    assert not any("ring" in line for line in lines[:-1])
    assert advice(rows[:1], ["ring"]) == lines[-1:]


def test_tables_picture_and_page_do_without_a_row_in_calm() -> None:
    rows = [row("ring", "crash")]
    assert len(in_calm(rows)) == 1
    verdict = compare.Verdict(rows, [], [], [], "here")
    assert "results in here" in printed(verdict)
    sizes = {"n": 6, "topics": 2, "events": 3}
    assert "<h3>In calm</h3>" in page(verdict, picture(rows), sizes, "1")


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"duplicates": 2}, "2 duplicate deliveries"),
        ({"recovered": 0.5}, "50% of runs did not recover"),
        ({"lost": 0.1}, "lost 10.0% with no fault"),
    ],
)
def test_broken_promises_of_overlays_are_named(changed: dict[str, Any], complaint: str) -> None:
    assert broken([row("ring")]) == broken([row("star", **changed)]) == []
    (message,) = broken([row("ring", **changed)])
    assert complaint in message
    assert broken([row("ring", "corrupt", duplicates=2)]) == []
    assert broken([row("gossip", lost=0.1)]) == broken([row("ring", "loss", lost=0.1)]) == []
