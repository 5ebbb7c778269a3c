"""What must hold of a live network, with real processes that are killed while clients use it."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import planaria
from planaria.network.context import Context, read_context
from planaria.network.doctor import diagnose
from planaria.network.survey import Surveyor
from process_lab import Processes, Running, until

TOPIC = "flights/delays"
NODES, SUPERVISORS = 8, 2
PUBLISHERS, SUBSCRIBERS = 4, 3
PUBLICATIONS = 20_000
CHUNK = 250
HEAL_SECONDS = 90.0


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as found:
        yield found


class Network:
    """What `planaria up` started, and how to break it."""

    def __init__(self, processes: Processes, nodes: int, supervisors: int) -> None:
        self.processes, self.home = processes, processes.home / "net"
        words = ("up", "--nodes", nodes, "--supervisors", supervisors, "--port", 0, "--json")
        self.up = processes.run(*words, "--dir", self.home)
        ready = self.up.ready()
        self.context: Context = read_context(Path(ready["context"]))
        self.nodes: dict[str, dict[str, Any]] = {it["name"]: it for it in ready["nodes"]}
        processes.groups += [it["pid"] for it in ready["nodes"]]
        self.again: dict[str, Running] = {}  # nodes that were started again

    def servers(self, first: str) -> list[str]:
        """All addresses, one of them first."""
        rest = [it["listen"] for name, it in self.nodes.items() if name != first]
        return [self.nodes[first]["listen"], *rest]

    def connect(self, first: str) -> planaria.Client:
        """A client that begins at one node and knows all."""
        return planaria.connect(self.servers(first), credentials=self.context.credentials)

    def directory(self, name: str) -> Path:
        """Where a node keeps what it has."""
        return Path(self.nodes[name]["dir"])

    def kill(self, name: str) -> None:
        """kill -9."""
        if name in self.again:
            self.again[name].kill()
        else:
            os.kill(self.nodes[name]["pid"], signal.SIGKILL)
            until(lambda: f"{name} ended" in self.up.said())

    def start(self, name: str, *options: object) -> None:
        """Start a killed node again."""
        words = ("node", "--dir", self.directory(name), *options)
        self.again[name] = self.processes.run(*words, log=f"{name}.log")
        assert self.again[name].ready()["listen"] == self.nodes[name]["listen"]

    def heal(self) -> None:
        """Wait until all nodes are there and every invariant holds."""

        async def judge() -> bool:
            async with Surveyor(self.context) as surveyor:
                found = await diagnose(surveyor, HEAL_SECONDS)
                return found.legitimate and found.nodes == len(self.nodes)

        until(lambda: asyncio.run(judge()), "legitimate", HEAL_SECONDS)


class Run:
    """Publishers, subscribers, and what each of them saw."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.acknowledged: list[bytes] = []
        self.faults_over = asyncio.Event()
        self.moved: dict[str, bool] = {}  # did who began at this node go elsewhere?
        self.read: list[list[planaria.Event]] = [[] for _ in range(SUBSCRIBERS)]

    async def publish(self, number: int, first: str) -> None:
        """Publish a few at a time while nodes are killed, and the rest afterwards at full speed."""
        share, at = PUBLICATIONS // PUBLISHERS, 0
        async with self.network.connect(first) as client:
            while at < share:
                over = self.faults_over.is_set()
                count = min(CHUNK if over else 10, share - at)
                if not over and at + count > share - CHUNK:
                    await self.faults_over.wait()
                    continue
                chunk = [b"%d-%d" % (number, at + more) for more in range(count)]
                ack = await client.publish_many(TOPIC, chunk)
                assert ack is not None
                self.acknowledged += chunk
                at += count
                await asyncio.sleep(0 if over else 0.1)
            self.moved[first] = client.server != self.network.nodes[first]["listen"]

    async def subscribe(self, number: int, first: str, ready: asyncio.Event) -> None:
        """Read until all that was published is here."""
        async with (
            self.network.connect(first) as client,
            client.subscribe(TOPIC, since="all") as events,
        ):
            await events.ready()
            ready.set()
            async for batch in events.batches():
                self.read[number] += batch
                if len(self.read[number]) >= PUBLICATIONS:
                    self.moved[first] = events.channel.address != self.network.servers(first)[0]
                    return

    def check(self) -> None:
        """Every acknowledged publication reached every subscriber once, in publisher order."""
        assert len(self.acknowledged) == PUBLICATIONS
        assert all(self.moved[name] for name in ("n3", "n4", "n6"))  # the faults had an effect
        for found in self.read:
            payloads = [event.payload for event in found]
            assert len(payloads) == len(set(payloads)) == PUBLICATIONS
            assert set(payloads) == set(self.acknowledged)
            for number in range(PUBLISHERS):
                mine = [it for it in payloads if it.startswith(b"%d-" % number)]
                assert mine == [b"%d-%d" % (number, at) for at in range(len(mine))]


def faults(network: Network, say: Callable[[str], None]) -> None:
    """Kill nodes one after the other; the network heals by itself before the next."""
    say("a member, back with its store")
    network.kill("n3")
    copy = network.home / "copy"
    shutil.copytree(network.directory("n3") / "store", copy)
    network.start("n3")
    network.heal()
    say("the same, back with an older copy of its store")
    network.kill("n3")
    shutil.rmtree(network.directory("n3") / "store")
    shutil.copytree(copy, network.directory("n3") / "store")
    network.start("n3")
    network.heal()
    say("another member, back with no store")
    network.kill("n4")
    shutil.rmtree(network.directory("n4") / "store")
    network.start("n4")
    network.heal()
    say("a supervisor")
    network.kill("n1")
    network.start("n1")
    network.heal()
    say("a supervisor, wiped")
    network.kill("n2")
    shutil.rmtree(network.directory("n2"))
    network.start(
        "n2", "--supervise", "--listen", network.nodes["n2"]["listen"],
        "--keys", network.home / "keys" / "n2", "--join", network.nodes["n1"]["listen"],
    )  # fmt: skip
    network.heal()
    say("the node of a publisher")
    network.kill("n6")
    network.start("n6")
    network.heal()


def test_clients_lose_nothing_and_get_nothing_twice_while_nodes_are_killed(
    processes: Processes,
) -> None:
    network = Network(processes, NODES, SUPERVISORS)

    async def main() -> None:
        run = Run(network)
        ready = [asyncio.Event() for _ in range(SUBSCRIBERS)]
        async with asyncio.timeout(400), asyncio.TaskGroup() as tasks:
            for number in range(SUBSCRIBERS):
                tasks.create_task(run.subscribe(number, f"n{3 + number}", ready[number]))
            for each in ready:
                await each.wait()
            for number in range(PUBLISHERS):
                tasks.create_task(run.publish(number, f"n{5 + number}"))
            await asyncio.to_thread(faults, network, print)
            run.faults_over.set()
        run.check()

    asyncio.run(main())
    network.heal()
    assert network.up.end(signal.SIGINT) == 0
