"""Which topics a node takes part in, in a file that is written before a join is acknowledged.

One line of JSON per change, so that a thousand joins are not a thousand whole files; made short at
every start. The place in a ring is not in it: that is soft state. What was left is, as long as the
store holds some of it: a topic of the store that the file does not know was lost from the file.
"""

import asyncio
import json
import logging
import os
from collections.abc import Callable, Collection, Container, Mapping
from pathlib import Path

from planaria.core.errors import UsageError
from planaria.core.node import Joined
from planaria.core.topics import check_filter
from planaria.network.files import write_atomically
from planaria.protocols.skipring.node import RingNode

FILE = "memberships.jsonl"
# How a topic is wanted: by itself, by a pattern, by clients alone (as is a pattern).
NAMED, MATCHED, SERVED = "named", "matched", "served"
WANTED = (NAMED, MATCHED, SERVED)
LEFT, RELEASED = "left", "released"  # or not any more: others keep what was released
RETRY_SECONDS = 1.0  # between attempts to write

log = logging.getLogger("planaria.node")


class Memberships:
    """The topics and patterns that were joined, each with the reason, as the file has them."""

    def __init__(self, directory: Path, stored: Collection[str] = ()) -> None:
        """Read the file; lines that a crash or a fault damaged are told and left out.

        `stored` are the topics that the store holds something of: those that were not left are
        taken part in again. What was left, and nothing of it is stored any more, is forgotten.
        """
        self.path = directory / FILE
        self.names: dict[str, str] = {}
        self.left: dict[str, str] = {}  # `LEFT` or `RELEASED`
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        wrong = sum(not self._take(line) for line in lines)
        if wrong:
            log.warning("%s: %d lines are damaged and left out", self.path, wrong)
        unknown = [name for name in stored if name not in self.names and name not in self.left]
        lost = [name for name in unknown if self._take(_lines({name: NAMED}))]
        if lost:
            log.warning(
                "%s: lacks %d topics of the store; takes part in them", self.path, len(lost)
            )
        self.new = not lost and not self.path.exists()  # did no node use this directory before?
        self.left = {name: how for name, how in self.left.items() if name in stored}
        write_atomically(self.path, _lines({**self.names, **self.left}))
        self._file = self.path.open("ab")

    def changes(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """What must be written for the file to say `wanted`."""
        known = {**self.names, **self.left}
        left = {name: LEFT for name in self.names if name not in wanted}
        new = {name: how for name, how in wanted.items() if known.get(name) != how}
        return {**new, **left}

    def write(self, changes: Mapping[str, str]) -> None:
        """Note changes; they are on disk when this returns. Raises OSError if they cannot be."""
        self._file.write(_lines(changes))
        self._file.flush()
        os.fdatasync(self._file.fileno())
        for line in _lines(changes).splitlines():
            self._take(line)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _take(self, line: bytes) -> bool:
        try:
            ((name, how),) = json.loads(line).items()
            check_filter(name)
        except (ValueError, AttributeError, TypeError, UsageError):
            return False
        for words, said in ((WANTED, self.names), ((LEFT, RELEASED), self.left)):
            if how in words:
                self.names.pop(name, None)
                self.left.pop(name, None)
                said[name] = how
                return True
        return False


class Noting:
    """Keeps the file in step with what a node takes part in, which `wanted` says.

    Joins are handed to `tell` when they are in the file.
    """

    def __init__(
        self,
        file: Memberships,
        wanted: Callable[[], dict[str, str]],
        tell: Callable[[Joined], None],
    ) -> None:
        self.file, self._wanted, self._tell = file, wanted, tell
        self.behind = False  # was a topic joined that is not in the file yet?
        self._joined: list[Joined] = []
        self._writing = asyncio.Lock()
        self._over = False

    def opens(self, topic: str) -> None:
        """The node joins a topic: nothing of it may be on disk before the topic itself is."""
        self.behind = self.behind or topic not in self.file.names

    def joined(self, effect: Joined) -> bool:
        """Tell of a join when it is in the file; True if somebody must see to that."""
        self._joined.append(effect)
        return not self._writing.locked()

    async def note(self) -> None:
        """Write what has changed, then tell who waited for it; raises OSError if it cannot be."""
        async with self._writing:
            if self._over:
                return
            waiting, self._joined = self._joined, []
            self.behind = False
            changes = self.file.changes(self._wanted())
            try:
                if changes:
                    await asyncio.to_thread(self.file.write, changes)
            except OSError:
                self._joined, self.behind = waiting + self._joined, True
                raise
            for effect in waiting:
                self._tell(effect)

    async def try_to_note(self) -> None:
        """The same, again later if it cannot be done now."""
        try:
            await self.note()
        except OSError as error:
            log.error("%s cannot be written: %s", self.file.path, error)
            await asyncio.sleep(RETRY_SECONDS)

    async def finish(self) -> None:
        """Write for the last time: that a node leaves in order to stop is not to be resumed."""
        await self.try_to_note()
        self._over = True


def reasons(ring: RingNode, served: Container[str]) -> dict[str, str]:
    """The patterns and topics that a node takes part in and does not leave, and why."""
    wildcards = ring.wildcards
    staying = [name for name, one in ring.peer.topics.items() if not one.subscriber.leaving]
    names = dict.fromkeys([*wildcards.patterns, *staying])
    own = {name: SERVED if name in served else NAMED for name in names}
    return {**own, **{name: MATCHED for name in staying if name in wildcards.joined}}


def _lines(changes: Mapping[str, str]) -> bytes:
    return b"".join(json.dumps({name: how}).encode() + b"\n" for name, how in changes.items())
