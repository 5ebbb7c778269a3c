"""Real `planaria` processes for tests: started, watched, and gone at the end whatever happens."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import planaria
from planaria.network import config
from planaria.network.context import Context, read_context
from planaria.network.doctor import diagnose
from planaria.network.survey import Surveyor

ROOT = Path(__file__).resolve().parent.parent
INTERVAL_SECONDS = 0.2  # of the nodes of `UpNetwork`: tests wait for so many of them
HEAL_SECONDS = 90.0  # for a network in which nodes were killed
PATIENCE = 60.0  # seconds for what must come; how long it takes is not judged


def until(holds: Callable[[], object], what: str = "", seconds: float = PATIENCE) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def environment(home: Path) -> dict[str, str]:
    """That of this process, but for what says which network to use."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("PLANARIA_")}
    found |= {
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
    }
    found.pop("XDG_RUNTIME_DIR", None)
    return found


class Running:
    """One process with a group of its own; `log` is what it said on stderr."""

    def __init__(self, words: list[str], home: Path, log: Path, prefix: Sequence[str] = ()) -> None:
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "planaria", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(home),
                start_new_session=True,
            )
        self.pid = self.process.pid

    def ready(self) -> dict[str, Any]:
        """Its first line, which it prints when it serves."""
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        read = b""

        def whole() -> bool:
            nonlocal read
            assert self.process.stdout is not None
            read += self.process.stdout.read() or b""
            return b"\n" in read or self.process.poll() is not None

        until(whole, f"{self.log} is ready")
        assert b"\n" in read, self.said()
        found: dict[str, Any] = json.loads(read)
        return found

    def said(self) -> str:
        """All that it said on stderr."""
        return self.log.read_text()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def clean(self) -> None:
        """End it and all that it started, and let go of its pipe."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Processes:
    """All processes of a test, in one directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: list[Running] = []
        self.groups: list[int] = []  # of processes that processes of ours started

    def run(self, *words: object, log: str = "log") -> Running:
        """Start `planaria WORDS`."""
        one = Running([str(word) for word in words], self.home, self.home / log)
        self.running.append(one)
        return one

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        for one in self.running:
            one.clean()
        for group in self.groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        if kind is not None:
            for log in sorted(self.home.rglob("*log")):
                print(f"--- {log}\n{log.read_text()[-3000:]}", file=sys.stderr)


def alive(pid: int) -> bool:
    """Is there such a process, other than one that nobody has waited for?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def status(http: str) -> dict[str, Any]:
    """The status of a node; empty while it does not answer."""
    try:
        with urlopen(f"http://{http}/status", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return {}


def publications(http: str, topic: str) -> int:
    """How many publications a node holds."""
    its = status(http).get("topics", {}).get(topic, {})
    return int(its.get("publications", 0)) if its.get("member") else -1


class UpNetwork:
    """What `planaria up` started, and how to break it."""

    def __init__(self, processes: Processes, nodes: int, supervisors: int) -> None:
        self.processes, self.home = processes, processes.home / "net"
        for number in range(1, nodes + 1):
            directory = self.home / "nodes" / f"n{number}"
            directory.mkdir(parents=True)
            (directory / config.FILE).write_text(f"interval = {INTERVAL_SECONDS}\n")
        words = ("up", "--nodes", nodes, "--supervisors", supervisors, "--port", 0, "--json")
        self.up = processes.run(*words, "--dir", self.home)
        ready = self.up.ready()
        self.context: Context = read_context(Path(ready["context"]))
        self.nodes: dict[str, dict[str, Any]] = {it["name"]: it for it in ready["nodes"]}
        processes.groups += [it["pid"] for it in ready["nodes"]]
        self.again: dict[str, Running] = {}  # nodes that were started again

    def servers(self, first: str) -> list[str]:
        """All addresses, one of them first."""
        rest = [it["listen"] for name, it in self.nodes.items() if name != first]
        return [self.nodes[first]["listen"], *rest]

    def connect(self, first: str) -> planaria.Client:
        """A client that begins at one node and knows all."""
        return planaria.connect(self.servers(first), credentials=self.context.credentials)

    def pid(self, name: str) -> int:
        """The process of a node."""
        return self.again[name].pid if name in self.again else int(self.nodes[name]["pid"])

    def directory(self, name: str) -> Path:
        """Where a node keeps what it has."""
        return Path(self.nodes[name]["dir"])

    def kill(self, name: str) -> None:
        """kill -9."""
        if name in self.again:
            self.again[name].kill()
        else:
            os.kill(self.nodes[name]["pid"], signal.SIGKILL)
            until(lambda: f"{name} ended" in self.up.said())

    def start(self, name: str, *options: object) -> None:
        """Start a killed node again."""
        words = ("node", "--dir", self.directory(name), *options)
        self.again[name] = self.processes.run(*words, log=f"{name}.log")
        assert self.again[name].ready()["listen"] == self.nodes[name]["listen"]

    def heal(self, gone: int = 0) -> None:
        """Wait until all nodes are there, but those that are gone, and every invariant holds."""

        async def judge() -> bool:
            async with Surveyor(self.context) as surveyor:
                found = await diagnose(surveyor, HEAL_SECONDS)
                return found.legitimate and found.nodes == len(self.nodes) - gone

        until(lambda: asyncio.run(judge()), "legitimate", HEAL_SECONDS)
