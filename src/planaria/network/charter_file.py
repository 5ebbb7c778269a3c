"""The charters of a node in a file: topics without members have no other memory of theirs.

What is read is verified again like whatever a peer says: a damaged file costs no more than asking.
"""

import asyncio
import logging
from pathlib import Path

from msgspec import MsgspecError, msgpack

from planaria.core.errors import UsageError
from planaria.network.files import write_atomically
from planaria.protocols.skipring.charters import Charters

FILE = "charters"
KEEP_SECONDS = 1.0  # between two looks whether something is to be written

log = logging.getLogger("planaria.node")


class CharterFile:
    """Keeps what `charters` has in a node's directory."""

    def __init__(self, directory: Path, charters: Charters) -> None:
        """Have `charters` take what the file has."""
        self.path, self._charters = directory / FILE, charters
        try:
            found = msgpack.decode(self.path.read_bytes(), type=list[bytes])
        except FileNotFoundError:
            found = []
        except (OSError, MsgspecError) as error:
            log.warning(
                "%s cannot be read (%s): supervisors tell the charters again", self.path, error
            )
            found = []
        taken = sum(charters.resume(data) for data in found)
        if taken < len(found):
            log.warning("%s: %d charters are not good any more", self.path, len(found) - taken)
        self._written = charters.everything_kept()

    async def keep(self) -> None:
        """Write the file whenever something has changed, for ever."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            self.write()

    def write(self) -> None:
        """Write what has changed; a full disk is told, and tried again."""
        kept = self._charters.everything_kept()
        if kept == self._written:
            return
        try:
            write_atomically(self.path, msgpack.encode(kept))
        except UsageError as error:
            log.error("%s", error)
        else:
            self._written = kept
