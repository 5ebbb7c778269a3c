"""Who holds what, and which publications may be missing because all who held them lost them.

Before a fault that takes records from nodes, or ends them, the judge asks all
nodes what they hold, and at the end once more. An acknowledged publication may be missing then,
`destroyed`, only if
- every node that was seen to hold it has lost records since, or is dead at the end, and
- so many nodes as acknowledged it have lost records since it was asked for, or are dead.
A process that ends with its store intact loses nothing: when it is back, it owes all it held.

In `mobile` one node acknowledges, has it on disk, and must have lost that; what others were handed
is on their disks a little later, so they owe it after a kill only if they are seen to hold it.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf

from msgspec import Struct

from planaria.chaos.applications import HOLDING, Applications, Asked
from planaria.chaos.target import Member, Target
from planaria.network.client.overlays import RING
from planaria.protocols.publications.deliveries import position_id

INVENTING = ("corrupt", "forge")  # after these, publications of nobody may come


class Census(Struct, frozen=True):
    """What was on its way when the nodes were asked at `time`.

    Every node that lives has answered at `heard` or later; some held what was `spreading`, not all.
    """

    time: float = -inf
    heard: float = -inf
    spreading: frozenset[bytes] = frozenset()

    def on_its_way(self, one: Asked) -> bool:
        """Can a node have lacked it then that others handed it to later?"""
        assert one.acknowledged is not None
        return one.acknowledged >= self.heard or one.id in self.spreading


class Loss(Struct, frozen=True):
    """A node lost at `time` what it held; what that was it had last said at `heard`."""

    name: str
    time: float
    heard: float
    held: set[bytes]

    def may_include(self, one: Asked) -> bool:
        """Had the node this, or can it have got it since it was heard?"""
        assert one.acknowledged is not None
        return one.id in self.held or one.acknowledged >= self.heard


class Judge:
    """Keeps count of the holders of every publication, and of who lost what it held."""

    def __init__(self, target: Target, applications: Applications) -> None:
        self.target, self.applications = target, applications
        self.seen: dict[bytes, dict[str, float]] = {}  # when each node was last seen to hold it
        self.censuses: list[Census] = []
        self._said: dict[str, tuple[float, set[bytes]]] = {}  # what each node said last, and when
        self._losses: list[Loss] = []
        self._forgot: dict[str, float] = {}  # when each last lost records, or just its memory

    async def census(self) -> None:
        """Ask every node that runs what it holds."""
        applications, time = self.applications, self.applications.time
        answers = await self.target.ask_all(
            "holdings", topic=applications.topic, overlay=applications.overlay
        )
        for name, answer in answers.items():
            held = {
                position_id(publisher, incarnation, number)
                for publisher, incarnation, lo, hi in answer.found["held"]
                for number in range(lo, hi)
            }
            self._said[name] = time, held
            for id in held:
                self.seen.setdefault(id, {})[name] = time
        self.censuses.append(self._taken(time))

    def _taken(self, time: float) -> Census:
        """Who does not answer holds what it held."""
        said = [self._last_said(it.name) for it in self.target.members.values() if it.alive]
        count = Counter(id for _, held in said for id in held)
        spreading = frozenset(id for id, holders in count.items() if holders < len(said))
        return Census(time, min((heard for heard, _ in said), default=time), spreading)

    def _last_said(self, name: str) -> tuple[float, set[bytes]]:
        return self._said.get(name, (-inf, set()))

    def before(self, time: float) -> Census:
        """The last census before this."""
        return next((it for it in reversed(self.censuses) if it.time <= time), Census())

    @asynccontextmanager
    async def destroying(self, victims: Sequence[Member]) -> AsyncIterator[None]:
        """Whatever happens in this block may cost these nodes what they hold."""
        await self.census()
        held = {it.name: self._last_said(it.name) for it in victims}
        try:
            yield
        finally:
            time = self.applications.time
            self._losses += [Loss(name, time, *said) for name, said in held.items()]
            self._forgot |= dict.fromkeys(held, time)

    def ended(self, victim: Member) -> None:
        """A process was killed: in `mobile` it may have had in memory what is not on its disk."""
        if self.applications.overlay == HOLDING:
            self._forgot[victim.name] = self.applications.time

    async def doomed(self) -> set[bytes]:
        """The acknowledged publications that may be missing, as things are now."""
        if self.applications.overlay not in (RING, HOLDING):
            return set()
        await self.census()
        dead = {it.name for it in self.target.members.values() if not it.alive}
        return {it.id for it in self.applications.acknowledged if self._could_vanish(it, dead)}

    def _could_vanish(self, one: Asked, dead: set[str]) -> bool:
        """Can all who held it have lost it?"""
        losses = [it for it in self._losses if it.time > one.asked]
        lost = {it.name for it in losses if not one.by or it.may_include(one)} | dead
        seen = self.seen.get(one.id, {})
        kept = [name for name, time in seen.items() if self._forgot.get(name, -1.0) < time]
        taken = one.by in lost if one.by else len(lost) >= max(1, one.copies)
        return taken and all(name in dead for name in kept)
