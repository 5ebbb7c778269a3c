"""The nodes that a client may talk to: those it was given, and those that its nodes tell it of."""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from planaria.core.errors import UsageError
from planaria.network.contacts import format_address, parse_address

SERVERS_MAX = 64  # known at a time: enough to outlive any of them


class Servers:
    """Addresses in the order in which to try them: what worked last first, what failed last."""

    def __init__(self, given: Sequence[str]) -> None:
        named = (format_address(*parse_address(address)) for address in given)
        self.given = tuple(dict.fromkeys(named))
        self._order = list(self.given)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._order))

    def good(self, address: str) -> None:
        """This one answered: prefer it."""
        if address in self._order:
            self._order.remove(address)
            self._order.insert(0, address)

    def bad(self, address: str) -> None:
        """This one did not: try all others first."""
        if address in self._order:
            self._order.remove(address)
            self._order.append(address)

    def learn(self, addresses: Iterable[str]) -> None:
        """Take up further addresses after those that are known; old hearsay makes room."""
        named = list(dict.fromkeys(addresses))
        new = [address for address in named if address not in self._order]
        random.shuffle(new)  # or all clients would flee to the same node
        sure = [it for it in self._order if it in self.given or it in named]
        rest = [it for it in self._order if it not in sure]
        self._order = [*sure, *new, *rest][: max(SERVERS_MAX, len(self.given))]


def addresses_in(status: Any) -> list[str]:
    """The addresses of nodes that a status names; whatever else it says is not looked at."""
    found: list[str] = []
    contacts = status.get("contacts", []) if isinstance(status, dict) else []
    for contact in contacts if isinstance(contacts, list) else []:
        addresses = contact.get("addresses", []) if isinstance(contact, dict) else []
        for address in addresses if isinstance(addresses, list) else []:
            try:
                found.append(format_address(*parse_address(str(address))))
            except UsageError:
                continue
    return found
