"""Breaks what the page shows, where every node of the network allows it (`--allow-chaos`)."""

import asyncio
from pathlib import Path

from planaria.chaos.applications import Applications
from planaria.chaos.faults import Faults
from planaria.chaos.judge import Judge
from planaria.chaos.names import SINGLE
from planaria.chaos.target import Target
from planaria.core.errors import PlanariaError, UsageError, unknown
from planaria.core.scenario import parse_schedule
from planaria.network.context import Context

# What people want to see first; all of them are over by themselves.
BUTTONS = ("restart", "stop", "partition", "loss", "wipe", "flip", "corrupt")


class Breaker:
    """Does one thing at a time; `copies` is a directory of its own."""

    def __init__(self, context: Context, copies: Path) -> None:
        self.context, self.copies = context, copies
        self.done = 0
        self._busy = asyncio.Lock()

    async def allowed(self) -> bool:
        """May this network be broken?"""
        target = Target(self.context)
        try:
            await target.find()
        except PlanariaError:
            return False
        finally:
            await target.close()
        return True

    async def carry_out(self, name: str, topic: str) -> str:
        """Do what a button says; what was done, in words. Raises UsageError."""
        if name not in BUTTONS:
            raise unknown("fault", name, BUTTONS)
        if self._busy.locked():
            raise UsageError("one thing at a time: the last fault is not over yet")
        async with self._busy:
            target = Target(self.context)
            try:
                await target.find()
                self.done += 1
                judge = Judge(target, Applications(target, topic, self.done))
                faults = Faults(target, judge, self.done, self.copies)
                (action,) = parse_schedule(SINGLE[name], name)
                found = await faults.carry_out(action)
            finally:
                await target.close()
            if not found.affected:
                raise UsageError(f"{name}: affected nothing at {', '.join(found.victims)}")
            return f"{name}: affected {found.affected:,} at {', '.join(found.victims)}"
