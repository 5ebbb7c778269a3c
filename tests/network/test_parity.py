"""One scenario, in the simulator and on processes: the same verdict and the same book."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import planaria
from planaria.core.book import Book, Summary
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Delivery, Joined, Publish, Published, Subscribe
from planaria.core.scenario import Action, Schedule, parse_schedule
from planaria.core.workload import ask_of
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial
from process_lab import Processes, UpNetwork

SCENARIO = Path(__file__).parent / "parity.scenario"
N = 5
WITHIN = 30  # intervals for a publication to arrive
END = 1e5  # when all that is due is due
SETTLED = 5  # intervals after an action, when the processes have done what it causes


class BookedRing(RingOverlay):
    """The ring, with a book of what its applications get."""

    def book(self) -> Book:
        return new_book()


def new_book() -> Book:
    return Book(lambda wish, said: wish.pattern == said.topic, within=WITHIN, history=True)


class Victims:
    """Whom the simulator's faults hit, in their order."""

    kinds = ("stop",)

    def __init__(self) -> None:
        self.found: list[NodeId] = []

    def record(self, tick: int, kind: str, node: NodeId, entry: object, effect: object) -> None:
        """A restart begins with a stop."""
        if kind == "stop":
            self.found.append(node)


def simulate(schedule: Schedule, seed: int) -> tuple[bool, Summary, list[NodeId]]:
    """Verdict, book and victims of a simulation."""
    victims = Victims()
    trial = Trial(BookedRing(), Spec(N, seed, start="fresh", faults=schedule), [victims])
    outcome = trial.run()
    trial.applications.run(4 * WITHIN * INTERVAL)
    assert trial.book is not None
    verdict = outcome.legitimate and outcome.tested and outcome.failure is None
    return verdict, trial.book.summary(END), victims.found


class Application:
    """An application at one node: a client that knows no other node."""

    def __init__(self, network: UpNetwork, number: int) -> None:
        self.number = number
        address = network.nodes[name_of(number)]["listen"]
        self.client = planaria.connect(
            address, credentials=network.context.credentials, patience=100
        )
        self.events = self.client.subscribe(TOPIC, since="all")
        self.got: list[planaria.Event] = []  # not yet entered into the book
        self.reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.client.__aenter__()
        await self.events.ready()
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for batch in self.events.batches():
            self.got += batch

    async def stop(self) -> None:
        assert self.reading is not None
        self.reading.cancel()
        await asyncio.gather(self.reading, return_exceptions=True)
        await self.client.close(flush=False)


def name_of(number: int) -> str:
    """Which process is peer `number`: the first one is the supervisor."""
    return f"n{number + 2}"


class LiveRun:
    """The scenario on processes; times in the book are the scenario's."""

    def __init__(self, network: UpNetwork, victims: list[NodeId]) -> None:
        self.network, self.victims = network, victims
        self.book = new_book()
        self.applications: dict[int, Application] = {}
        self.held: dict[int, int] = {}  # how many publications each application has

    async def run(self, schedule: Schedule) -> Summary:
        for number in range(N):
            self.book.start(0, number)
            await self._begin(0, number)
        for action in schedule:
            await getattr(self, f"_{action.kind}")(action)
            await self._settle(action.at + SETTLED)
        for application in self.applications.values():
            await application.stop()
        return self.book.summary(END)

    async def _begin(self, time: float, number: int) -> None:
        """A new application, that wants the one topic."""
        application = self.applications[number] = Application(self.network, number)
        self.held[number] = 0
        self.book.command(time, number, Subscribe(TOPIC))
        await application.start()
        self.book.effect(time + SETTLED, number, Joined(TOPIC))

    async def _publish(self, action: Action) -> None:
        ask = ask_of(action)
        assert isinstance(ask.command, Publish)
        assert ask.node is not None
        for _ in range(ask.count):
            ack = await self.applications[ask.node].client.publish(TOPIC, ask.command.payload)
            self.book.command(action.at, ask.node, ask.command)
            self.book.effect(action.at, ask.node, Published(TOPIC, ack.id))

    async def _restart(self, action: Action) -> None:
        number = self.victims.pop(0)
        name = name_of(number)
        await asyncio.to_thread(self.network.kill, name)
        self.book.stop(action.at, number)
        if action["state"] == "none":
            shutil.rmtree(self.network.directory(name) / "store")
            await self.applications.pop(number).stop()
        await asyncio.to_thread(self.network.start, name)
        self.book.start(action.at, number)
        if action["state"] == "none":
            self.book.forget(action.at, number)
            await self._begin(action.at, number)

    async def _crash(self, action: Action) -> None:
        number = self.victims.pop(0)
        await asyncio.to_thread(self.network.kill, name_of(number))
        self.book.stop(action.at, number)
        await self.applications.pop(number).stop()
        del self.network.nodes[name_of(number)]

    async def _settle(self, time: float) -> None:
        """Wait until every application has everything, and enter what came."""
        while True:
            for number, application in self.applications.items():
                got, application.got = application.got, []
                said = [Delivery(event.id, event.payload) for event in got]
                if said:
                    self.book.effect(time, number, Deliver(TOPIC, said))
                self.held[number] += len(said)
            if all(self.held[it] >= len(self.book.published) for it in self.applications):
                return
            await asyncio.sleep(0.05)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as found:
        yield found


def test_one_scenario_has_one_book_in_the_simulator_and_on_processes(processes: Processes) -> None:
    schedule = parse_schedule(SCENARIO.read_text())
    verdict, simulated, victims = next(
        found
        for found in (simulate(schedule, seed) for seed in range(20))
        if 0 not in found[2] and len({*found[2]} & {*range(N)}) == len(found[2])
    )
    assert verdict
    network = UpNetwork(processes, N + 1, 1)

    async def main() -> Any:
        async with asyncio.timeout(300):
            return await LiveRun(network, victims).run(schedule)

    live = asyncio.run(main())
    network.heal()
    assert live == simulated
    assert (live.published, live.missed, live.twice) == (80, 0, 0)
