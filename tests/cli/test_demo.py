"""The demo: networks heal before one's eyes, and its exit code tells the truth."""

import io
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from planaria.cli import demo
from planaria.cli.healing import Screen, Watched, broken, heights, news
from planaria.cli.main import main
from planaria.core.overlay import Violation
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.trial import Spec, Trial
from planaria.studies import study as studies

pytest_plugins = ("spark_session",)
HUNTED = str(Path(__file__).parents[1] / "hunted.py")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(stream: io.StringIO) -> Watched:
    trial = Watched(RingOverlay(), Spec(8, 1))
    trial.screen = Screen("ring", stream)
    return trial


def test_a_trial_that_is_watched_ends_as_one_that_is_not() -> None:
    seen = watched(io.StringIO()).run()
    plain = Trial(RingOverlay(), Spec(8, 1)).run()
    assert seen == plain


def test_plain_lines_tell_what_fails_until_all_holds() -> None:
    stream = io.StringIO()
    watched(stream).run()
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("ring: interval 0: ")
    assert "broken (" in lines[0]
    assert lines[-1].endswith(": all invariants hold")


def test_a_terminal_sees_every_invariant_that_ever_failed_hold_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planaria.cli.healing.FRAME_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    trial = watched(stream)
    trial.run()
    assert trial.screen is not None
    trial.screen.stop()
    last = stream.getvalue().rpartition("interval ")[2]
    assert len(trial.screen.history) > 1
    assert all(name in last for name in trial.screen.history)
    assert last.count("holds") == len(trial.screen.history)


def test_an_invariant_first_seen_later_held_before() -> None:
    screen = Screen("x", io.StringIO())
    screen.show(0, [Violation("a", 1, "")])
    screen.show(1, [Violation("b", 1, ""), Violation("b", 2, "")])
    assert screen.history == {"a": [1, 0], "b": [0, 2]}


def test_bars_are_as_high_as_what_fails() -> None:
    assert heights([0, 1, 50, 100], 100) == "·▂▅█"


@pytest.mark.parametrize(
    ("told", "now", "new"),
    [
        ({"a": 10}, {"a": 9}, False),
        ({"a": 10}, {"a": 5}, True),
        ({"a": 10}, {"b": 10}, True),
        ({"a": 10}, {}, True),
        ({}, {}, False),
    ],
)
def test_a_line_is_for_news(told: dict[str, int], now: dict[str, int], new: bool) -> None:
    assert news(Counter(told), Counter(now)) is new


def test_what_fails_is_named_worst_first_as_far_as_it_fits() -> None:
    counts = Counter({"a": 1, "b": 2000, "c": 3})
    assert broken(counts) == "2,004 broken (b 2,000, c 3, a 1)"
    assert broken(counts, 30) == "2,004 broken (b 2,000, ...)"


class Latin(io.TextIOWrapper):
    """A terminal without bars."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="latin-1")

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode("latin-1")


def test_a_latin_1_terminal_sees_the_demo(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Latin()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("planaria.cli.healing.FRAME_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(studies, "STUDIES", {"toy": "toy_study:STUDY"})
    monkeypatch.setattr(demo, "NETWORKS", (demo.Network("ring", 8, 1, {}),))
    assert main(["demo", "--out", str(tmp_path / "out")]) == 0
    assert "networks healed: 1 of 1" in terminal.shown()
    assert "#" in terminal.shown()  # a bar


@pytest.mark.parametrize("network", demo.NETWORKS, ids=lambda network: network.overlay)
def test_every_network_of_the_demo_heals(
    network: demo.Network, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.heal(network)
    assert "legitimate after" in capsys.readouterr().out


def test_a_wrong_master_is_said_before_anything_heals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--master", "moon"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("planaria: error: master 'moon'")
    assert told.err.count("\n") == 1


def test_a_directory_of_others_is_said_before_anything_heals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theirs").write_text("")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert (
        told.err == f"planaria: error: {tmp_path} is not empty and holds no sweep: name another\n"
    )


def test_the_demo_fails_if_a_network_does_not_heal(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(studies, "STUDIES", {"toy": "toy_study:STUDY"})
    good = demo.Network("ring", 4, 1, {})
    bad = demo.Network(f"{HUNTED}:Relapsing", 30, 1, {})
    for networks, code in [((good,), 0), ((good, bad), 1)]:
        monkeypatch.setattr(demo, "NETWORKS", networks)
        assert main(["demo", "--out", str(tmp_path / str(code))]) == code
    text = capsys.readouterr().out
    assert "networks healed: 1 of 1" in text
    assert "legitimate means healed: every invariant holds" in text.lower()
    summary = text[text.index("Now the papers") :].splitlines()[1:4]
    assert summary == [
        "toy:  1 of 2 claims hold,  0 undecided,  1 of 1 own checks",
        "the others do not: a slip of the pen (1)",
        f"report: {tmp_path}/0/report.html",
    ]
    shown = text.replace(str(tmp_path), "").replace(HUNTED, "hunted.py")
    assert max(map(len, shown.splitlines())) <= 80
    assert "networks healed: 1 of 2" in text
    assert "NOT healed" in text
