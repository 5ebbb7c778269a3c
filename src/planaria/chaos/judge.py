"""Who holds what, and which publications a fault took from all who held them.

Before a fault that takes records from nodes the judge asks all nodes what they hold. What only its
victims held may be missing at the end: `destroyed`. Everything else that was acknowledged is owed.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from planaria.chaos.applications import Applications
from planaria.chaos.target import Member, Target
from planaria.protocols.publications.deliveries import position_id

INVENTING = ("corrupt", "forge", "scramble")  # after these, publications of nobody may come


class Judge:
    """Keeps count of the holders of every acknowledged publication."""

    def __init__(self, target: Target, applications: Applications) -> None:
        self.target, self.applications = target, applications
        self.held: dict[str, set[bytes]] = {}  # by node, as it last said
        self.doomed: set[bytes] = set()
        self.invented = False  # was there a fault that makes up publications?

    async def census(self) -> None:
        """Ask every node what it holds; a stopped one holds what it held."""
        topic = self.applications.topic
        for name, answer in (await self.target.ask_all("holdings", topic=topic)).items():
            self.held[name] = {
                position_id(publisher, incarnation, number)
                for publisher, incarnation, lo, hi in answer.found["held"]
                for number in range(lo, hi)
            }
        for member in self.target.members.values():
            if not member.alive:
                self.held.pop(member.name, None)

    @asynccontextmanager
    async def destroying(self, victims: Sequence[Member]) -> AsyncIterator[None]:
        """Whatever happens in this block may cost these nodes what they hold.

        What is acknowledged meanwhile may have been counted on a victim: it is not owed either.
        """
        self.applications.pause()
        try:
            before = self.applications.time
            await self.census()
            known = {one.id for one in self.applications.acknowledged}
            names = {victim.name for victim in victims}
            safe = set[bytes]().union(*(it for name, it in self.held.items() if name not in names))
            exposed = set[bytes]().union(*(self.held.get(name, set()) for name in names))
            self.doomed |= (exposed & known) - safe
            yield
            for one in self.applications.acknowledged:
                if one.acknowledged is not None and one.acknowledged >= before:
                    self.doomed |= {one.id} - safe
        finally:
            self.applications.go_on()
