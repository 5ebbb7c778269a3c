"""Proxies between clients in other processes and the nodes, which a test can cut.

A client of such a process dials the ports of nodes as always and comes to a proxy, as a rule of the
kernel would redirect it: whatever addresses it learns of, it has no way around. What is cut is
neither answered nor reset, and nobody is told.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = "127.0.0.1"
CHUNK = 1 << 16

REDIRECT = """
from asyncio import base_events
WAYS = {ways}
dial = base_events.BaseEventLoop.create_connection
def through(self, factory, host=None, port=None, **more):
    return dial(self, factory, host, WAYS.get(port, port), **more)
base_events.BaseEventLoop.create_connection = through
"""


class Wires:
    """A proxy for each of some ports of this machine, all in one thread."""

    def __init__(self, ports: Iterable[int]) -> None:
        self.ways = dict.fromkeys(ports, 0)
        self.live = Counter[int]()  # connections that a node has now, by its port
        self.unanswered = 0  # connections that were opened, and data that was sent, while cut
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._servers: list[asyncio.Server] = []
        self._tasks = set[asyncio.Task[None]]()

    def __enter__(self) -> Self:
        self._thread.start()
        for port in self.ways:
            self.ways[port] = self._do(self._listen(port))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def redirect(self, directory: Path) -> Path:
        """Write what leads Python processes with this directory in their PYTHONPATH here."""
        directory.mkdir()
        (directory / "sitecustomize.py").write_text(REDIRECT.format(ways=self.ways))
        return directory

    def cut(self) -> None:
        """From now on nothing comes through, in either direction."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """What was sent meanwhile arrives, late."""
        self._loop.call_soon_threadsafe(self._whole.set)

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self, port: int) -> int:
        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._join(port, reader, writer)
            finally:
                self._tasks.discard(task)

        server = await asyncio.start_server(come, HERE, 0)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _join(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry one connection, both ways."""
        await self._passing()
        try:
            answers, questions = await asyncio.open_connection(HERE, port)
        except OSError:  # the node is down
            writer.transport.abort()
            return
        self.live[port] += 1
        ways = [(reader, questions), (answers, writer)]
        carriers = [asyncio.create_task(self._carry(*way)) for way in ways]
        try:
            await asyncio.wait(carriers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.live[port] -= 1
            for carrier in carriers:
                carrier.cancel()
            for end in (writer, questions):
                end.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK):
                await self._passing()
                writer.write(data)
                await writer.drain()
            await self._passing()
        except OSError:
            return

    async def _passing(self) -> None:
        if not self._whole.is_set():
            self.unanswered += 1
            await self._whole.wait()
