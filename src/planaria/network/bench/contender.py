"""What a system under test must be able to do, and what each of its processes is told.

A run of one system is a hub (a server, or nothing), a publisher and some subscribers, each a
process of its own. The hub's address is given to the publisher, the publisher's to the subscribers.
"""

import asyncio
import contextlib
import shutil
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from planaria.core.errors import UsageError

TOPIC = "bench"
PATIENCE_SECONDS = 20.0  # for a server to listen

Take = Callable[[bytes], None]


class Contender(ABC):
    """One system, as one of its processes sees it; made anew in each of them."""

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]] = ()  # without which it cannot run
    program: ClassVar[str] = ""  # of its server
    has_hub: ClassVar[bool] = False
    durable: ClassVar[bool] = False  # does it keep on disk what it delivers?

    def __init__(self, directory: Path, address: str, index: int) -> None:
        self.directory, self.address, self.index = directory, address, index
        self.pids: list[int] = []  # of processes besides this one that work for it

    @classmethod
    def lacking(cls) -> str:
        """What must be installed before it can run, and how; empty if nothing."""
        if any(find_spec(module) is None for module in cls.modules):
            return f"{cls.name}: pip install 'planaria[bench]'"
        if cls.program and find_program(cls.program) is None:
            return f"{cls.name}: apt-get install {cls.program}"
        return ""

    @classmethod
    def prepare(cls, directory: Path, processes: int) -> None:  # noqa: ARG003
        """Make what all its processes share, before they start: its directory, if nothing else."""
        directory.mkdir()

    async def serve(self) -> str:
        """Be the hub, if it `has_hub`; returns its address."""
        raise UsageError(f"{self.name} has no hub: its publisher and subscribers are all there is")

    async def publisher(self) -> str:
        """Be the publisher; returns the address that subscribers need."""
        return self.address

    @abstractmethod
    async def burst(self, payloads: Sequence[bytes]) -> None:
        """Publish all of these as fast as it goes without loss."""

    @abstractmethod
    async def one(self, payload: bytes) -> None:
        """Publish one that leaves at once."""

    @abstractmethod
    async def subscribe(self, take: Take) -> None:
        """Be a subscriber: `take` each payload, in whatever thread."""

    async def leave(self) -> None:  # noqa: B027 - most need not say so
        """Go in good order: others will still be here."""

    async def close(self) -> None:  # noqa: B027 - the process ends anyway
        """Let go of what the end of the process would not."""


class Server:
    """A server of another project, a child of the hub's process and in its group."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process, self.port = process, port

    @classmethod
    async def start(cls, program: str, arguments: Sequence[str], port: int) -> "Server":
        """Start it and wait until it listens."""
        path = find_program(program)
        if path is None:
            raise UsageError(f"{program} is not installed: apt-get install {program}")
        process = await asyncio.create_subprocess_exec(
            path, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        server = cls(process, port)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await _listens(port):
                if process.returncode is not None:
                    raise UsageError(f"{program} ended at once: see its lines above")
                await asyncio.sleep(0.02)
        return server

    async def stop(self) -> None:
        """End it."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def find_program(name: str) -> str | None:
    """Where a server is; Debian keeps some where only root looks."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
