"""Which topics a node takes part in, in a file that is written before a join is acknowledged.

One line of JSON per change, so that a thousand joins are not a thousand whole files; made short at
every start. The place in a ring is not in it: that is soft state.
"""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from planaria.core.errors import UsageError
from planaria.core.topics import check_filter
from planaria.network.files import write_atomically

FILE = "memberships.jsonl"
NAMED, MATCHED, LEFT = "named", "matched", "left"  # how a topic is wanted: by itself, by a pattern

log = logging.getLogger("planaria.node")


class Memberships:
    """The topics and patterns that were joined, each `NAMED` or `MATCHED`, as the file has them."""

    def __init__(self, directory: Path) -> None:
        """Read the file; lines that a crash or a fault damaged are told and left out."""
        self.path = directory / FILE
        self.names: dict[str, str] = {}
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        wrong = sum(not self._take(line) for line in lines)
        if wrong:
            log.warning("%s: %d lines are damaged and left out", self.path, wrong)
        write_atomically(self.path, _lines(self.names))
        self._file = self.path.open("ab")

    def changes(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """What must be written for the file to say `wanted`."""
        left = {name: LEFT for name in self.names if name not in wanted}
        new = {name: how for name, how in wanted.items() if self.names.get(name) != how}
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
        if how in (NAMED, MATCHED):
            self.names[name] = how
        elif how == LEFT:
            self.names.pop(name, None)
        return how in (NAMED, MATCHED, LEFT)


def _lines(changes: Mapping[str, str]) -> bytes:
    return b"".join(json.dumps({name: how}).encode() + b"\n" for name, how in changes.items())
