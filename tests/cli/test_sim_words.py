"""What people read of a trial is true: how many nodes, what was a fault, who is left."""

import json
from pathlib import Path

import pytest

from planaria.cli.main import main
from planaria.cli.summary import summary, table
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.simulator.trial import Spec, Trial
from toys import ROOT, SORTED


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(["sim", *words, "--no-shrink"])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "n"),
    [
        (["content", "--brokers", "5", "--subscriptions", "3"], 5),
        (["gossip", "--groups", "2,3,4"], 9),
        (["mobile", "--graph", "grid:2x3"], 6),
        (["ring", "--n", "4", "--supervisors", "3"], 4),
        (["dht", "--n", "4"], 4),
    ],
)
def test_n_is_the_true_number_of_nodes(
    words: list[str], n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(printed(capsys, *words, "--start", "legitimate", "--closure", "1", "--json"))
    assert found["n"] == n


def test_one_interval_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    seen = {
        printed(capsys, SORTED, "--n", "3", "--seed", str(seed))
        .split("legitimate  ")[1]
        .split("\n")[0]
        for seed in range(12)
    }
    assert "yes, after 1 interval" in seen
    assert not any(line.endswith(" 1 intervals") for line in seen)


def test_publications_are_work_and_not_faults(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ring", "--n", "4", "--fault", "at 1 publish count=2", "--fault", "at 2 crash count=1"]
    out = printed(capsys, *words)
    assert "workload" in out
    faults = [line for line in out.splitlines() if line.startswith("fault")]
    assert ["crash" in line for line in faults] == [True]
    found = json.loads(printed(capsys, *words, "--json"))
    assert [it["action"] for it in found["faults"]] == ["at 2 crash count=1"]
    assert [it["affected"] for it in found["workload"]] == [2]


def test_a_supervisor_is_called_one() -> None:
    """In what is violated, and in the sentence that says what failed."""
    overlay = RingOverlay(supervisors=2)
    trial = Trial(overlay, Spec(3, 1, "legitimate", asked=("ring",)))
    first, beyond = overlay.supervisors[0], overlay.supervisors[-1] + 1
    for node in trial.simulator.nodes.values():
        if isinstance(node, Supervisor):
            node.topics.clear()
    outcome = trial.outcome(legitimate=False, violations=trial.violations())
    out = table(summary(trial, outcome, None, None))
    assert " at supervisor " in out
    assert "10995116277" not in out
    assert ": supervisor 0 7 in 0x10" in str(trial.violation("x", f"node {first} 7 in 0x10"))
    assert overlay.called(beyond) == str(beyond)


def test_nobody_left_is_not_legitimate(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mobile", "--n", "1", "--start", "legitimate", "--fault", "at 1 crash count=1"]
    assert "nobody is left" in printed(capsys, *words)
    assert json.loads(printed(capsys, *words, "--json"))["legitimate"] is None


HALF = """
from planaria.core.overlay import Overlay


class Half(Overlay):
    name = "half"

    def spawn(self, id, rng):
        return None


class Whole(Overlay):
    spawn = legitimate = corrupt = forge = violations = None


class Asking(Whole):
    name = "asking"

    def __init__(self, width):
        pass
"""

LAZY = """
from planaria.core.node import Node
from toys import ProbeOverlay


class Lazy(Node):
    def on_HANDLER(self, *given):
        self.heard = 1


class Lazies(ProbeOverlay):
    name = "lazies"

    def spawn(self, id, rng):
        return Lazy(id)

    def legitimate(self, n, rng):
        return [Lazy(id) for id in range(n)]

    def corrupt(self, node, ids, rng):
        pass
"""


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Half", "lacks corrupt, forge, legitimate, violations"),
        ("Whole", "lacks name"),
        ("Asking", "missing a required argument: 'width'; give options in a Kind"),
    ],
)
@pytest.mark.parametrize("command", ["sim", "hunt"])
def test_an_overlay_that_cannot_be_made_is_one_line_and_exit_code_2(
    command: str, name: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "half.py"
    file.write_text(HALF)
    assert main([command, f"{file}:{name}"]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("handler", ["timeout", "message", "command"])
def test_a_handler_that_returns_none_is_named(
    handler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"lazy_{handler}.py"
    file.write_text(LAZY.replace("HANDLER", handler))
    assert main(["sim", f"{file}:Lazies", "--n", "3", "--fault", "at 1 publish count=1"]) == 2
    error = capsys.readouterr().err
    assert f"Lazy.on_{handler} returned None" in error
    assert error.count("\n") == 1


def test_messages_are_a_table_not_a_dictionary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "ring", "--n", "3", "--trace", str(tmp_path / "run.parquet"))
    lines = [line.split() for line in text.splitlines()]
    assert ["sent", "delivered", "dropped", "bytes"] in lines
    (found,) = [it for it in lines if it[:1] == ["skipring.check"]]
    assert all(it.isdigit() for it in found[1:])
    assert "{" not in text
