"""Incidents of the gallery that make sense on processes: killed, wiped and garbled, in one run."""

import asyncio
import shutil
from contextlib import AsyncExitStack

import pytest

import planaria
from planaria.network.store.opening import FILE
from process_lab import Processes, UpNetwork, alive, status

TOPIC = "news"
MEMBERS = ("n3", "n4", "n5")
ROUND = 4  # publications after each incident


def no_start(network: UpNetwork) -> None:
    """The store of a node does not even look like one."""
    network.kill("n5")
    for name in (FILE, f"{FILE}-wal"):
        file = network.directory("n5") / "store" / name
        file.write_bytes(bytes(range(256)) * 32 + file.read_bytes()[8192:])
    network.start("n5")
    assert "set aside" in network.again["n5"].said()


def serving(network: UpNetwork) -> str:
    """Who serves the topic."""
    shown = {name: status(it["http"]).get("topics", {}) for name, it in network.nodes.items()}
    return next(name for name, its in shown.items() if its.get(TOPIC, {}).get("served"))


def failover(network: UpNetwork) -> None:
    """The supervisor that serves the topic is gone."""
    network.kill(serving(network))


def same_id(network: UpNetwork) -> None:
    """A node comes back under its own id, with nothing, before anybody notices."""
    network.kill("n4")
    shutil.rmtree(network.directory("n4") / "store")
    network.start("n4")


def test_processes_heal_from_incidents_and_lose_nothing(processes: Processes) -> None:
    network = UpNetwork(processes, 5, 2)
    expected: list[bytes] = []

    async def publish(client: planaria.Client, about: str) -> None:
        for number in range(ROUND):
            expected.append(f"{about} {number}".encode())
            ack = await client.publish(TOPIC, expected[-1])
            assert ack.copies >= 2, "so that one of them may lose its disk"

    async def main() -> None:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(network.connect(it)) for it in MEMBERS]
            tails = [it.subscribe(TOPIC, since="all") for it in clients]
            for tail in tails:
                await tail.ready()
            await publish(clients[0], "before")
            for client, incident in zip(clients, (no_start, failover, same_id), strict=True):
                await asyncio.to_thread(incident, network)
                await publish(client, incident.__name__)
            for tail in tails:
                found: list[bytes] = []
                while len(found) < len(expected):
                    found += [it.payload for it in await anext(tail.batches())]
                assert sorted(found) == sorted(expected)
            with pytest.raises(TimeoutError):  # nothing comes again
                await asyncio.wait_for(anext(tails[0].batches()), 1)

    asyncio.run(asyncio.wait_for(main(), 200))
    network.start(next(name for name in network.nodes if not alive(network.pid(name))))
    network.heal()
