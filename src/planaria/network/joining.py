"""How a node finds its network, at its start and ever after.

The addresses it was given are tried again and again, also by a node that has links: two parts of
a network that lost each other for longer than they remember must meet again somewhere.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.network.contacts import parse_address
from planaria.network.files import write_atomically
from planaria.network.host import Host
from planaria.network.identity import Refused

RETRY_SECONDS = 2.0  # between attempts of a node that has no link
LOOK_SECONDS = 30.0  # between attempts of one that has
REMEMBERED_MAX = 64  # addresses in the file
FILE = "contacts.json"

log = logging.getLogger("planaria.node")


class Joining:
    """Dials the addresses a node was given, and those it remembers while it has no link."""

    def __init__(self, host: Host, given: Sequence[str], directory: Path) -> None:
        self.host = host
        self._given = list(dict.fromkeys(given))
        self._path = directory / FILE
        self._remembered = _read(self._path)
        self._who: dict[str, NodeId] = {}  # who answered at an address

    async def first(self) -> None:
        """Return when one node that was named has answered, or has found us by itself.

        Raises Refused if none does and one says why it will not.
        """
        while self._given and not self.host.links:
            failed = await self._dial(self._given)
            refusals = [error for error in failed.values() if isinstance(error, Refused)]
            if self.host.links or not self._given:
                break
            if refusals:
                raise refusals[0]
            self._complain(failed)
            await asyncio.sleep(RETRY_SECONDS)

    async def ever(self) -> None:
        """Look for the network as long as the node runs."""
        quiet = 0.0  # seconds since a node that has links last looked
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            self._remember()
            quiet += RETRY_SECONDS
            if not self.host.links:
                failed = await self._dial([*self._given, *self._remembered])
                if failed and not self.host.links:
                    self._complain(failed)
            elif quiet >= LOOK_SECONDS:
                quiet = 0.0
                await self._dial(self._missing(self._given)[:1])
                self._given = [*self._given[1:], *self._given[:1]]

    def _missing(self, addresses: Iterable[str]) -> list[str]:
        """Those where nobody answered whom we have a link to."""
        return [it for it in addresses if self._who.get(it) not in self.host.links]

    async def _dial(self, addresses: Sequence[str]) -> dict[str, UsageError]:
        """Dial all at once; returns why those that did not answer did not."""
        answers = await asyncio.gather(
            *[self.host.join(address) for address in addresses], return_exceptions=True
        )
        failed: dict[str, UsageError] = {}
        for address, answer in zip(addresses, answers, strict=True):
            if isinstance(answer, UsageError):
                failed[address] = answer
            elif isinstance(answer, BaseException):
                raise answer
            elif answer == self.host.node.id:
                log.warning("%s is this node itself: no address to join", address)
                self._given = [it for it in self._given if it != address]
            else:
                self._who[address] = answer
        return failed

    def _complain(self, failed: dict[str, UsageError]) -> None:
        said = "; ".join(str(error) for error in failed.values())
        log.warning("no link to any node (%s); trying again", said)

    def _remember(self) -> None:
        """Keep the addresses of those we are linked to, for a start when nobody named is left."""
        contacts = [self.host.contacts.get(peer) for peer in self.host.links]
        found = [address for it in contacts if it is not None for address in it.addresses]
        kept = list(dict.fromkeys([*found, *self._remembered]))[:REMEMBERED_MAX]
        if kept != self._remembered:
            self._remembered = kept
            try:
                write_atomically(self._path, json.dumps(kept) + "\n")
            except UsageError as error:
                log.warning("%s", error)

    def close(self) -> None:
        """Remember for the next start."""
        self._remember()


def _read(path: Path) -> list[str]:
    """The remembered addresses; a file that is damaged has none, which costs nothing but time."""
    try:
        known = json.loads(path.read_bytes()) if path.exists() else []
        found = [str(it) for it in known][:REMEMBERED_MAX]
        for address in found:
            parse_address(address)
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s is damaged and left out: %s", path, error)
        return []
    return found
