"""Real processes in all overlays at once: laid down with the tool, killed, started again."""

import asyncio
import subprocess
import sys
from typing import Any

import planaria
from overlays_lab import payloads
from planaria.network.context import Context
from planaria.network.doctor import diagnose
from planaria.network.survey import Surveyor
from process_lab import PATIENCE, Processes, Running, environment, status

OVERLAYS = ("ring", "gossip", "content", "mobile")


class Network:
    """Four nodes in a row of neighbours; the first two supervise."""

    def __init__(self, processes: Processes) -> None:
        self.processes, self.running = processes, list[Running]()
        self.ready: list[dict[str, Any]] = []
        for number in range(4):
            before = self.ready[-1]["listen"] if self.ready else "127.0.0.1:9"
            words: list[object] = ["--insecure", "--listen", "127.0.0.1:0", "--interval", 0.1]
            words += ["--http", "127.0.0.1:0", "--link", before, "--name", f"n{number}"]
            words += ["--join", before] if self.ready else []
            self.start(number, *words, *(["--supervise"] if number < 2 else []))

    def start(self, number: int, *words: object) -> None:
        """Start a node, or start it again where it was."""
        home = self.processes.home / f"n{number}"
        one = self.processes.run("node", "--dir", home, *words, log=f"n{number}.log")
        self.running[number:], self.ready[number:] = (
            [one, *self.running[number + 1 :]],
            [one.ready(), *self.ready[number + 1 :]],
        )

    def at(self, number: int) -> planaria.Client:
        """A client of one node."""
        return planaria.connect(self.ready[number]["listen"], insecure=True)

    def tool(self, *words: str) -> str:
        """What a tool prints that must succeed."""
        server = ("-s", self.ready[0]["listen"], "--insecure")
        return subprocess.run(
            [sys.executable, "-m", "planaria", *words, *server], check=True, text=True,
            env=environment(self.processes.home), capture_output=True, timeout=PATIENCE,
        ).stdout  # fmt: skip

    async def heal(self) -> None:
        """Wait until `doctor` finds nothing wrong in any overlay."""
        context = Context(servers=tuple(it["listen"] for it in self.ready), insecure=True)
        async with Surveyor(context) as surveyor:
            found = await diagnose(surveyor, PATIENCE)
        assert found.legitimate, found.findings


def test_a_killed_node_comes_back_in_every_overlay(processes: Processes) -> None:
    network = Network(processes)
    assert "is in gossip" in network.tool("topic", "set", "gossip", "--overlay", "gossip")
    explicit = {"content": "content", "mobile": "mobile"}  # the others have a charter, or need none

    async def main() -> None:
        async with network.at(3) as reader, network.at(0) as publisher:
            subscriptions = {it: reader.subscribe(it, overlay=explicit.get(it)) for it in OVERLAYS}
            for events in subscriptions.values():
                await events.ready()
            await network.heal()  # where there is no history, those who join meanwhile may miss it
            for overlay, events in subscriptions.items():
                await publisher.publish(overlay, b"first", overlay=explicit.get(overlay))
                assert await payloads(events, 1) == [b"first"], overlay
            network.running[2].kill()
            for overlay in OVERLAYS:
                await publisher.publish(overlay, b"meanwhile", overlay=explicit.get(overlay))
            await asyncio.to_thread(network.start, 2)
            for overlay in ("ring", "mobile"):  # they lose nothing that was acknowledged
                assert await payloads(subscriptions[overlay], 1) == [b"meanwhile"]
            await network.heal()
            for overlay, events in subscriptions.items():
                await publisher.publish(overlay, b"then", overlay=explicit.get(overlay))
                got = await payloads(events, 1)
                while got == [b"meanwhile"]:  # it may be late, or lost, where that is all
                    got = await payloads(events, 1)
                assert got == [b"then"], overlay
                await events.close()

    asyncio.run(asyncio.wait_for(main(), 3 * PATIENCE))
    assert "mobile" in status(network.ready[2]["http"])["overlays"]
    assert network.running[2].end() == 0
    network.start(2)
    asyncio.run(asyncio.wait_for(published_from(network, 2, explicit), 3 * PATIENCE))
    network.tool("pub", "gossip", "from the tool")
    assert network.running[3].end() == 0


async def published_from(network: Network, number: int, explicit: dict[str, str]) -> None:
    """A node that left in good order and came back serves all overlays."""
    async with network.at(number) as one, network.at(3) as reader:
        for overlay in OVERLAYS:
            async with reader.subscribe(overlay, overlay=explicit.get(overlay)) as events:
                await events.ready()
                await network.heal()
                await one.publish(overlay, b"again", overlay=explicit.get(overlay))
                assert await payloads(events, 1) == [b"again"], overlay
