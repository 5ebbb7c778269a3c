"""Carries out the actions of a schedule on a running network, and says what each affected."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from planaria.chaos import stores
from planaria.chaos.judge import INVENTING, Judge
from planaria.chaos.strangers import flood, garbage
from planaria.chaos.target import Member, Target, split
from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.scenario import ANYBODY, Action
from planaria.network.client.asking import Unanswered
from planaria.network.client.overlays import RING

DELAY = 0.25  # intervals that a message takes in a simulation, on average
SCRAMBLE_INTERVALS = 4.0  # in a simulation it is all that is under way at one moment
BLIPS = 50  # times that a fault of less than an interval is done until a frame was in its way
WAKING = 20  # intervals in which a node takes part again

Prepare = Callable[[Path], int]


class Injection(Struct):
    """One action, once carried out: on whom, what it affected, and when it ended."""

    action: Action
    victims: list[str] = []
    affected: int = 0
    began: float = 0.0
    ended: float = 0.0
    seconds: float | None = None  # from its end until the network was legitimate
    wrong: list[str] = []  # what the doctor found when its time to heal was up


class Faults:
    """Breaks one network; `copies` is where old copies of stores are kept."""

    def __init__(self, target: Target, judge: Judge, seed: int, copies: Path) -> None:
        self.target, self.judge, self.seed, self.copies = target, judge, seed, copies
        self._rng = Random(seed)
        self._repeated: Counter[str] = Counter()

    @property
    def _overlay(self) -> dict[str, Any]:
        return {"overlay": self.judge.applications.overlay}

    async def keep_copies(self) -> None:
        """Copy all stores as they are now, for `state=stale`."""
        for member in self.target.members.values():
            if member.directory is not None:
                copy = self.copies / member.name
                await asyncio.to_thread(stores.keep_copy, member.directory, copy)

    async def carry_out(self, action: Action) -> Injection:
        """Do it, and end it if it lasts."""
        text, injection = str(action), Injection(action)
        self._repeated[text] += 1
        rng = stream(self.seed, "fault", text, self._repeated[text])
        injection.began = asyncio.get_running_loop().time()
        self.target.invented |= action.kind in INVENTING
        await getattr(self, f"_{action.kind}")(action, injection, rng)
        injection.ended = asyncio.get_running_loop().time()
        return injection

    # Frames

    async def _rules(
        self, action: Action, injection: Injection, rules: dict[Member, dict[str, Any]], rng: Random
    ) -> None:
        """Put rules in force at nodes, and end them when it is time.

        What lasts milliseconds may fall between two frames: then it is done again.
        """
        numbers: dict[str, int] = {}
        seed = rng.getrandbits(62)
        injection.victims = [it.name for it in rules]

        async def begin(member: Member) -> None:
            with suppress(Unanswered):  # another fault may have taken it
                answer = await self.target.ask(member, "begin", seed, **rules[member])
                numbers[member.name] = answer.found["number"]

        async def end(member: Member) -> None:
            if member.running and member.name in numbers:
                number = numbers[member.name]
                affected = await self._harm(member, "end", number=number)
                injection.affected += affected

        members = [it for it in rules if it.running]
        for _ in range(BLIPS if action.duration < 1 else 1):
            try:
                await asyncio.gather(*(begin(member) for member in members))
                await self._last(action)
            finally:
                await asyncio.gather(*(end(member) for member in members))
            if injection.affected:
                break

    async def _everywhere(
        self, action: Action, injection: Injection, rng: Random, **options: Any
    ) -> None:
        rules = {member: {"rule": action.kind, **options} for member in self.target.running}
        await self._rules(action, injection, rules, rng)

    async def _partition(self, action: Action, injection: Injection, rng: Random) -> None:
        members = self.target.running
        rng.shuffle(members)
        group = split(members, int(action.number("groups")))
        rules: dict[Member, dict[str, Any]] = {}
        for member in members:
            mine = group[member.name]
            others = [
                it.handle
                for it in members
                if (group[it.name] > mine if action["one_way"] else group[it.name] != mine)
            ]
            if others:
                rules[member] = {"rule": "partition", "nodes": others}
        await self._rules(action, injection, rules, rng)

    async def _loss(self, action: Action, injection: Injection, rng: Random) -> None:
        await self._everywhere(action, injection, rng, rate=action.number("rate"))

    async def _duplicate(self, action: Action, injection: Injection, rng: Random) -> None:
        rate = action.number("rate")
        await self._everywhere(action, injection, rng, rate=rate, seconds=self.target.interval)

    async def _reorder(self, action: Action, injection: Injection, rng: Random) -> None:
        rate, seconds = action.number("rate"), action.number("intervals") * self.target.interval
        await self._everywhere(action, injection, rng, rate=rate, seconds=seconds)

    async def _scramble(self, action: Action, injection: Injection, rng: Random) -> None:
        await self._everywhere(action, injection, rng, rate=action.number("share"))

    async def _slow(self, action: Action, injection: Injection, rng: Random) -> None:
        """All frames to and from the victims take longer."""
        victims = self._choose(action, rng)
        seconds = action.number("factor") * DELAY * self.target.interval
        handles = [it.handle for it in victims]
        rules: dict[Member, dict[str, Any]] = {}
        for member in self.target.running:
            rule = {"rule": "slow", "seconds": seconds}
            rules[member] = rule if member in victims else {**rule, "nodes": handles}
        await self._rules(action, injection, rules, rng)
        injection.victims = [it.name for it in victims]

    async def _busy(self, action: Action, injection: Injection, rng: Random) -> None:
        rules = {member: {"rule": "busy"} for member in self._choose(action, rng)}
        await self._rules(action, injection, rules, rng)

    async def _forge(self, action: Action, injection: Injection, rng: Random) -> None:
        await self._at_each(action, injection, rng)

    async def _replay(self, action: Action, injection: Injection, rng: Random) -> None:
        await self._at_each(action, injection, rng)

    async def _at_each(self, action: Action, injection: Injection, rng: Random) -> None:
        """So many messages, divided among all nodes."""
        members = self.target.running
        injection.victims = [it.name for it in members]
        shares = Counter(rng.choice(members).name for _ in range(int(action.number("count"))))
        for name, count in sorted(shares.items()):
            member, seed = self.target.members[name], rng.getrandbits(62)
            options = {"count": count, "nodes": self.target.handles, **self._overlay}
            injection.affected += await self._harm(member, action.kind, seed, **options)

    # Memory and clocks

    async def _corrupt(self, action: Action, injection: Injection, rng: Random) -> None:
        victims = self._chosen(action, injection, rng)
        topics, nodes = [self.judge.applications.topic], self.target.handles
        async with self.judge.destroying(victims):
            for member in victims:
                options, seed = {"nodes": nodes, "topics": topics}, rng.getrandbits(62)
                options |= self._overlay
                injection.affected += await self._harm_awake(member, "corrupt", seed, **options)

    async def _skew(self, action: Action, injection: Injection, rng: Random) -> None:
        victims, seconds = self._chosen(action, injection, rng), int(action.number("seconds"))
        for member in victims:
            injection.affected += await self._harm(member, "skew", seconds=seconds)
        await self._last(action)
        await self.target.ask_all("skew", victims, seconds=0)

    # Processes and files

    async def _pause(self, action: Action, injection: Injection, rng: Random) -> None:
        victims = self._chosen(action, injection, rng)
        try:
            for member in victims:
                injection.affected += await self.target.stop(member)
            await self._last(action)
        finally:
            for member in victims:
                self.target.go_on(member)

    async def _crash(self, action: Action, injection: Injection, rng: Random) -> None:
        await self.judge.census()
        for member in self._chosen(action, injection, rng):
            await self._kill(member)
            injection.affected += not member.alive

    async def _join(self, action: Action, injection: Injection, rng: Random) -> None:
        """Nodes that were killed come back, as many as are asked for."""
        dead = [it for it in self.target.members.values() if not it.alive]
        for member in dead[: int(action.number("count"))]:
            await self.target.start(member)
            injection.victims.append(member.name)
            injection.affected += 1

    async def _restart(self, action: Action, injection: Injection, rng: Random) -> None:
        state = action["state"]
        if state == "kept":
            for member in self._chosen(action, injection, rng):
                before = member.pid
                await self._kill(member)
                await self.target.start(member)
                injection.affected += member.pid != before
        elif state == "none":
            await self._damaged(action, injection, rng, lambda _: stores.wipe)
        else:
            old = lambda it: partial(stores.bring_back, copy=self.copies / it.name)  # noqa: E731
            await self._damaged(action, injection, rng, old)

    async def _flip(self, action: Action, injection: Injection, rng: Random) -> None:
        change = partial(stores.flip, bits=int(action.number("bits")), rng=rng)
        await self._damaged(action, injection, rng, lambda _: change)

    async def _truncate(self, action: Action, injection: Injection, rng: Random) -> None:
        change = partial(stores.truncate, keep=action.number("keep"))
        await self._damaged(action, injection, rng, lambda _: change)

    async def _damaged(
        self, action: Action, injection: Injection, rng: Random, change: Callable[[Member], Prepare]
    ) -> None:
        """Kill nodes, change their stores, and start them again; counts what was changed."""
        victims = self._chosen(action, injection, rng)
        taking = action.kind == "restart" or self.judge.applications.overlay == RING
        async with self.judge.destroying(victims if taking else ()):  # others damage rings alone
            for member in victims:
                directory = self.target.directory(member)
                await self._kill(member)
                injection.affected += await asyncio.to_thread(change(member), directory)
                await self.target.start(member)
                injection.affected += action.kind == "restart"  # whatever its old copy is like

    # Applications

    async def _publish(self, action: Action, injection: Injection, rng: Random) -> None:
        count = int(action.number("count"))
        injection.affected = await self.judge.applications.publish(count)

    async def _leave(self, action: Action, injection: Injection, rng: Random) -> None:
        """Nodes leave in good order, and their processes end."""
        await self.judge.census()
        for member in self._chosen(action, injection, rng):
            await self.target.leave(member)
            injection.affected += not member.alive

    # Strangers

    async def _garbage(self, action: Action, injection: Injection, rng: Random) -> None:
        for member in self._chosen(action, injection, rng):
            count = int(action.number("connections"))
            injection.affected += await garbage(member.address, self.target.access, count, rng)

    async def _flood(self, action: Action, injection: Injection, rng: Random) -> None:
        for member in self._chosen(action, injection, rng):
            count = int(action.number("requests"))
            injection.affected += await flood(member.address, self.target.access, count)

    # Helpers

    async def _kill(self, member: Member) -> None:
        await self.target.kill(member)
        self.judge.ended(member)

    async def _harm(self, member: Member, fault: str, seed: int = 0, **options: Any) -> int:
        """Let a node do itself harm; nothing is affected if another fault has taken it."""
        try:
            return (await self.target.ask(member, fault, seed, **options)).affected
        except Unanswered:
            return 0

    async def _harm_awake(self, member: Member, fault: str, seed: int, **options: Any) -> int:
        """The same when it takes part: who lost its store sleeps until others speak to it."""
        for _ in range(WAKING):
            if affected := await self._harm(member, fault, seed, **options):
                return affected
            await asyncio.sleep(self.target.interval)
        return 0

    async def _last(self, action: Action) -> None:
        intervals = SCRAMBLE_INTERVALS if action.kind == "scramble" else action.duration
        await asyncio.sleep(intervals * self.target.interval)

    def _chosen(self, action: Action, injection: Injection, rng: Random) -> list[Member]:
        found = self._choose(action, rng)
        injection.victims = [it.name for it in found]
        return found

    def _choose(self, action: Action, rng: Random) -> list[Member]:
        """The victims: `count` of them, or the `share` of all that may be, at least one.

        Or the one that is named, in the order of names. Of those that stop or lose something for
        good, one supervisor is left, and one more node.
        """
        members = self.target.running
        number = action.arguments.get("node", ANYBODY)
        if number != ANYBODY:
            named = [*self.target.members.values()][int(action.number("node")) :][:1]
            return [it for it in named if it.running]
        count = int(action.number("count")) or max(1, round(action.number("share") * len(members)))
        victims = rng.sample(members, min(count, len(members)))
        if action.kind in ("crash", "pause", "leave"):
            victims = _spared(victims, members)
        if not victims:
            raise UsageError(f"{action}: nobody is left to do it to")
        return sorted(victims, key=lambda it: members.index(it))


def _spared(victims: list[Member], members: Sequence[Member]) -> list[Member]:
    """Without the last supervisor, and without the last but one."""
    left = [it for it in members if it not in victims]
    spared = list(victims)
    while spared and (len(left) < 2 or not any(it.supervises for it in left)):
        need = not any(it.supervises for it in left)
        one = next((it for it in spared if it.supervises or not need), None)
        if one is None:
            return spared
        spared.remove(one)
        left.append(one)
    return spared
