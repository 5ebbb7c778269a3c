"""`planaria keys` from the command line: what it prints, and what it refuses."""

import json
from pathlib import Path

import pytest

from planaria.cli.main import main


def test_an_authority_issues_and_shows_certificates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = str(tmp_path / "keys")
    assert main(["keys", "init", keys, "--cluster", "demo"]) == 0
    assert capsys.readouterr().out == ""
    issued = ["keys", "issue", "alice", "--dir", keys, "--role", "node", "--role", "supervise"]
    assert main([*issued, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["name"], made["roles"]) == ("alice", ["node", "supervise"])
    assert main(["keys", "show", made["directory"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == made
    assert main(["keys", "show", made["directory"]]) == 0
    assert made["id"] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["keys", "issue", "bob"], "keys has no authority: run `planaria keys init keys` first"),
        (["keys", "show", "nowhere"], "is no readable certificate"),
        (["keys", "isue"], "did you mean issue?"),
        (["keys", "issue", "bob", "--days", "0"], "--days"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_an_authority_is_never_made_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = str(tmp_path / "keys")
    assert main(["keys", "init", keys]) == 0
    assert main(["keys", "init", keys]) == 2
    assert "has an authority already" in capsys.readouterr().err
