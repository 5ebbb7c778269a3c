"""What a node's parts in other overlays remember, in its directory: a file for each.

All of it is soft state: a file that is old, damaged or lost costs time, and what only this node
had. A part whose file is there is awake from the start.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from planaria.core.composite import Composite
from planaria.core.errors import UsageError
from planaria.core.node import Notice
from planaria.network.files import write_atomically
from planaria.network.overlays.part import LivePart

DIRECTORY = "overlays"  # in the node's directory
KEEP_SECONDS = 5.0
KEPT_BYTES_MAX = 64 << 20  # of one part; more is not worth the time it takes to write

log = logging.getLogger("planaria.node")


class Keeping:
    """Keeps the parts of `node` that are awake."""

    def __init__(self, directory: Path, node: Composite, *, disk: bool = True) -> None:
        """Have the parts take what the files have; without `disk` there is no file."""
        self._disk = disk
        self.path, self._node = directory / DIRECTORY, node
        self._written: dict[str, bytes] = {}
        self._waiting: list[Callable[[str | None], None]] = []
        self._writing: asyncio.Future[dict[str, str]] | None = None
        self._due = asyncio.Event()
        for part in node.parts.values() if disk else ():
            assert isinstance(part, LivePart)
            self._resume(part)

    async def keep(self) -> None:
        """Write again and again, for ever."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), KEEP_SECONDS)
            self._due.clear()
            waiting, self._waiting = self._waiting, []
            work = asyncio.to_thread(self.write, self.snapshots(), durable=bool(waiting))
            self._writing = asyncio.ensure_future(work)
            wrong = await asyncio.shield(self._writing)
            said = [why for name, why in wrong.items() if _is_durable(self._node, name)]
            for done in waiting:
                done(said[0] if said else None)

    async def finish(self) -> None:
        """Write for the last time: after whatever is being written, which is older."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        self.write(self.snapshots())

    def soon(self, done: Callable[[str | None], None]) -> None:
        """Say `done` when all that the parts hold now is on disk, or with why it is not there."""
        self._waiting.append(done)
        self._due.set()

    def snapshots(self) -> dict[str, bytes]:
        """What is to be written now."""
        awake = [part for part in self._node.awake() if isinstance(part, LivePart)]
        return {part.overlay: part.kept() for part in awake}

    def write(self, snapshots: dict[str, bytes], *, durable: bool = False) -> dict[str, str]:
        """Write what has changed; a full disk is told, and tried again.

        Returns what is not on disk, and why.
        """
        wrong: dict[str, str] = {}
        for name, data in snapshots.items() if self._disk else ():
            if data == self._written.get(name):
                continue
            if len(data) > KEPT_BYTES_MAX:
                log.warning("%s: %d bytes are too many to keep: an older state is", name, len(data))
                wrong[name] = f"{len(data)} bytes are too many to keep"
                continue
            try:
                self.path.mkdir(exist_ok=True)
                write_atomically(self.path / name, data, durable=durable)
            except (OSError, UsageError) as error:
                log.error("%s is not kept: %s", name, error)
                wrong[name] = str(error)
            else:
                self._written[name] = data
        return wrong

    def _resume(self, part: LivePart) -> None:
        path = self.path / part.overlay
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("%s cannot be read and is left out: %s", path, error)
            return
        part.awake = True
        for effect in part.node.restore(data):
            if isinstance(effect, Notice):
                log.warning("%s is damaged and left out: %s", path, effect.detail.get("reason"))
        part.resume()


def _is_durable(node: Composite, overlay: str) -> bool:
    part = node.parts[overlay]
    return isinstance(part, LivePart) and part.durable
