"""`planaria node`: what its options come to."""

from pathlib import Path

import pytest

from planaria.cli import node
from planaria.cli.main import main
from planaria.network.config import FILE, Config


def test_what_is_said_on_the_command_line_takes_back_what_the_directory_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(node, "_serve", lambda config, _: configs.append(config))
    monkeypatch.setattr(node, "run", lambda _: 0)
    monkeypatch.setattr(node, "_log_to_stderr", lambda _: None)
    (tmp_path / FILE).write_text("insecure = 2\nsupervise = true\ndiscover = true\nwalk = 3\n")
    words = ["node", "--dir", str(tmp_path)]
    assert main(words) == 0
    assert main([*words, "--no-supervise", "--no-discover", "--walk", "0", "--insecure"]) == 0
    before, after = configs
    assert (before.supervise, before.discover, before.walk, before.insecure) == (True, True, 3, 2)
    assert (after.supervise, after.discover, after.walk, after.insecure) == (False, False, 0, 1)
