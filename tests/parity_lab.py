"""One scenario for two drivers: the simulator, and `planaria` processes with a client at each."""

import asyncio
import shutil
from contextlib import AsyncExitStack

import planaria
from planaria.core.book import Book, Summary
from planaria.core.node import (
    Command,
    Deliver,
    Delivery,
    Effect,
    Joined,
    Publish,
    Published,
    Subscribe,
    Unsubscribe,
)
from planaria.core.overlay import Violation
from planaria.core.scenario import Action, Schedule
from planaria.core.workload import ask_of
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.simulator.checkers import Bookkeeper
from planaria.simulator.trial import Spec, Trial
from process_lab import INTERVAL_SECONDS, UpNetwork

WITHIN = 120.0  # intervals: how long it takes is not judged


def new_book() -> Book:
    """The book that both drivers keep."""
    return Book(lambda wish, one: wish.pattern == one.topic, within=WITHIN, history=True)


def simulate(schedule: Schedule, n: int) -> tuple[list[Violation], Summary]:
    """What is wrong at the end of a simulation, and its book."""
    book, overlay = new_book(), RingOverlay()
    keeper = Bookkeeper(book, overlay.subscriptions, in_force=True)
    trial = Trial(overlay, Spec(n, 1, "legitimate", schedule), [keeper])
    trial.run()
    end = schedule[-1].at + 2 * WITHIN
    while trial.time < end:
        trial.simulator.run_interval()
    return [*trial.violations(), *book.violations(end)], book.summary(end)


class LiveRun:
    """The same on processes. Node 0 of the scenario is `n2`: `n1` supervises."""

    def __init__(self, network: UpNetwork, n: int) -> None:
        self.network, self.n = network, n
        self.entries: list[tuple[float, str | Command | Effect, int]] = []
        self.tails: dict[int, asyncio.Task[None]] = {}
        self.clients: dict[int, AsyncExitStack] = {}
        self.publishers: dict[int, planaria.Client] = {}
        self.had: dict[int, int] = {}  # publications that each application was given
        self.published = 0
        self.start = 0.0

    async def run(self, schedule: Schedule) -> Summary:
        """Do what the scenario says, each at its time; the book at the end."""
        try:
            for node in range(self.n):
                await self.application(node)
            self.start = asyncio.get_running_loop().time()
            for action in schedule:
                await asyncio.sleep(max(0.0, action.at - self.time) * INTERVAL_SECONDS)
                await getattr(self, action.kind)(action)
            return await self.book(self.time + 2 * WITHIN)
        finally:
            for node in list(self.clients):
                await self.end(node)

    @property
    def time(self) -> float:
        """Intervals since the scenario began."""
        return (asyncio.get_running_loop().time() - self.start) / INTERVAL_SECONDS

    def note(self, what: str | Command | Effect, node: int, time: float | None = None) -> None:
        """Enter something into the book, at the end: an answer may come after its consequences."""
        self.entries.append((self.time if time is None else time, what, node))

    # Applications: a client of one node, that goes on where it was when the node comes back

    async def application(self, node: int) -> None:
        """Begin an application that has nothing yet."""
        stack = self.clients[node] = AsyncExitStack()
        self.had[node] = 0
        address = self.network.nodes[self.name(node)]["listen"]
        credentials = self.network.context.credentials
        client = planaria.connect([address], credentials=credentials)
        self.publishers[node] = await stack.enter_async_context(client)
        events = self.publishers[node].subscribe(TOPIC, since="all")
        await stack.enter_async_context(events)
        await events.ready()
        self.note(Joined(TOPIC), node)
        self.tails[node] = asyncio.create_task(self.read(node, events))

    async def read(self, node: int, events: planaria.Subscription[planaria.Event]) -> None:
        async for batch in events.batches():
            deliver = Deliver(TOPIC, tuple(Delivery(it.id, it.payload) for it in batch))
            self.note(deliver, node)
            self.had[node] += len(batch)

    async def settle(self) -> None:
        """Wait until all have all, as they have in a simulation: a machine may be slow."""
        while any(self.had[node] < self.published for node in self.clients):
            await asyncio.sleep(0.05)

    async def end(self, node: int) -> None:
        tail = self.tails.pop(node, None)
        if tail is not None:  # else it could not begin
            tail.cancel()
        await self.clients.pop(node).aclose()

    def name(self, node: int) -> str:
        return f"n{node + 2}"

    # Actions

    async def publish(self, action: Action) -> None:
        ask = ask_of(action)
        assert isinstance(ask.command, Publish)
        assert ask.node is not None
        node, command = ask.node, ask.command
        for _ in range(ask.count):
            time = self.time
            self.published += 1
            ack = await self.publishers[node].publish(command.topic, command.payload)
            published = Published(command.topic, ack.id, ack.publisher, ack.sequence)
            self.note(command, node, time)
            self.note(published, node, time)

    async def unsubscribe(self, action: Action) -> None:
        await self.settle()
        ask = ask_of(action)
        assert isinstance(ask.command, Unsubscribe)
        assert ask.node is not None
        self.note(ask.command, ask.node)
        await self.end(ask.node)

    async def crash(self, action: Action) -> None:
        await self.settle()
        node = int(action.number("node"))
        self.note("stop", node)
        await self.end(node)
        await asyncio.to_thread(self.network.kill, self.name(node))

    async def restart(self, action: Action) -> None:
        """Kill a node and start it; who begins without its store begins with new applications."""
        await self.settle()
        node, kept = int(action.number("node")), action["state"] == "kept"
        self.note("stop", node)
        if not kept:
            await self.end(node)
        await asyncio.to_thread(self.network.kill, self.name(node))
        if not kept:
            shutil.rmtree(self.network.directory(self.name(node)) / "store")
        await asyncio.to_thread(self.network.start, self.name(node))
        self.note("start", node)
        if not kept:
            self.note("forget", node)
            await self.application(node)

    async def book(self, end: float) -> Summary:
        """The book, as soon as nothing is missing, or when time is up."""
        while True:
            book = new_book()
            for node in range(self.n):
                book.subscribed(node, Subscribe(TOPIC))
            for time, what, node in sorted(self.entries, key=lambda it: it[0]):
                self.enter(book, time, what, node)
            if not book.missed(end) or self.time > end:
                return book.summary(end)
            await asyncio.sleep(INTERVAL_SECONDS)

    def enter(self, book: Book, time: float, what: str | Command | Effect, node: int) -> None:
        """Enter one thing, as the driver of a simulation does."""
        if isinstance(what, Command):
            book.command(time, node, what)
        elif isinstance(what, Effect):
            book.effect(time, node, what)
        else:
            getattr(book, what)(time, node)
