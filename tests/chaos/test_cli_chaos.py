"""`planaria chaos` as people run it: on a network of its own, and on one of `planaria up`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from planaria.network.context import read_context
from process_lab import ROOT, Processes, Running, alive, environment, until

KEYS = [
    "published", "acknowledged", "delivered", "late", "lost", "twice", "healed", "destroyed",
    "faults",
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """Nodes that were started again have other ids than those that were told at the beginning."""
    yield
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(tmp_path).encode() in words.read_bytes():
                os.kill(int(words.parent.name), signal.SIGKILL)


def planaria(home: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "planaria", *map(str, words)]
    return subprocess.run(
        command, cwd=ROOT, env=environment(home), capture_output=True, text=True, timeout=300
    )


def up(processes: Processes, *options: str) -> tuple[Running, dict[str, Any]]:
    words = ("up", "--nodes", 3, "--supervisors", 1, "--port", 0, "--json", *options)
    running = processes.run(*words, "--dir", processes.home / "net")
    ready = running.ready()
    return running, ready


def test_a_network_of_its_own_is_broken_judged_and_gone(tmp_path: Path) -> None:
    net = tmp_path / "net"
    words = ("--up", 3, "--overlay", "ring", "--seed", 7, "--faults", 3, "--interval", 0.1)
    found = planaria(tmp_path, "chaos", *words, "--json", "--dir", net)
    assert found.returncode == 0, found.stderr
    report = json.loads(found.stdout)
    assert list(report) == KEYS
    assert report["healed"]
    assert report["lost"] == report["twice"] == 0
    assert 0 < report["acknowledged"] <= report["published"]
    assert len(report["faults"]) >= 3
    assert all(it["affected"] > 0 and it["seconds"] >= 0 for it in report["faults"])
    running = subprocess.run(["pgrep", "-f", str(net)], capture_output=True, text=True)
    assert running.stdout == ""


def test_a_running_network_is_killed_and_corrupted_by_name(processes: Processes) -> None:
    running, ready = up(processes, "--allow-chaos")
    home, context = processes.home, ready["context"]
    schedule = home / "schedule.txt"
    schedule.write_text("at 0 corrupt count=1\nat 1 restart count=1 state=none\n")
    both = planaria(home, "chaos", schedule, "--context", context, "--seed", 3)
    assert both.returncode == 0, both.stdout + both.stderr
    assert "at 0 corrupt count=1: affected 1 at n" in both.stdout
    assert "every promise held" in both.stdout
    assert "runs again" in running.said(), "who began a node brings it back, and ends it"
    killed = planaria(home, "chaos", "kill", "--context", context, "--seed", 3, "--json")
    assert killed.returncode == 0, killed.stderr
    assert json.loads(killed.stdout)["faults"][0]["affected"] == 1
    assert running.end(signal.SIGINT) == 0
    until(lambda: not any(alive(it["pid"]) for it in ready["nodes"]))


def test_a_network_that_does_not_allow_it_is_left_alone(processes: Processes) -> None:
    _, ready = up(processes)
    found = planaria(processes.home, "chaos", "kill", "--context", ready["context"])
    assert found.returncode == 2
    assert found.stdout == ""
    assert "was not started with --allow-chaos" in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert all(alive(it["pid"]) for it in ready["nodes"])
    assert read_context(Path(ready["context"])).servers


def test_what_is_drawn_can_be_shown_and_kept(tmp_path: Path) -> None:
    shown = planaria(tmp_path, "chaos", "--faults", 6, "--seed", 4, "--show")
    assert shown.returncode == 0
    assert len(shown.stdout.splitlines()) in (6, 7)
    path = tmp_path / "schedule.txt"
    path.write_text(shown.stdout)
    again = planaria(tmp_path, "chaos", path, "--show")
    assert again.stdout == shown.stdout
    both = planaria(tmp_path, "chaos", path, "--faults", 3)
    assert (both.returncode, both.stdout) == (2, "")
    assert "a schedule or --faults, not both" in both.stderr
