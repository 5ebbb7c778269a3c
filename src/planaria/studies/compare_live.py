"""The overlays on real sockets, under the workload of the comparison: milliseconds and bytes.

All nodes run in one process on loopback, each with one client; the busier the machine, the slower.
Events in calm, then a quarter of the nodes is ended without a word, events while that heals, and
events after.
"""

import asyncio
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from statistics import quantiles
from time import monotonic

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.node import Publish
from planaria.lab.contest.contenders import OVERLAYS
from planaria.lab.contest.workload import AFTER, CALM, EVERY, FAULT, Event, Workload, number_of
from planaria.network.client.client import Client, connect
from planaria.network.client.events import Event as Delivered
from planaria.network.client.subscription import Subscription
from planaria.network.config import Config
from planaria.network.context import Context
from planaria.network.doctor import diagnose
from planaria.network.live import LiveNode
from planaria.network.survey import Surveyor

INTERVAL = 0.1  # seconds
SUPERVISORS = 2  # of the rings; the first is never ended
HEAL_SECONDS = 60.0  # for `doctor` to find nothing wrong
QUIET_SECONDS = 5.0  # for what is on its way
KEEPING = ("ring", "mobile")  # who lacks something gets it later
DIAL = {"gossip": 0.01}  # the share that may be lost: it promises no more


class LiveFigures(Struct):
    """What one overlay did. Bytes and messages are those between nodes, in calm, per delivery."""

    overlay: str
    p50_ms: float
    p99_ms: float
    bytes: float
    messages: float
    lost: float  # of the events in calm, and below: while it healed, and after
    lost_in_fault: float
    lost_after: float
    twice: int
    recovery_seconds: float | None  # until nothing was wrong any more; None: not in a minute


def broken(figures: LiveFigures) -> list[str]:
    """The promises that an overlay did not keep; a broker gives none."""
    it, found = figures, list[str]()
    if it.overlay not in OVERLAYS:
        return found
    share = DIAL.get(it.overlay, 0.0)
    judged = {"in calm": it.lost, "after the fault": it.lost_after}
    if it.overlay in KEEPING:
        judged["in the fault"] = it.lost_in_fault
    found += [
        f"{it.overlay} lost {lost:.1%} {when}" for when, lost in judged.items() if lost > share
    ]
    if it.twice:
        found.append(f"{it.overlay} delivered {it.twice} events twice")
    if it.recovery_seconds is None:
        found.append(f"{it.overlay} did not heal within {HEAL_SECONDS:g} s")
    return found


class Measured(ABC):
    """One system on one workload."""

    def __init__(self, overlay: str, workload: Workload, directory: Path) -> None:
        self.overlay, self.workload, self.directory = overlay, workload, directory
        self.published: dict[int, float] = {}
        self.taken: dict[tuple[NodeId, int], float] = {}  # when it came first
        self.twice = 0

    async def run(self) -> LiveFigures:
        """Start, publish, break, heal, publish; all of it is gone when this returns."""
        async with AsyncExitStack() as stack:
            await self._start(stack)
            await self._healed()
            before = self._sent()
            await self._publish(CALM)
            await self._arrived(CALM)
            sent = self._sent() - before
            delivered = len(self.taken)
            slow = [at - self.published[number] for (_, number), at in self.taken.items()]
            await self._break()
            broken = monotonic()
            await self._publish(FAULT)
            healed = await self._healed()
            recovery = monotonic() - broken if healed else None
            await self._arrived(FAULT)
            await self._publish(AFTER)
            await self._arrived(AFTER)
        cuts = quantiles([1000 * it for it in slow], n=100) if len(slow) > 1 else [0.0] * 99
        per = max(1, delivered)
        return LiveFigures(
            self.overlay, round(cuts[49], 1), round(cuts[98], 1), round(sent["bytes"] / per),
            round(sent["messages"] / per, 1), self._lost(CALM), self._lost(FAULT),
            self._lost(AFTER), self.twice,
            None if recovery is None else round(recovery, 1),
        )  # fmt: skip

    # What it is measured on

    @property
    @abstractmethod
    def alive(self) -> Collection[NodeId]:
        """Who takes part."""

    @abstractmethod
    async def _start(self, stack: AsyncExitStack) -> None:
        """Start it; the stack ends it."""

    @abstractmethod
    async def _break(self) -> None:
        """End the victims of the workload, and what else the fault is."""

    @abstractmethod
    async def _healed(self) -> bool:
        """Wait until it works again; does it?"""

    @abstractmethod
    async def _send(self, node: NodeId, topic: str, payload: bytes) -> None:
        """Publish something at a node."""

    @abstractmethod
    def _sent(self) -> Counter[str]:
        """Bytes and messages so far."""

    # Events

    async def _publish(self, phase: str) -> None:
        """Publish the events of a phase, one after the other."""
        for event in self.workload.phase(phase):
            asked = event.asked(0, self.alive)
            if asked is not None:
                command = asked.command
                assert isinstance(command, Publish)
                assert asked.node is not None
                self.published[number_of(command)] = monotonic()
                await self._send(asked.node, command.topic, command.payload)
                await asyncio.sleep(0 if phase == FAULT else EVERY * INTERVAL)

    async def _arrived(self, phase: str) -> None:
        """Wait for all that is due, or for long enough."""
        events, until = self.workload.phase(phase), monotonic() + QUIET_SECONDS
        while monotonic() < until and self._missing(events):
            await asyncio.sleep(INTERVAL / 10)

    def _take(self, id: NodeId, payload: bytes, time: float) -> None:
        """The application at a node is given something."""
        number = number_of(Publish("", payload))
        self.twice += (id, number) in self.taken
        self.taken.setdefault((id, number), time)

    # Figures

    def _due(self, event: Event) -> list[tuple[NodeId, int]]:
        command = event.ask.command
        assert isinstance(command, Publish)
        number = number_of(command)
        wanted = self.workload.interested(command.topic) if number in self.published else []
        return [(id, number) for id in wanted if id in self.alive]

    def _missing(self, events: Sequence[Event]) -> bool:
        return any(it not in self.taken for event in events for it in self._due(event))

    def _lost(self, phase: str) -> float:
        """The share of what was due to survivors and did not come."""
        alive = [id for id in self.workload.wishes if id not in self.workload.victims]
        due = came = 0
        for event in self.workload.phase(phase):
            command = event.ask.command
            assert isinstance(command, Publish)
            number = number_of(command)
            if number in self.published:
                wanted = [id for id in self.workload.interested(command.topic) if id in alive]
                due += len(wanted)
                came += sum((id, number) in self.taken for id in wanted)
        return round(1 - came / due, 4) if due else 0.0


