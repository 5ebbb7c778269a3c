"""A whole network on this machine: real processes, keys and a context, in one directory.

DIR/keys       an authority, a certificate for each node, and one for clients
DIR/nodes/n1   the directory of a node; what it logs is in node.log
DIR/context.toml
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.network.context import Context, write_context
from planaria.network.identity import AUTHORITY, CLUSTER, found_cluster, issue

CLIENT = "client"  # the name of the certificate that tools use
CONTEXT = "context.toml"
LOG = "node.log"
AGAIN = "again"  # a file with which `planaria chaos` asks for a killed node to be started again
HTTP_OFFSET = 100  # from a node's port to its port for HTTP
NODES_MAX = HTTP_OFFSET
STOP_SECONDS = 15.0  # for processes to leave; then they are killed


class Started(Struct, frozen=True):
    """A node that serves."""

    name: str
    pid: int
    listen: str
    http: str | None
    dir: Path
    supervisor: bool


class Child:
    """One process; it leaves when it is told to, or when this process is gone."""

    def __init__(self, name: str, directory: Path, supervisor: bool) -> None:
        self.name, self.directory, self.supervisor = name, directory, supervisor
        self.again = directory / AGAIN
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, options: Sequence[str]) -> Started:
        """Run it and return when it serves; raises UsageError with its last words if it ends."""
        self.directory.mkdir(parents=True, exist_ok=True)
        words = ["node", "--dir", str(self.directory), "--stop-with-stdin", *options]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PLANARIA_")}
        with (self.directory / LOG).open("ab") as errors:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "planaria", *words,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
                env=environment, start_new_session=True,  # Ctrl-C is for whoever started us
            )  # fmt: skip
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            await self.process.wait()
            raise UsageError(f"{self.name} did not start: {self._last_words()}")
        ready: dict[str, Any] = json.loads(line)
        return Started(
            self.name, self.process.pid, ready["listen"], ready["http"], self.directory,
            self.supervisor,
        )  # fmt: skip

    @property
    def running(self) -> bool:
        """Is there a process?"""
        return self.process is not None and self.process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        if self.running and self.process is not None:
            self.process.send_signal(number)

    def _last_words(self) -> str:
        lines = (self.directory / LOG).read_text(errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it said nothing"
        return said.removeprefix("planaria: error: ")


class LocalNetwork:
    """`nodes` processes, the first `supervisors` of which supervise."""

    def __init__(
        self,
        directory: Path,
        nodes: int,
        supervisors: int,
        port: int,
        *,
        chaos: bool = False,
        interval: float | None = None,
    ) -> None:
        """Ports from `port` on; 0: whatever is free. With `chaos` the nodes may be broken."""
        self.directory, self.port = directory.absolute(), port
        self.chaos, self.interval = chaos, interval
        self.keys = self.directory / "keys"
        self.context = self.directory / CONTEXT
        self.children = [
            Child(name, self.directory / "nodes" / name, at < supervisors)
            for at, name in enumerate(f"n{number}" for number in range(1, nodes + 1))
        ]

    async def start(self) -> list[Started]:
        """Make what keys are missing, start all nodes, and write the context."""
        self._make_keys()
        founder, *others = self.children
        started = [await founder.start(self._options(0, []))]
        supervisors = [child for child in others if child.supervisor]
        members = [child for child in others if not child.supervisor]
        for group in (supervisors, members):
            known = [one.listen for one in started if one.supervisor]
            found = await asyncio.gather(
                *[child.start(self._options(self.children.index(child), known)) for child in group],
                return_exceptions=True,
            )
            for one in found:
                if isinstance(one, BaseException):
                    raise one
                started.append(one)
        self._write_context(started)
        return started

    async def restart(self, child: Child) -> Started:
        """Start a node again that has ended, as it was."""
        child.again.unlink(missing_ok=True)
        return await child.start(self._always())

    async def stop(self) -> None:
        """End all processes: members first, while there is a supervisor to let them go."""
        for supervisors in (False, True):
            group = [it for it in self.children if it.supervisor == supervisors and it.running]
            for child in group:
                child.signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._ended(group), STOP_SECONDS)
            except TimeoutError:
                await self.kill()

    async def kill(self) -> None:
        """End all processes at once."""
        for child in self.children:
            child.signal(signal.SIGKILL)
        await self._ended(self.children)

    async def _ended(self, children: Sequence[Child]) -> None:
        for child in children:
            if child.process is not None:
                await child.process.wait()

    def _make_keys(self) -> None:
        if not (self.keys / AUTHORITY).exists():
            found_cluster(self.keys, CLUSTER)
        for child in self.children:
            if not (self.keys / child.name).exists():
                issue(self.keys, child.name, ("node", "supervise"))
        if not (self.keys / CLIENT).exists():
            issue(self.keys, CLIENT, ("client", "admin"))

    def _options(self, place: int, join: Sequence[str]) -> list[str]:
        child, port = self.children[place], self.port + place if self.port else 0
        http = port + HTTP_OFFSET if port else 0
        options = ["--keys", str(self.keys / child.name), "--listen", f"127.0.0.1:{port}"]
        options += ["--http", f"127.0.0.1:{http}"]
        options += ["--supervise"] if child.supervisor else ["--no-supervise"]
        options += self._always()
        if self.interval is not None:
            options += ["--interval", str(self.interval)]
        return options + [word for address in join for word in ("--join", address)]

    def _always(self) -> list[str]:
        """What no file remembers."""
        return ["--allow-chaos"] if self.chaos else []

    def _write_context(self, started: Sequence[Started]) -> None:
        servers = tuple(one.listen for one in started)
        write_context(
            self.context, Context(servers, self.keys / CLIENT, cluster=CLUSTER, name="up")
        )
