"""One run of chaos: applications, faults, the doctor's watch, and the verdict."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from math import inf
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from planaria.chaos.applications import HOLDING, PUBLISHERS, Applications, Asked
from planaria.chaos.draw import overlapping
from planaria.chaos.faults import Faults, Injection
from planaria.chaos.judge import Census, Judge
from planaria.chaos.target import Target
from planaria.chaos.watch import Watch
from planaria.core.book import Due
from planaria.core.errors import UsageError
from planaria.core.scenario import Action, Schedule
from planaria.network.client.overlays import RING
from planaria.network.overlays.registry import PARTS
from planaria.protocols.skipring.overlay import RingOverlay

LATE_INTERVALS = 10.0  # after which a publication is late
SETTLE_SECONDS = 60.0  # for everything to be delivered, once the network is legitimate
POLL_SECONDS = 0.1
BOUND_SECONDS_MIN = 60.0  # a machine may be slow
PACE = 16
SLACK_INTERVALS = 20.0  # for clients to find a node again, before and after faults
CALM_PUBLICATIONS = 10  # at least so many are judged where there is no history
TAKING = ("corrupt", "forge")  # what nodes remember
LOST_SHARE = {"gossip": 0.01}  # of the deliveries: its dial promises no more
SHOWN = 20  # missing deliveries that are told one by one
WRONG_SHOWN = 3  # findings of the doctor after a fault that did not heal

Say = Callable[[str], None]


class FaultReport(Struct, frozen=True):
    """A fault, how much it affected, and the seconds from its end until all was legitimate."""

    fault: str
    affected: int
    seconds: float | None


class Report(Struct, frozen=True):
    """What became of everything. `delivered`, `late`, `lost` and `twice` count pairs of a
    publication and a subscriber; `destroyed` counts publications whose holders all lost them."""

    published: int
    acknowledged: int
    delivered: int
    late: int
    lost: int
    twice: int
    healed: bool
    destroyed: int
    faults: list[FaultReport]


class Verdict(Struct, frozen=True):
    """The report, and what is wrong, in words."""

    report: Report
    wrong: list[str]
    injections: list[Injection]


class Run:
    """Breaks `target` as schedules say; `copies` is a directory of its own.

    In its block applications publish and read. Of several schedules, one after the other, each
    verdict is about its own faults and about all publications so far.
    """

    def __init__(
        self,
        target: Target,
        topic: str,
        seed: int,
        copies: Path,
        say: Say = lambda _: None,
        bodies: Iterator[bytes] | None = None,
        overlay: str = RING,
    ) -> None:
        self.target, self.seed, self.say, self.overlay = target, seed, say, overlay
        self.copies = copies
        self.applications = Applications(target, topic, seed, bodies, overlay)
        self.judge = Judge(target, self.applications)
        self.faults = Faults(target, self.judge, seed, copies)
        self.injections: list[Injection] = []
        self.watch = Watch(target)
        self._doomed: set[bytes] = set()  # publications that all their holders lost
        self._first = 0.0  # when the network was legitimate first
        self._served: list[tuple[float, float]] = []  # when everything arrived, without history
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.judge.census()
        self.applications.earlier = frozenset(self.judge.seen)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.applications)
            await stack.enter_async_context(self.watch)
            await self.watch.legitimate(asyncio.get_running_loop().time(), self.bound)
            self._stack = stack.pop_all()
        self._first = self.applications.time
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def draw_from(self, seed: int) -> None:
        """Draw victims and values from another seed from now on."""
        self.seed, self.faults = seed, Faults(self.target, self.judge, seed, self.copies)

    async def timed(self, schedule: Schedule) -> Verdict:
        """Do everything at its time, in intervals from the first legitimate moment on."""

        async def work() -> None:
            start = asyncio.get_running_loop().time()
            try:
                async with asyncio.TaskGroup() as tasks:
                    for action in schedule:
                        due = start + action.at * self.target.interval
                        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                        tasks.create_task(self._inject(action))
            except ExceptionGroup as group:  # one line for whoever wrote the schedule
                wrong = [it for it in group.exceptions if isinstance(it, UsageError)]
                raise (wrong[0] if wrong else group) from None

        return await self._judged(schedule, work)

    async def alone(self, schedule: Schedule, after: Awaitable[None]) -> Verdict:
        """Do one when the network has healed from the one before, the first `after` something."""

        async def work() -> None:
            await after
            for action in schedule:
                await self._inject(action)

        return await self._judged(schedule, work)

    async def in_turn(self, schedule: Schedule) -> Verdict:
        """Do one after the other: most of them when the network has healed from the last."""

        async def work() -> None:
            healing: list[asyncio.Task[None]] = []
            for number, action in enumerate(schedule):
                if not overlapping(self.seed, number, action):
                    await asyncio.gather(*healing)
                    healing = []
                injection = await self._inject(action, wait=False)
                healing.append(asyncio.create_task(self._healed(injection)))
            await asyncio.gather(*healing)

        return await self._judged(schedule, work)

    @property
    def bound(self) -> float:
        """Seconds within which the overlay promises to be legitimate again."""
        n, supervisors = len(self.target.members), self.target.supervisors
        ring = RingOverlay(max(1, supervisors), pace=PACE).bound(n, 1.0)
        other = 0 if self.overlay == RING else PARTS[self.overlay].bound(n, 1.0)
        return max(BOUND_SECONDS_MIN, max(ring, other) * self.target.interval)

    async def _judged(
        self, schedule: Schedule, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> Verdict:
        before, loop = len(self.injections), asyncio.get_running_loop()
        self.applications.go_on()
        if any(it.kind == "restart" and it["state"] == "stale" for it in schedule):
            await self.faults.keep_copies()
        try:
            await work()
        finally:
            await self._calm()
        healed = await self.watch.legitimate(loop.time(), self.bound)
        await self._calm_again()
        self.applications.pause()
        await self._settled()
        return self._verdict(healed is not None, self.injections[before:])

    async def _inject(self, action: Action, *, wait: bool = True) -> Injection:
        if self.overlay == HOLDING:  # any fault may cost a reader its node
            await self.judge.census()
        injection = await self.faults.carry_out(action)
        self.injections.append(injection)
        where = ", ".join(injection.victims)
        self.say(f"{action}: affected {injection.affected} at {where or 'nobody'}")
        if wait:
            await self._healed(injection)
        return injection

    async def _healed(self, injection: Injection) -> None:
        """Wait until the network is legitimate, and note how long it took."""
        found = await self.watch.legitimate(injection.ended, self.bound)
        if found is not None:
            injection.seconds = round(found - injection.ended, 2)
            self.say(f"  legitimate {injection.seconds:.1f} s after {injection.action.kind}")
        else:
            injection.wrong = self.watch.wrong[:WRONG_SHOWN]
            self.say(f"  NOT legitimate within {self.bound:.0f} s: {'; '.join(injection.wrong)}")

    async def _calm(self) -> None:
        """End whatever lasts, and let everybody run."""
        for member in self.target.members.values():
            self.target.go_on(member)
        await self.target.ask_all("calm")

    async def _settled(self) -> None:
        """Wait until everything is acknowledged and nobody misses anything, or time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                while self.applications.under_way:
                    await asyncio.sleep(POLL_SECONDS)
                self._doomed = await self.judge.doomed()
                owed = self._owed()
                while any(owed - self.applications.had[it] for it in self.applications.readers):
                    await asyncio.sleep(POLL_SECONDS)

    async def _calm_again(self) -> None:
        """Where there is no history, what is published once things arrive again is judged."""
        if self.overlay == RING:
            return
        began = self.applications.time
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                while not self._arrives(began):
                    await asyncio.sleep(POLL_SECONDS)
        served, asked = self.applications.time, len(self.applications.asked)
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                while len(self.applications.asked) < asked + CALM_PUBLICATIONS:
                    await asyncio.sleep(POLL_SECONDS)
        self._served.append((served, self.applications.time))

    def _arrives(self, began: float) -> bool:
        """Has one publication of each application since then reached everybody?"""
        had = [self.applications.had[it] for it in self.applications.readers]
        new = [it for it in self.applications.acknowledged if it.asked >= began]
        found = {it.publisher for it in new if all(it.id in some for some in had)}
        return len(found) == PUBLISHERS

    def _owed(self) -> set[bytes]:
        """What is owed to readers as things are now: not what is destroyed; without history not
        what may have passed them by."""
        excuses = [] if self.overlay == RING else [*self._excuses()]

        def excused(one: Asked) -> bool:
            if any(since <= one.asked <= until for since, until in self._served):
                return False
            return any(lo <= one.asked <= hi and was.on_its_way(one) for lo, hi, was in excuses)

        made = self.applications.acknowledged
        return {one.id for one in made if one.id not in self._doomed and not excused(one)}

    def _excuses(self) -> Iterator[tuple[float, float, Census]]:
        """From when to when what is asked for may pass readers by, if it was on its way then.

        Of `mobile` a fault excuses if it changes what nodes remember, or while it cost a reader its
        node: at the next one it is not given what that had already.
        """
        when, slack, anything = self.applications.when, SLACK_INTERVALS, Census()
        yield -inf, self._first + slack, anything
        for it in self.injections:
            healed = it.ended + (self.bound if it.seconds is None else it.seconds)
            began, over = when(it.began), when(healed) + slack
            if self.overlay != HOLDING:
                yield began - slack, over, anything
                continue
            if it.action.kind in TAKING:
                yield -inf, over, self.judge.before(began)
            for away in self.applications.away:
                if began <= away.since <= over:
                    yield -inf, away.until, self.judge.before(away.since)

    @property
    def _late(self) -> float:
        """A time at which everything is due."""
        return self.applications.time + 2 * LATE_INTERVALS

    def _verdict(self, healed: bool, injections: list[Injection]) -> Verdict:
        book, owed = self.applications.book(LATE_INTERVALS), self._owed()
        for one in self.applications.acknowledged:
            book.published[one.id].excused = one.id not in owed
        summary, missed = book.summary(self._late), book.missed(self._late)
        had = [self.applications.had[it] for it in self.applications.readers]
        report = Report(
            published=len(self.applications.asked),
            acknowledged=len(self.applications.acknowledged),
            delivered=summary.once + summary.late,
            late=summary.late,
            lost=len(missed),
            twice=summary.twice,
            healed=healed and all(it.seconds is not None for it in injections),
            destroyed=len({id for id in self._doomed if any(id not in it for it in had)}),
            faults=[FaultReport(str(it.action), it.affected, it.seconds) for it in injections],
        )
        wrong = [*self._unasked(len(owed)), *self._wrong(report, summary.never_published)]
        wrong += self._unhealed(injections)
        return Verdict(report, [*wrong, *self._missing(missed)], injections)

    def _missing(self, missed: Sequence[Due]) -> list[str]:
        """Who was not given what, the first of them."""
        return [
            f"{self.applications.called(it.client[0])} was not given "
            f"{it.publication.command.payload.decode()!r} of interval {it.publication.time:.0f}"
            for it in missed[:SHOWN]
        ]

    def _unasked(self, owed: int) -> list[str]:
        """What the applications could not do: nothing can be concluded then."""
        applications = self.applications
        found = [*applications.failures, *self._refused()][:SHOWN]
        if not applications.acknowledged:
            found.append("no publication was acknowledged")
        elif not owed:
            found.append("no publication was owed to anybody: nothing was judged")
        if applications.under_way:
            found.append(f"{applications.under_way} publications are still not acknowledged")
        return found

    def _refused(self) -> list[str]:
        """What was refused for good: nothing that the applications publish deserves that."""
        return [
            f"publication {it.number}: {it.refused[1]}"
            for it in self.applications.asked
            if it.refused
        ]

    def _unhealed(self, injections: Sequence[Injection]) -> list[str]:
        """Which faults did not heal in time, and what was wrong then."""
        return [
            f"`{it.action}` did not heal within {self.bound:.0f} s: {'; '.join(it.wrong)}"
            for it in injections
            if it.seconds is None
        ]

    def _wrong(self, report: Report, invented: int) -> list[str]:
        found = []
        if not report.healed:
            found.append(f"not legitimate again: {'; '.join(self.watch.wrong[:WRONG_SHOWN])}")
        if report.lost > LOST_SHARE.get(self.overlay, 0.0) * report.delivered:
            found.append(f"{report.lost} deliveries of acknowledged publications are missing")
        if report.twice:
            found.append(f"{report.twice} deliveries came twice")
        if invented and not self.target.invented:
            found.append(f"{invented} deliveries of what nobody published")
        idle = [it.fault for it in report.faults if not it.affected]
        found += [f"`{fault}` affected nothing: it tested nothing" for fault in idle]
        return found