class Live(Measured):
    """One overlay: whole nodes, each with a client."""

    def __init__(self, overlay: str, workload: Workload, directory: Path) -> None:
        super().__init__(overlay, workload, directory)
        self.nodes: dict[NodeId, LiveNode] = {}
        self.clients: dict[NodeId, Client] = {}

    @property
    def alive(self) -> Collection[NodeId]:
        """The nodes that run."""
        return self.nodes

    async def _start(self, stack: AsyncExitStack) -> None:
        door: tuple[str, ...] = ()
        for place, id in enumerate(self.workload.wishes):
            config = Config(
                dir=self.directory / str(id), listen="127.0.0.1:0", insecure=1, join=door,
                supervise=place < SUPERVISORS, interval=INTERVAL, durability="none",
                name=f"n{id}",
            )  # fmt: skip
            node = self.nodes[id] = LiveNode(config)
            stack.push_async_callback(self._end, id)
            await node.start()
            door = door or (node.listen,)
        for id, node in self.nodes.items():
            self.clients[id] = client = connect(node.listen, insecure=True)
            await stack.enter_async_context(client)
            events = client.subscribe(*self._patterns(id), overlay=self.overlay)
            await events.ready()
            stack.push_async_callback(_ended, asyncio.ensure_future(self._read(id, events)))

    def _patterns(self, id: NodeId) -> list[str]:
        """What a node wants: its topic with all below it; where there is no hierarchy, each."""
        if self.overlay in KEEPING:
            return self.workload.wanted(id)
        return [f"{self.workload.wishes[id]}/#"]

    async def _break(self) -> None:
        for id in self.workload.victims:
            await self._end(id)

    async def _end(self, id: NodeId) -> None:
        """End a node without a word."""
        node = self.nodes.pop(id, None)
        if node is not None:
            client = self.clients.pop(id, None)
            if client is not None:
                await client.close(flush=False)
            await node.host.stop()
            await node.stop(leave=False)

    async def _healed(self) -> bool:
        servers = tuple(node.listen for node in self.nodes.values())
        async with Surveyor(Context(servers=servers, insecure=True)) as surveyor:
            return (await diagnose(surveyor, HEAL_SECONDS)).legitimate

    async def _send(self, node: NodeId, topic: str, payload: bytes) -> None:
        await self.clients[node].publish(
            topic, payload, copies=1, durability="memory", overlay=self.overlay
        )

    async def _read(self, id: NodeId, events: Subscription[Delivered]) -> None:
        async for event in events:
            self._take(id, event.payload, monotonic())

    def _sent(self) -> Counter[str]:
        hosts = [node.host for node in self.nodes.values()]
        return Counter(
            bytes=sum(it.sent_bytes for it in hosts), messages=sum(it.sent_messages for it in hosts)
        )


async def _ended(task: "asyncio.Future[None]") -> None:
    """Cancel a reader; one that failed before raises here."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def compare_live(
    workload: Workload, report: Callable[[str], None], overlays: Sequence[str] = OVERLAYS
) -> list[LiveFigures]:
    """The overlays, one after the other, each on a network of its own."""
    found = []
    for overlay in overlays:
        with tempfile.TemporaryDirectory(prefix="planaria-compare-") as directory:
            report(f"{overlay}: {len(workload.wishes)} nodes, {len(workload.events)} events")
            found.append(await Live(overlay, workload, Path(directory)).run())
    return found
