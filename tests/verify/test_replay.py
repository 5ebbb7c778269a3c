"""What a search finds is found again by the simulator, from the file alone, and only there."""

import json
from pathlib import Path

import pytest

from planaria.cli.main import main
from planaria.verify.cases import Case
from planaria.verify.counterexample import counterexample
from planaria.verify.mutants import PARTS
from planaria.verify.mutation import Mutant, mutated
from planaria.verify.replay import read

# Of each model a rule that is left out, and what the search of its case finds.
LEFT_OUT = {
    ("Sorted ring", "E3"): {"closure", "trap", "livelock"},
    ("Sorted ring", "contest"): {"closure", "trap", "livelock"},
    ("Supervised skip ring", "E16"): {"exception", "trap"},
    ("DHT and tree", "calls"): {"trap", "livelock"},
    ("Leases", "1"): {"closure", "trap", "livelock"},
    ("Publications", "rivals"): {"livelock"},
    ("Mobile", "audit"): {"trap", "livelock"},
    ("Gossip", "checks"): {"closure"},
}
OTHERWISE = "here the nodes do otherwise than those that were searched"


def mutant_of(part: str, name: str) -> Mutant:
    return next(it for it in PARTS[part] if it.name == name)


def written(mutant: Mutant, directory: Path) -> dict[str, Path]:
    """The first counterexample of each kind that the search without this rule finds."""
    assert isinstance(mutant.caught, Case)
    search = mutant.caught.search()
    paths: dict[str, Path] = {}
    for finding in search.run().findings:
        if finding.kind not in paths:
            paths[finding.kind] = directory / f"{finding.kind}.json"
            paths[finding.kind].write_text(json.dumps(counterexample(search, finding)))
    return paths


@pytest.mark.parametrize(("part", "name"), LEFT_OUT)
def test_a_counterexample_is_replayed_by_sim_and_shows_the_same(
    part: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mutant = mutant_of(part, name)
    with mutated(mutant):
        paths = written(mutant, tmp_path)
        assert paths.keys() == LEFT_OUT[part, name]
        for kind, path in paths.items():
            assert main(["sim", "--replay", str(path)]) == 1
            lines = capsys.readouterr().out.splitlines()
            found = [line.split()[1].rstrip(":") for line in lines if line.startswith("FOUND")]
            assert OTHERWISE not in lines, kind
            assert kind in found or "exception" in found, kind
    for kind, path in paths.items():
        assert main(["sim", "--replay", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1].startswith("nothing found"), kind
        assert OTHERWISE in lines or kind not in ("closure", "livelock")


def test_a_livelock_is_told_step_by_step_and_is_never_legitimate(tmp_path: Path) -> None:
    mutant = mutant_of("Sorted ring", "E3")
    with mutated(mutant):
        path = written(mutant, tmp_path)["livelock"]
        lines = list(read(path).lines())
    steps = json.loads(path.read_text())["steps"]
    loop = lines.index("for ever:")
    assert lines[0] == "start"
    shown = [it for it in lines[1:-1] if not it.startswith(" ") and it != "for ever:"]
    assert shown == [it["what"] for it in steps]
    assert "    legitimate" not in lines[loop:]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "nothing"},
        {"n": "two"},
        {"states": ["AAAA", "AAAA"]},
        {"states": []},
        {"flying": [{"source": 0, "target": 1, "wire": "AAAA", "heard": 1}]},
        {"flying": [{"source": 0, "target": 7, "wire": "AAAA", "heard": 1}]},
    ],
    ids=str,
)
def test_what_is_no_counterexample_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    mutant = mutant_of("Sorted ring", "E3")
    with mutated(mutant):
        path = written(mutant, tmp_path)["trap"]
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert main(["sim", "--replay", str(path)]) == 2


def test_a_replay_needs_a_file_and_no_overlay(tmp_path: Path) -> None:
    assert main(["sim", "--replay", str(tmp_path / "nothing.json")]) == 2
    assert main(["sim", "--replay", str(tmp_path / "nothing.json"), "ring"]) == 2
