"""The first minutes of the README and of Get started, as a person types them."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from process_lab import ROOT, Processes, Running, environment, status, until

SECONDS_MAX = 600  # for Spark on a busy machine


def typed(page: str) -> list[list[str]]:
    """The `planaria` lines of the first network of a page, without what is said about them."""
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    words = [shlex.split(it, comments=True) for it in lines if it.startswith("planaria ")]
    return [it[1:] for it in words]


def spark_block(page: str) -> str:
    text = (ROOT / page).read_text()
    found = re.findall(
        r"^```text\n(import planaria.spark\n.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    return "".join(found)


class Reader:
    """`planaria sub` in another terminal."""

    def __init__(self, running: Running, line: bytes) -> None:
        self.running, self.line, self.read = running, line, b""
        assert running.process.stdout is not None
        os.set_blocking(running.process.stdout.fileno(), False)

    def has_printed_it(self) -> bool:
        assert self.running.process.stdout is not None
        self.read += self.running.process.stdout.read() or b""
        return self.line in self.read.splitlines()


def run(home: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=home, env=environment(home), capture_output=True, text=True, timeout=SECONDS_MAX,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def follow(processes: Processes, words: list[str], nodes: list[str]) -> Reader:
    """Subscribe, and wait until a node follows it."""
    line = b"weather/europe mild" if "-v" in words else b"hello"
    reader = Reader(processes.run(*words, log="sub.log"), line)

    def follows() -> bool:
        clients = [client for it in nodes for client in status(it).get("connected", [])]
        return any(it["pattern"] == words[1] for client in clients for it in client["follows"])

    until(follows, f"a node follows {words[1]}")
    return reader


def live_through(page: str, home: Path) -> dict[str, str]:
    """Type everything that a page shows, in its order; what each command printed."""
    up, *rest = typed(page)
    assert up[0] == "up"
    printed: dict[str, str] = {}
    with Processes(home) as processes:
        options = ("--nodes", 4, "--port", 0, "--dir", home / "net", "--json")
        ready = processes.run(*up, *options, log="up.log").ready()
        processes.groups += [it["pid"] for it in ready["nodes"]]
        assert ("--dashboard" in up) == ("dashboard" in ready)
        nodes = [it["http"] for it in ready["nodes"]]
        listen = {f"127.0.0.1:{7400 + at}": it["listen"] for at, it in enumerate(ready["nodes"])}
        rest = [[listen.get(word, word) for word in words] for words in rest]
        readers = []
        for words in rest:
            if words[0] == "sub":
                readers.append(follow(processes, words, nodes))
            else:
                printed[" ".join(words)] = run(home, "-m", "planaria", *words)
        (reader,) = readers
        until(reader.has_printed_it, f"sub prints {reader.line!r}")
        if block := spark_block(page):
            assert "weather/europe" in run(home, "-c", block)
    return printed


def test_the_second_block_of_the_readme(tmp_path: Path) -> None:
    printed = live_through("README.md", tmp_path)
    assert [*printed] == ["pub news hello", "chaos corrupt", "doctor"]
    assert "every promise held" in printed["chaos corrupt"]
    assert printed["doctor"].startswith("legitimate: 4 nodes")


def test_get_started(tmp_path: Path, seeds: Callable[[int, int], int]) -> None:
    seeds(0, 1)
    printed = live_through("docs/get-started.md", tmp_path)
    broken = [it for it in printed if it.startswith("chaos")]
    assert broken == ["chaos corrupt", "chaos partition", "chaos wipe"]
    assert all("every promise held" in printed[it] for it in broken)
    assert printed["doctor"].startswith("legitimate: 4 nodes")
