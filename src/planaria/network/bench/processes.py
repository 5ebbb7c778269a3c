"""The processes of one system under test: started, told what to do, measured, ended."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from planaria.core.errors import PlanariaError
from planaria.network.bench.contender import Contender

START_SECONDS = 60.0
ANSWER_SECONDS = 90.0
END_SECONDS = 3.0
LINE_BYTES_MAX = 1 << 22


class Failed(PlanariaError):
    """A system did not do what it was told."""


class Process:
    """One worker, in a process group of its own."""

    def __init__(self, child: asyncio.subprocess.Process, errors: Path, what: str) -> None:
        self._child, self._errors, self._what = child, errors, what
        self.pids = [child.pid]

    @classmethod
    async def start(
        cls, contender: type[Contender], role: str, directory: Path, address: str, index: int
    ) -> "Process":
        """Start a worker; it answers once it is ready."""
        errors = directory / f"{contender.name}-{role}-{index}.err"
        with errors.open("wb") as log:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "planaria.network.bench.worker",
                contender.name, role, str(directory), address, str(index),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                limit=LINE_BYTES_MAX, start_new_session=True, env=environment(),
            )  # fmt: skip
        return cls(child, errors, f"{contender.name} {role}")

    async def answer(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Its next line; raises `Failed` if there is none in time."""
        assert self._child.stdout is not None
        try:
            line = await asyncio.wait_for(self._child.stdout.readline(), seconds)
        except TimeoutError:
            raise Failed(f"{self._what}: no answer within {seconds:g} s") from None
        if not line:
            said = self._errors.read_text(errors="replace").strip().splitlines()
            raise Failed(f"{self._what} ended: {said[-1] if said else 'without a word'}")
        found: dict[str, Any] = json.loads(line)
        self.pids = [self._child.pid, *found["pids"]]
        return found

    async def tell(self, do: str, **fields: Any) -> dict[str, Any]:
        """Tell it what to do; returns when it is done."""
        self.say(do, **fields)
        return await self.answer()

    def say(self, do: str, **fields: Any) -> None:
        """Tell it what to do."""
        assert self._child.stdin is not None
        with contextlib.suppress(ConnectionError):  # then `answer` says why
            self._child.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")

    def cpu(self) -> float:
        """The seconds that it has used, and the servers that it runs."""
        return sum(_cpu(pid) for pid in self.pids)

    def leave(self) -> None:
        """Close its stdin: it ends by itself."""
        if self._child.stdin is not None:
            self._child.stdin.close()

    async def end(self) -> None:
        """Wait until it is gone, with all that it started."""
        self.leave()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._child.wait(), END_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        await self._child.wait()


def environment() -> dict[str, str]:
    """This process's, but what a system imports while it is measured is compiled once."""
    return {it: said for it, said in os.environ.items() if it != "PYTHONDONTWRITEBYTECODE"}


def _cpu(pid: int) -> float:
    """The CPU seconds of a process so far, by the clock that Linux keeps for each."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        raise Failed(f"process {pid} is gone, or this system has no clock for it") from None
