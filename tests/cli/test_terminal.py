"""What people see in a terminal: 80 columns, any encoding, the nearest command, how far it is."""

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from planaria.cli import ticker
from planaria.cli.compare import in_words as comparison
from planaria.cli.doctor import report
from planaria.cli.hunt import _in_words as hunted
from planaria.cli.inspect import topic_text
from planaria.cli.main import main, planaria
from planaria.cli.reproduce import in_words
from planaria.cli.tables import WIDTH, aligned, command, filled, folded
from planaria.network.doctor import BROKEN, Diagnosis, Finding
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.trial import Spec, Trial
from planaria.studies.compare import Verdict as Compared
from planaria.studies.reproduce import Verdict

ROOT = Path(__file__).parents[2]
LONG = "a long text of many words, " * 12
REPLAY = "planaria sim ring --n 9 --seed 1 " + "--fault 'at 1 crash count=1' " * 6


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of the command line, as words."""
    yield words
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*words, name))
        else:
            yield *words, name


@pytest.mark.parametrize("words", list(commands(planaria)), ids=" ".join)
def test_help_fits_into_80_columns(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: planaria")
    assert widest(text) <= WIDTH


@pytest.mark.parametrize(
    "line",
    [
        "sim ring --n 9 --fault 'at 0 publish count=2' --fault 'at 1 for 2 partition groups=2'",
        "sim gossip --groups 2,4,8 --events 2",
        "sim content --brokers 4 --subscriptions 4 --nemesis churn",
        "sim mobile --graph grid:3x3 --publications 2",
        "sim tree --n 6",
        "sim dht --n 6",
        "sim tests/broken.py:DeafToFailure --n 4 --seed 3 --nemesis crash --intervals 5",
    ],
)
def test_a_trial_fits_into_80_columns(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([*shlex.split(line), "--no-shrink"]) in (0, 1)
    assert widest(capsys.readouterr().out) <= WIDTH


def test_what_spark_found_fits_into_80_columns() -> None:
    error = {"cells": 3, "error": LONG, "replay": REPLAY}
    claim = {"study": "damulticast", "claim": LONG, "n": 128, "paper": 1.5, "measured": None}
    claim |= {"holds": "no", "meaning": "ours", "cause": None, "relation": "<="}
    check = {"study": "damulticast", "check": LONG, "measured": 2.0, "bound": 1.0}
    check |= {"holds": "no", "relation": "<="}
    verdict = Verdict([claim], [check], [error], "report.html")
    assert widest(in_words(verdict, verbose=True)) <= WIDTH
    figures = dict.fromkeys(
        ("copies messages hops delay repeats strays memory memory_max duplicates lost".split()),
        12345.678,
    )
    figures |= {"lost_after": 0.5, "recovered": 1, "recovery": 123.0, "duplicates": 2}
    faults = ("none", "crash", "busiest", "loss", "partition", "corrupt")
    rows = [{"contender": "plain-gossip", "fault": fault, **figures} for fault in faults]
    assert widest(comparison(Compared(rows, [LONG], [LONG], [error], "out"))) <= WIDTH
    finding = {"checker": "convergence", "seed": 1, "detail": LONG, "replay": REPLAY}
    finding |= {"smaller": REPLAY, "scenario": "x", "trace": "y", "shrink_error": LONG}
    counted = {"starts": 9, "failed": 1, "void": 0, "p50": 1.5, "p99": 2.0, "max": 3}
    counted |= {"of_bound": 0.25}
    conditions = {"delay": "uniform:1:50", "silent_failures": True, "publish": 4}
    result = {
        "overlay": "ring", "starts": 9, "fresh": 9, "starts_per_minute": 5, "findings": [finding],
        "recovery": [{"start": "legitimate", "nemesis": "partition-and-loss", **counted}],
        "schedulers": [{"scheduler": "priority", **counted}],
        "conditions": [{**conditions, **counted}], "errors": [error], "out": "x",
    }  # fmt: skip
    assert widest(hunted(result)) <= WIDTH


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_a_wrapped_command_can_be_pasted() -> None:
    lines = command(REPLAY)
    assert len(lines) > 2
    assert widest("\n".join(lines)) <= WIDTH
    pasted = "\n".join(lines).replace("\\\n", "")  # as a shell reads it
    assert shlex.split(pasted) == shlex.split(REPLAY)


def test_tables_wrap_a_column_or_fold_all_of_them() -> None:
    rows = [["x", LONG, "1"], ["y", "short", "22"]]
    lines = aligned(rows, right=(2,), wrapped=1)
    assert widest("\n".join(lines)) == WIDTH
    assert lines[-1].startswith("y  short")
    wide = [["name", *"abcdef"], ["one", *(letter * 30 for letter in "abcdef")]]
    lines = folded(wide)
    assert widest("\n".join(lines)) <= WIDTH
    assert [line.split() for line in lines[:2]] == [["name", "a", "b"], ["one", "a" * 30, "b" * 30]]
    assert lines.count("") == 2
    assert folded([["only"], ["one"]]) == ["only", "one"]
    assert filled("") == [""]


def test_tables_show_control_characters_escaped_and_still_in_line() -> None:
    """No topic has any, but nodes of an older version may tell of one that does."""
    rows = [["esc/a\nforged: 4", "1"], ["\x1b[2J\x7f\x9b\t", "2"], ["\u00e4/\u2028\u6771", "3"]]
    expected = [
        "esc/a\\nforged: 4   1",
        "\\x1b[2J\\x7f\\x9b\\t  2",
        "\u00e4/\u2028\u6771".ljust(19) + "3",
    ]
    assert aligned(rows) == folded(rows) == expected
    said = Finding(BROKEN, "label", rows[1][0], 1, "n1", "is wrong", "heals")
    assert report(Diagnosis(False, 1, 1, 2, 1.0, [said]))[1].isprintable()
    found = {"topic": rows[0][0], "members": [], "databases": [], "findings": []}
    assert topic_text(found)[0] == "topic esc/a\\nforged: 4: 0 members"


@pytest.mark.parametrize("words", [["top", "-d"], ["dashboard", "-d"], ["doctor", "--wait"]])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "-1"])
def test_a_time_to_wait_is_a_finite_number(
    words: list[str], number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, number, "-s", "127.0.0.1:1", "--insecure"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "is not a finite number" in err or "is not in the range" in err


def test_a_trace_lasts_for_a_finite_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["trace", "live", str(tmp_path / "x"), "-s", "127.0.0.1:1", "--insecure"]
    assert main([*words, "--seconds", "nan"]) == 2
    assert "'nan' is not a finite number" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
@pytest.mark.parametrize("words", [["filter", "explain", "x = '\u2013\U0001f600'"], ["--help"]])
def test_a_terminal_that_lacks_a_character_gets_the_others(words: list[str], encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(
        [sys.executable, "-m", "planaria", *words], env=environment, capture_output=True, cwd=ROOT
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["simm"], "unknown command 'simm'; did you mean sim?"),
        (["filter", "explian", "x"], "unknown command 'explian'; did you mean explain?"),
        (["trace", "shw", "x"], "unknown command 'shw'; did you mean show?"),
        (["sim", "rnig"], "unknown overlay 'rnig'; did you mean ring?"),
        (["hunt", "gosip"], "unknown overlay 'gosip'; did you mean gossip?"),
        (["sim", "ring", "--start", "corupt"], "unknown start 'corupt'; did you mean corrupt?"),
        (["sim", "ring", "--scheduler", "lilo"], "unknown scheduler 'lilo'; did you mean lifo?"),
        (["reproduce", "leses"], "unknown paper 'leses'; did you mean leases?"),
        (["zzz"], "unknown command 'zzz' (one of archive, bench"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert says in capsys.readouterr().err


def test_a_written_picture_is_named_and_has_the_colours_of_the_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figure 1: shortcuts of level 1 are blue, those of level 2 red."""
    picture = tmp_path / "ring.svg"
    assert main(["sim", "ring", "--n", "16", "--svg", str(picture)]) == 0
    assert capsys.readouterr().err == f"planaria: wrote {picture}\n"
    svg = picture.read_text()
    blue, red = svg.rindex('stroke="#1f77b4"'), svg.rindex('stroke="#d62728"')
    assert svg.index("shortcut, level 1", blue) - blue < 150
    assert svg.index("shortcut, level 2", red) - red < 150


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_a_trial_shows_how_far_it_is_in_a_terminal_only(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticker, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(ticker, "NEXT_SECONDS", 0.0)
    trial = ticker.Ticking(RingOverlay(), Spec(8, 1))
    trial.ticker = ticker.Ticker(stream)
    outcome = trial.run()
    trial.ticker.clear()
    assert outcome == Trial(RingOverlay(), Spec(8, 1)).run()
    shown = stream.getvalue().split(ticker.CLEAR)
    if not stream.isatty():
        assert shown == [""]
        return
    assert shown[-1] == ""
    assert shown[-2].endswith("all invariants hold")
    assert any(" broken" in line for line in shown)
    assert len(shown) > outcome.intervals
