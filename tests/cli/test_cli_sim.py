"""`planaria sim`: exit codes, a table for people, JSON for programs, one line for mistakes."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from planaria import __version__
from planaria.cli.main import main
from planaria.simulator.trace import Trace
from toys import ROOT, SORTED

# An overlay with everything a Kind can add: options of each type, an output, a checker.
KIND = '''
from planaria.simulator.worlds.registry import Kind, Option, Output
from toys import ProbeOverlay


class Optional(ProbeOverlay):
    """Probes with options."""

    name = "optional"

    def __init__(self, *, width: int, mode: str, deep_tree: bool, rate: float) -> None:
        self.given = (width, mode, deep_tree, rate)

    def metrics(self, nodes):
        return {"given": self.given, "rate": 0.123456}


class Never:
    kinds = ("timeout",)

    def record(self, tick, kind, node, entry, effect):
        from planaria.simulator.checkers import SafetyBroken
        raise SafetyBroken("never", tick, "a node ran its timeout")


OPTIONS = (
    Option("width", 3, "How wide."),
    Option("mode", "plain", "Which way.", choices=("plain", "fancy")),
    Option("deep-tree", False, "Go deep."),
    Option("rate", 0.5, "How often."),
)
KIND = Kind(
    Optional,
    options=OPTIONS,
    outputs=(Output("svg", "A picture.", lambda trial: f"<svg>{trial.spec.n}</svg>"),),
)
STRICT = Kind(Optional, options=OPTIONS, checkers=(Never,))
'''


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("overlay") / "optional.py"
    file.write_text(KIND)
    return f"{file}:KIND"


def sim(*words: str) -> int:
    return main(["sim", *words])


def result(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def rows(out: str) -> dict[str, str]:
    """The names of a table and their values; a value may stand below its name."""
    found: dict[str, str] = {}
    last = ""
    for line in out.splitlines():
        name, _, value = line.partition(" ")
        last = name or last
        part = value.strip().removesuffix(" \\")
        found[last] = f"{found[last]} {part}".strip() if not name else part
    return found


def test_healed_trial_exits_0_and_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim(SORTED, "--n", "8", "--seed", "3", "--nemesis", "crash") == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = rows(out)
    assert lines["overlay"] == SORTED
    assert lines["legitimate"].startswith("yes, after")
    assert lines["fault"].startswith("at 1 crash share=0.33  (injected 2, affected 2)")
    replay = f"planaria sim {SORTED} --n 8 --seed 3 --fault 'at 1 crash share=0.33'"
    assert lines["replay"] == replay


def test_json_has_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim(SORTED, "--n", "8", "--json", "--fault", "at 1 for 2 loss rate=0.5") == 0
    found = result(capsys)
    assert {name: type(value).__name__ for name, value in found.items()} == {
        "overlay": "str",
        "n": "int",
        "seed": "int",
        "start": "str",
        "legitimate": "bool",
        "intervals": "int",
        "messages": "int",
        "bound": "int",
        "delay": "float",
        "promised": "bool",
        "violations": "list",
        "relapse": "list",
        "faults": "list",
        "workload": "list",
        "failure": "NoneType",
        "version": "str",
        "replay": "str",
        "nodes": "int",
    }
    assert found["version"] == __version__
    (fault,) = found["faults"]  # type: ignore[misc]
    assert set(fault) == {"action", "injected", "affected"}  # type: ignore[has-type]


def test_replay_command_gives_the_same_result(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--n", "9", "--seed", "5", "--nemesis", "churn", "--scheduler", "newest"]
    words += ["--delay", "heavy:5", "--drift", "0.2", "--start", "fresh", "--closure", "3"]
    sim(SORTED, *words, "--json")
    first = result(capsys)
    main([*shlex.split(str(first["replay"]))[1:], "--json"])
    assert result(capsys) == first


def test_failed_trial_exits_1_with_checker_seed_tick_replay_and_a_smaller_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--n", "10", "--seed", "3", "--nemesis", "lossy", "--nemesis", "crash"]
    assert sim("tests/broken.py:DeafToFailure", *words, "--intervals", "20") == 1
    out, err = capsys.readouterr()
    lines = rows(out)
    assert lines["legitimate"] == "no"
    assert lines["failed"] == "convergence, seed 3, tick 3000"
    assert "--fault 'at 0 for 8 loss rate=0.2'" in lines["replay"]
    assert lines["smaller"] == (
        "planaria sim tests/broken.py:DeafToFailure --n 2 --seed 3 --intervals 20 "
        "--fault 'at 1 crash share=0.33'"
    )
    assert "shrinking the failing trial" in err
    assert main(shlex.split(lines["smaller"])[1:]) == 1


def test_failed_trial_is_not_shrunk_when_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--n", "30", "--seed", "3", "--intervals", "5", "--no-shrink", "--json"]
    assert sim("tests/broken.py:Forgetful", *words) == 1
    found = result(capsys)
    assert (found["legitimate"], found["intervals"]) == (False, 7)
    assert len(found["violations"]) == 20  # type: ignore[arg-type]
    assert found["failure"]["shrunk"] is None  # type: ignore[index]


@pytest.mark.parametrize(
    ("overlay", "checker"), [("Repeating", "delivered-once"), ("Raising", "no-exception")]
)
def test_broken_safety_exits_1_at_that_step(
    overlay: str, checker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim(f"tests/broken.py:{overlay}", "--n", "4", "--json") == 1
    found = result(capsys)
    assert found["failure"]["checker"] == checker  # type: ignore[index]
    assert found["failure"]["tick"] <= 200  # type: ignore[index]
    assert found["violations"][0]["invariant"] == checker  # type: ignore[index]


def test_overlay_adds_options_that_come_back_in_the_replay_command(
    optional: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--n", "3", "--width", "5", "--mode", "fancy", "--deep-tree", "--json"]
    assert sim(optional, *words) == 0
    found = result(capsys)
    assert found["given"] == [5, "fancy", True, 0.5]
    asked = f"planaria sim {optional} --width 5 --mode fancy --deep-tree --n 3 --seed 0"
    assert found["replay"] == asked


def test_overlay_without_its_options_given_has_their_defaults(
    optional: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim(optional, "--n", "3") == 0
    out = capsys.readouterr().out
    assert "given       (3, 'plain', False, 0.5)" in out
    assert "rate        0.123" in out


def test_overlay_adds_outputs(optional: str, tmp_path: Path) -> None:
    assert sim(optional, "--n", "3", "--svg", str(tmp_path / "x.svg")) == 0
    assert (tmp_path / "x.svg").read_text() == "<svg>3</svg>"


def test_overlay_brings_checkers(optional: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sim(optional.replace(":KIND", ":STRICT"), "--n", "1", "--json", "--no-shrink") == 1
    assert result(capsys)["failure"]["checker"] == "never"  # type: ignore[index]


def test_help_of_an_overlay_lists_the_common_options_and_its_own(
    optional: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim(optional, "--help") == 0
    out = capsys.readouterr().out
    assert "Probes with options." in out
    for option in (
        "--n",
        "--nemesis",
        "--json",
        "--width",
        "--deep-tree / --no-deep-tree",
        "--svg",
    ):
        assert option in out


def test_trace_is_written_at_the_level_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "run.parquet")
    assert sim(SORTED, "--n", "4", "--trace", file, "--json") == 0
    found = result(capsys)
    trace = Trace(Path(file))
    assert (trace.about["level"], trace.about["replay"]) == ("everything", found["replay"])
    assert "timeout" in {row.kind for row in trace.rows()}
    assert set(found["message_types"]["sorted_list.introduce"]) == {  # type: ignore[index]
        "sent",
        "delivered",
        "dropped",
        "bytes",
    }
    assert sim(SORTED, "--n", "4", "--trace", file, "--trace-level", "counters") == 0
    assert list(Trace(Path(file)).rows()) == []
    Path(file).unlink()
    assert sim(SORTED, "--n", "4", "--trace", file, "--trace-level", "off") == 0
    assert not Path(file).exists()


def test_failed_trial_leaves_its_trace(tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    assert sim("tests/broken.py:Raising", "--n", "4", "--no-shrink", "--trace", str(file)) == 1
    assert list(Trace(file).rows())[-1].kind == "deliver"


BAD: list[tuple[list[str], str]] = [
    ([], "missing OVERLAY"),
    (["nothing"], "unknown overlay 'nothing'"),
    (["--n", "3"], "name the overlay first"),
    (["no/such/file.py:Class"], "cannot import no/such/file.py"),
    (["no.such.module:Class"], "cannot import no.such.module"),
    ([":Class"], "unknown overlay ':Class'"),
    (["examples/sorted_list.py:"], "unknown overlay"),
    (["examples/sorted_list.py:Nobody"], "no Overlay class and no Kind 'Nobody'"),
    (["examples/sorted_list.py:SortedNode"], "no Overlay class"),
    (["Makefile:x"], "cannot import Makefile"),
    ([SORTED, "--n", "0"], "n 0: between 1 and 1000000"),
    ([SORTED, "--n", "-5"], "n -5: between"),
    ([SORTED, "--n", "99999999999"], "between 1 and 1000000"),
    ([SORTED, "--n", "many"], "'many' is not a valid integer"),
    ([SORTED, "--n", "1.5"], "not a valid integer"),
    ([SORTED, "--seed", "x"], "not a valid integer"),
    ([SORTED, "--intervals", "0"], "intervals 0: between"),
    ([SORTED, "--closure", "-1"], "closure -1: between"),
    ([SORTED, "--drift", "nan"], "drift nan: between"),
    ([SORTED, "--drift", "2"], "drift 2.0: between"),
    ([SORTED, "--start", "warm"], "unknown start 'warm'"),
    ([SORTED, "--scheduler", "kind"], "unknown scheduler 'kind'"),
    ([SORTED, "--delay", "soon"], "write fixed:TICKS"),
    ([SORTED, "--nemesis", "no/such/file"], "neither a readable file"),
    ([SORTED, "--nemesis", "Makefile"], "Makefile, line"),
    ([SORTED, "--fault", "at once crash"], "--fault, line 1"),
    ([SORTED, "--trace", "/no/such/place/x.parquet"], "cannot write"),
    ([SORTED, "--trace-level", "messages"], "needs a --trace FILE"),
    ([SORTED, "--trace-level", "some"], "is not one of"),
    ([SORTED, "--svg", "x.svg"], "--svg"),
    ([SORTED, "surplus"], "surplus"),
]


@pytest.mark.parametrize(
    ("words", "complaint"), BAD, ids=[" ".join(words)[-40:] for words, _ in BAD]
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("planaria: error: ")
    assert err.count("\n") == 1
    assert complaint in err


def test_file_with_a_mistake_of_its_own_is_named_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("1 / 0\n", "def f(:\n", "import no_such_thing\n", "raise SystemError('x\\ny')\n"):
        file = tmp_path / "mine.py"
        file.write_text(text)
        assert sim(f"{file}:Overlay") == 2
        err = capsys.readouterr().err
        assert err.startswith(f"planaria: error: cannot import {file}: ")
        assert err.count("\n") == 1


def test_output_that_cannot_be_written_exits_2(
    optional: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim(optional, "--n", "3", "--svg", "/no/such/place/x.svg") == 2
    assert "cannot write /no/such/place/x.svg" in capsys.readouterr().err


def test_unknown_command_and_version_and_bare_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate"]) == 2
    assert "planaria: error: unknown command 'simulate'" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"planaria {__version__}\n"
    assert main([]) == 0
    assert "sim" in capsys.readouterr().out


def test_interrupted_run_exits_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planaria.cli.sim.Ticking", interrupted)
    assert sim(SORTED) == 130
    assert capsys.readouterr().err.endswith("planaria: error: interrupted\n")


def test_starting_up_loads_nothing_heavy() -> None:
    code = (
        "import sys; from planaria.cli.main import main; main(['--version']);"
        "heavy = {'numpy', 'pyarrow', 'planaria.simulator.engine', 'pyspark'} & set(sys.modules);"
        f"main(['sim', {SORTED!r}, '--n', '3']);"
        "heavy |= {'numpy', 'pyarrow', 'pyspark'} & set(sys.modules); print(heavy or 'light')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.endswith("light\n")
