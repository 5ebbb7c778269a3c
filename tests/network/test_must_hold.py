"""What must hold of a live network, with real processes that are killed while clients use it."""

import asyncio
import os
import resource
import shutil
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

import planaria
from process_lab import Processes, UpNetwork, status

TOPIC = "flights/delays"
NODES, SUPERVISORS = 8, 2
PUBLISHERS, SUBSCRIBERS = 4, 3
PUBLICATIONS = 20_000
CHUNK = 250


class Run:
    """Publishers, subscribers, and what each of them saw."""

    def __init__(self, network: UpNetwork) -> None:
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


def faults(network: UpNetwork, say: Callable[[str], None]) -> None:
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
    network = UpNetwork(processes, NODES, SUPERVISORS)

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


async def read(events: planaria.Subscription[planaria.Event], count: int) -> list[planaria.Event]:
    found: list[planaria.Event] = []
    async for batch in events.batches():
        found += batch
        if len(found) >= count:
            break
    return found


def test_full_disks_make_publishers_wait_and_lose_nothing(processes: Processes) -> None:
    network = UpNetwork(processes, 3, 1)
    members = ("n1", "n2", "n3")

    def limit(size: int) -> None:
        for name in members:
            resource.prlimit(
                network.pid(name), resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)
            )

    def stalled() -> bool:
        stores = [status(network.nodes[name]["http"]).get("store", {}) for name in members]
        return any(it.get("stalled") for it in stores)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(network.connect(name)) for name in members]
            tails = [client.subscribe(TOPIC, since="all") for client in clients]
            for tail in tails:
                await tail.ready()
            large = bytes(1 << 20)
            await clients[0].publish(TOPIC, large)
            limit(1 << 20)  # of one file: what a record of a mebibyte needs is more
            waiting = [asyncio.ensure_future(clients[0].publish(TOPIC, large)) for _ in range(4)]
            async with asyncio.timeout(60):
                while not await asyncio.to_thread(stalled):
                    await asyncio.sleep(0.05)
            assert not all(it.done() and it.exception() is None for it in waiting)
            limit(resource.RLIM_INFINITY)
            results = await asyncio.gather(*waiting, return_exceptions=True)
            refused = [it for it in results if isinstance(it, BaseException)]
            assert all(isinstance(it, planaria.CapacityExceeded) for it in refused), refused
            acknowledged = len(waiting) - len(refused)
            await clients[0].publish(TOPIC, b"after")
            for tail in tails:
                found = await read(tail, acknowledged + 2)
                assert len({one.id for one in found}) == len(found)
                assert found[-1].payload == b"after"

    asyncio.run(asyncio.wait_for(main(), 200))
    network.heal()


def test_a_mebibyte_travels_and_what_is_larger_is_refused_in_one_line(processes: Processes) -> None:
    network = UpNetwork(processes, 2, 1)

    async def main() -> None:
        async with network.connect("n1") as one, network.connect("n2") as two:
            tail = two.subscribe(TOPIC)
            await tail.ready()
            payload = os.urandom(1 << 20)
            await one.publish(TOPIC, payload)
            assert [it.payload for it in await read(tail, 1)] == [payload]
            with pytest.raises(planaria.UsageError, match=r"payload of \d+ bytes: at most"):
                await one.publish(TOPIC, bytes(2 << 20))

    asyncio.run(asyncio.wait_for(main(), 100))
