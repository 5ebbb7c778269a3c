"""`planaria trace`: show, diff and draw what a run wrote."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from planaria.cli.main import main
from planaria.core.trace import Row
from planaria.simulator.pictures import lamport
from toys import ROOT, SORTED


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one seed and one of another."""
    folder = tmp_path_factory.mktemp("traces")
    for name, seed in (("a", "1"), ("again", "1"), ("other", "2")):
        words = [str(ROOT / SORTED), "--n", "5", "--seed", seed, "--nemesis", "lossy"]
        assert main(["sim", *words, "--trace", str(folder / f"{name}.parquet")]) == 0
    return folder


def test_show_prints_columns_and_rows_on_stdout_and_the_run_on_stderr(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "show", str(traces / "a.parquet"), "--limit", "7"]) == 0
    out, err = capsys.readouterr()
    header, *rows = out.splitlines()
    assert header.split("\t") == list(Row._fields)
    assert len(rows) == 7
    assert "# replay: planaria sim" in err
    assert "more rows (--limit)" in err


def test_show_selects_kinds_and_nodes(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--kind", "timeout", "--kind", "drop", "--node", "2", "--limit", "1000"]
    assert main(["trace", "show", str(traces / "a.parquet"), *words]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    assert {row[2] for row in rows} == {"timeout", "drop"}
    assert {row[1] for row in rows} == {"2"}


def test_diff_of_the_same_run_exits_0(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "diff", str(traces / "a.parquet"), str(traces / "again.parquet")]) == 0
    assert capsys.readouterr().out == ""


def test_diff_of_two_runs_exits_1_with_the_first_difference(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "diff", str(traces / "a.parquet"), str(traces / "other.parquet")]) == 1
    first, *sides = capsys.readouterr().out.splitlines()
    assert first.startswith("row ")
    assert len(sides) == 2
    assert sides[0].split(": ")[1] != sides[1].split(": ")[1]


def test_lamport_writes_a_well_formed_picture(traces: Path) -> None:
    out = traces / "a.svg"
    words = ["--out", str(out), "--from", "100", "--to", "300"]
    assert main(["trace", "lamport", str(traces / "a.parquet"), *words]) == 0
    assert ElementTree.parse(out).getroot().tag.endswith("svg")


def test_lamport_says_where_it_stopped(
    traces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lamport, "EVENTS_MAX", 50)
    out = str(traces / "short.svg")
    assert main(["trace", "lamport", str(traces / "a.parquet"), "--out", out]) == 0
    assert "draw the rest with --from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "show, diff, lamport, html or live"),
        (["show"], "Missing argument"),
        (["show", "nothing.parquet"], "cannot read nothing.parquet"),
        (["show", "Makefile"], "cannot read Makefile"),
        (["show", "{a}", "--kind", "loud"], "unknown kind 'loud'"),
        (["show", "{a}", "--limit", "-1"], "-1 is not in the range"),
        (["diff", "{a}", "nothing.parquet"], "cannot read"),
        (["lamport", "{a}"], "Missing option '--out'"),
        (["lamport", "{a}", "--out", "/no/such/place/x.svg"], "cannot write"),
        (["lamport", "{a}", "--out", "x.svg", "--from", "999999"], "nothing to draw"),
        (["paint", "{a}"], "unknown command 'paint'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    words: list[str],
    complaint: str,
    traces: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["trace", *(word.format(a=traces / "a.parquet") for word in words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("planaria: error: ")
    assert err.count("\n") == 1
    assert complaint in err
