"""Who holds what, and which publications may be missing because all who held them lost them.

Before a fault that takes records from nodes, or ends them, the judge asks all
nodes what they hold, and at the end once more. An acknowledged publication may be missing then,
`destroyed`, only if
- every node that was seen to hold it has lost records since, or is dead at the end, and
- so many nodes as acknowledged it have lost records since it was asked for, or are dead.
A process that ends with its store intact loses nothing: when it is back, it owes all it held.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from planaria.chaos.applications import Applications, Asked
from planaria.chaos.target import Member, Target
from planaria.network.client.overlays import RING
from planaria.protocols.publications.deliveries import position_id

INVENTING = ("corrupt", "forge")  # after these, publications of nobody may come


class Judge:
    """Keeps count of the holders of every publication, and of who lost what it held."""

    def __init__(self, target: Target, applications: Applications) -> None:
        self.target, self.applications = target, applications
        self.seen: dict[bytes, dict[str, float]] = {}  # when each node was last seen to hold it
        self._lost: dict[str, float] = {}  # when each node last lost records

    async def census(self) -> None:
        """Ask every node that runs what it holds."""
        topic, time = self.applications.topic, self.applications.time
        for name, answer in (await self.target.ask_all("holdings", topic=topic)).items():
            for publisher, incarnation, lo, hi in answer.found["held"]:
                for number in range(lo, hi):
                    id = position_id(publisher, incarnation, number)
                    self.seen.setdefault(id, {})[name] = time

    @asynccontextmanager
    async def destroying(self, victims: Sequence[Member]) -> AsyncIterator[None]:
        """Whatever happens in this block may cost these nodes what they hold."""
        await self.census()
        try:
            yield
        finally:
            for victim in victims:
                self._lost[victim.name] = self.applications.time

    async def doomed(self) -> set[bytes]:
        """The acknowledged publications that may be missing, as things are now."""
        if self.applications.overlay != RING:
            return set()
        await self.census()
        dead = {it.name for it in self.target.members.values() if not it.alive}
        return {it.id for it in self.applications.acknowledged if self._could_vanish(it, dead)}

    def _could_vanish(self, one: Asked, dead: set[str]) -> bool:
        """Can all who held it have lost it?"""
        lost = {name for name, time in self._lost.items() if time > one.asked} | dead
        seen = self.seen.get(one.id, {})
        kept = [name for name, time in seen.items() if self._lost.get(name, -1.0) < time]
        return len(lost) >= one.copies and all(name in dead for name in kept)
