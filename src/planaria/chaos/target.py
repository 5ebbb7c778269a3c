"""The network that is broken: its nodes, their processes, and the questions that break them."""

import asyncio
import os
import re
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.network.client.access import Access, shown
from planaria.network.client.asking import Asker, Refused, Unanswered
from planaria.network.client.errors import Unreachable
from planaria.network.client.messages import Inject, Injected
from planaria.network.config import is_loopback
from planaria.network.context import Context
from planaria.network.local import AGAIN
from planaria.network.survey import Surveyor

START_SECONDS = 60.0  # for a process to end or to serve
POLL_SECONDS = 0.02
STOPPED, GONE = "T", "Z"  # states of processes, as the kernel says them

Start = Callable[["Member"], Awaitable[None]]


class Member(Struct, eq=False):
    """A node: where it is, and whether it runs, as far as this driver has done."""

    name: str
    handle: NodeId
    address: str
    pid: int
    directory: Path | None
    supervises: bool
    alive: bool = True
    stopped: bool = False

    @property
    def running(self) -> bool:
        """Does it run, and do anything?"""
        return self.alive and not self.stopped


class Target:
    """A network of nodes that may be broken; `start` starts the process of a dead one again."""

    def __init__(self, context: Context, start: Start | None = None) -> None:
        self.context = context
        self.access = Access(*shown(context, None))
        self.members: dict[str, Member] = {}
        self.interval = 0.0
        self.invented = False  # was there ever a fault that makes up publications?
        self._start = start or self._ask_for_start
        self._askers: dict[str, Asker] = {}

    async def find(self) -> None:
        """Learn who there is; raises UsageError if one of them may not be broken."""
        async with Surveyor(self.context) as surveyor:
            survey = await surveyor.look()
        found = []
        for handle, seen in survey.nodes.items():
            status = seen.status
            directory = None if status.store is None else Path(status.store.path).parent
            pid, name = status.process.pid, status.name or str(handle)
            found.append(Member(name, handle, seen.address, pid, directory, status.supervises))
            self.interval = max(self.interval, status.interval)
        self.members = {it.name: it for it in sorted(found, key=lambda it: _natural(it.name))}
        if len(self.members) < len(found):
            raise UsageError("two nodes have one name: start them with --name")
        for member in self.members.values():
            try:
                await self.ask(member, "ask")
            except Refused as error:
                raise UsageError(str(error)) from None

    async def close(self) -> None:
        """Hang up."""
        await asyncio.gather(*(asker.close() for asker in self._askers.values()))
        self._askers = {}

    @property
    def running(self) -> list[Member]:
        """The nodes that run and do something."""
        return [it for it in self.members.values() if it.running]

    @property
    def supervisors(self) -> int:
        """How many supervise, dead or alive."""
        return sum(it.supervises for it in self.members.values())

    @property
    def handles(self) -> list[NodeId]:
        """The ids of all nodes, dead or alive."""
        return [it.handle for it in self.members.values()]

    def servers(self, first: int) -> list[str]:
        """The addresses of all nodes, beginning with another one for each number."""
        addresses = [it.address for it in self.members.values()]
        first %= len(addresses)
        return addresses[first:] + addresses[:first]

    def name_at(self, address: str) -> str:
        """Who is at an address; empty if nobody is known to be."""
        return next((it.name for it in self.members.values() if it.address == address), "")

    # Questions

    async def ask(self, member: Member, fault: str, seed: int = 0, **options: Any) -> Injected:
        """Let a node do itself harm; raises Refused, and Unanswered if it is gone."""
        asker = self._askers.pop(member.name, None)
        if asker is None or asker.hung_up:
            asker = Asker(member.address, self.access)
            await asker.open()
        try:
            answer = await asker.ask(Inject, Injected, fault, seed, options)
        except BaseException:
            asker.abort()
            raise
        if member.name in self._askers:  # another question was asked at the same time
            await asker.close()
        else:
            self._askers[member.name] = asker
        return answer

    async def ask_all(
        self, fault: str, members: Iterable[Member] | None = None, **options: Any
    ) -> dict[str, Injected]:
        """Ask all that run, at once; who does not answer is left out."""

        async def one(member: Member) -> tuple[str, Injected | None]:
            try:
                return member.name, await self.ask(member, fault, **options)
            except Unanswered:
                return member.name, None

        chosen = self.running if members is None else [it for it in members if it.running]
        found = await asyncio.gather(*(one(member) for member in chosen))
        return {name: answer for name, answer in found if answer is not None}

    # Processes

    async def kill(self, member: Member) -> None:
        """kill -9, and wait until it is gone."""
        self._signal(member, signal.SIGKILL)
        await _until(lambda: state_of(member.pid) in ("", GONE), f"{member.name} ends")
        member.alive = member.stopped = False
        await self._hang_up(member)

    async def leave(self, member: Member) -> None:
        """Tell it to end in good order, and wait until it is gone."""
        self._signal(member, signal.SIGTERM)
        await _until(lambda: state_of(member.pid) in ("", GONE), f"{member.name} leaves")
        member.alive = False
        await self._hang_up(member)

    async def stop(self, member: Member) -> bool:
        """Stop a process; is it stopped?"""
        self._signal(member, signal.SIGSTOP)
        await _until(lambda: state_of(member.pid) == STOPPED, f"{member.name} stops")
        member.stopped = True
        await self._hang_up(member)
        return state_of(member.pid) == STOPPED

    def go_on(self, member: Member) -> None:
        """Let a stopped process go on."""
        if member.stopped:
            self._signal(member, signal.SIGCONT)
            member.stopped = False

    async def start(self, member: Member) -> None:
        """Start a dead one again; returns when it serves."""
        before = member.pid
        await self._start(member)
        await self._learn(member)
        if member.pid == before:
            raise UsageError(f"{member.name} did not start again")
        member.alive = True

    def directory(self, member: Member) -> Path:
        """Where a node keeps what it has; raises UsageError if that is nowhere."""
        if member.directory is None:
            raise UsageError(f"{member.name} has no store: it was started with --durability none")
        return member.directory

    async def _learn(self, member: Member) -> None:
        """Ask a new process who it is; a busy machine may take its time to answer."""
        end = asyncio.get_running_loop().time() + START_SECONDS
        async with Surveyor(_only(self.context, member.address)) as surveyor:
            while True:
                try:
                    survey = await surveyor.look()
                    break
                except Unreachable:
                    if asyncio.get_running_loop().time() > end:
                        raise
                    await asyncio.sleep(POLL_SECONDS)
        seen = survey.nodes.get(member.handle)
        if seen is not None:
            member.pid = seen.status.process.pid

    async def _ask_for_start(self, member: Member) -> None:
        """Let `planaria up` start it: it began it, and it ends it."""
        directory = self.directory(member)
        (directory / AGAIN).touch()
        gone = lambda: not (directory / AGAIN).exists()  # noqa: E731
        what = f"{member.name} is started again: only `planaria up --allow-chaos` does that"
        await _until(gone, what)
        asker = Asker(member.address, self.access)
        end = asyncio.get_running_loop().time() + START_SECONDS
        while True:
            try:
                await asker.open()
                await asker.close()
                return
            except Unanswered:
                if asyncio.get_running_loop().time() > end:
                    raise
                await asyncio.sleep(POLL_SECONDS)
                asker = Asker(member.address, self.access)

    async def _hang_up(self, member: Member) -> None:
        asker = self._askers.pop(member.name, None)
        if asker is not None:
            asker.abort()

    def _signal(self, member: Member, number: signal.Signals) -> None:
        """Send a signal to a node's process, if it is one of this machine."""
        if not is_loopback(member.address):
            raise UsageError(
                f"{member.name} is at {member.address}: processes of this machine only"
            )
        words = b""
        with suppress(OSError):
            words = Path(f"/proc/{member.pid}/cmdline").read_bytes()
        if b"planaria" not in words or b"node" not in words.split(b"\0"):
            raise UsageError(
                f"process {member.pid} is no node of this machine: {member.name} is not here"
            )
        os.kill(member.pid, number)


def state_of(pid: int) -> str:
    """The state of a process in the kernel's letter; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def split(members: Sequence[Member], groups: int) -> Mapping[str, int]:
    """Deal nodes out to groups in turn."""
    return {member.name: number % groups for number, member in enumerate(members)}


def _only(context: Context, address: str) -> Context:
    return Context((address,), context.credentials, context.insecure, context.cluster, context.name)


def _natural(name: str) -> list[tuple[int, str]]:
    """n10 after n9."""
    return [(int(it), "") if it.isdigit() else (-1, it) for it in re.findall(r"\d+|\D+", name)]


async def _until(holds: Callable[[], bool], what: str) -> None:
    end = asyncio.get_running_loop().time() + START_SECONDS
    while not holds():
        if asyncio.get_running_loop().time() > end:
            raise UsageError(f"not within {START_SECONDS:g} s: {what}")
        await asyncio.sleep(POLL_SECONDS)
