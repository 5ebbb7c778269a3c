"""Ring nodes on real sockets: each is told one address, and learns of all supervisors by itself."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from planaria.core.codec import Codec
from planaria.core.node import Deliver, Effect, Joined, Publish, Subscribe, Unsubscribe
from planaria.network.host import Host
from planaria.network.identity import found_cluster, issue
from planaria.network.tls import Credentials
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.placement import preference

INTERVAL = 0.1
SECRET = b"the cluster's own"


class Network:
    """Two supervisors and four nodes, each with a host of its own; `hosts[1]` knows all others."""

    def __init__(self, keys: Path) -> None:
        found_cluster(keys, "demo")
        self.given: dict[int, list[Effect]] = {}
        self.hosts = [self._host(keys, at) for at in range(6)]
        self.gone: list[Host] = []

    def _host(self, keys: Path, at: int) -> Host:
        supervise = at < 2
        roles = ("node", "supervise") if supervise else ("node",)
        credentials = Credentials(issue(keys, f"n{at}", roles))
        id = credentials.identity.handle
        self.given[id] = []
        return Host(
            RingNode(id, (), random.Random(id), supervise=supervise, secret=SECRET),
            credentials.identity.id,
            Codec(RingOverlay.messages),
            self.given[id].append,
            bulk=(Arc, Flood),
            credentials=credentials,
            interval=INTERVAL,
            supervises=supervise,
        )

    async def start(self) -> None:
        door = ""
        for host in (self.hosts[5], *self.hosts[:5]):
            address = await host.start("127.0.0.1:0")
            if door:
                await host.join(door)
            door = door or address

    async def stop(self) -> None:
        for host in (*self.hosts, *self.gone):
            await host.stop()

    async def kill(self, host: Host) -> None:
        self.hosts.remove(host)
        self.gone.append(host)
        await host.stop()

    def legitimate(self, topic: str) -> bool:
        states = {host.node.id: host.node.state() for host in self.hosts}
        known = node(self.hosts[0]).supervisors
        return not topic_violations(topic, known, states, [], SECRET)

    def has(self, host: Host, topic: str, count: int) -> bool:
        return len(self.payloads(host, topic)) == count

    def payloads(self, host: Host, topic: str) -> list[bytes]:
        given = [it for it in self.given[host.node.id] if isinstance(it, Deliver)]
        return [it.payload for one in given if one.topic == topic for it in one.publications]


def node(host: Host) -> RingNode:
    assert isinstance(host.node, RingNode)
    return host.node


def knows(host: Host, supervisors: list[int]) -> bool:
    return sorted(node(host).supervisors) == supervisors


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


def run(keys: Path, test: Callable[[Network], Awaitable[None]]) -> None:
    async def main() -> None:
        network = Network(keys)
        try:
            async with asyncio.timeout(120):
                await network.start()
                await test(network)
        finally:
            await network.stop()

    asyncio.run(main())


def test_topics_go_on_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    async def lose(network: Network) -> None:
        chiefs = sorted(host.node.id for host in network.hosts[:2])
        for host in network.hosts:
            await until(partial(knows, host, chiefs))
        first = network.hosts[0].node.id
        names = (f"news/{number}" for number in range(99))
        topic = next(it for it in names if preference(it, chiefs, SECRET)[0] == first)
        for host in network.hosts[1:]:
            host.command(Subscribe(topic))
        await until(partial(network.legitimate, topic))
        network.hosts[3].command(Publish(topic, b"before"))
        await network.kill(network.hosts[0])
        network.hosts[4].command(Publish(topic, b"after"))
        for host in network.hosts:
            await until(partial(network.has, host, topic, 2))
        assert not network.legitimate(topic)
        await until(partial(network.legitimate, topic))

    run(tmp_path / "keys", lose)


def test_a_subscription_with_a_wildcard_finds_a_topic_that_is_created_later(
    tmp_path: Path,
) -> None:
    async def look(network: Network) -> None:
        watcher, author, other = network.hosts[5], network.hosts[2], network.hosts[3]
        author.command(Subscribe("weather/europe"))
        await until(partial(network.legitimate, "weather/europe"))
        author.command(Publish("weather/europe", b"rain"))
        watcher.command(Subscribe("weather/#"))
        given = network.given[watcher.node.id]
        await until(lambda: Joined("weather/#") in given)
        assert "weather/europe" in node(watcher).peer.topics
        await until(lambda: network.payloads(watcher, "weather/europe") == [b"rain"])
        other.command(Subscribe("weather/asia/east"))
        other.command(Publish("weather/asia/east", b"sun"))
        other.command(Subscribe("sports"))
        await until(lambda: network.payloads(watcher, "weather/asia/east") == [b"sun"])
        directory = node(watcher).directory
        await until(
            lambda: directory.topics("#") == ["sports", "weather/asia/east", "weather/europe"]
        )
        assert sorted(node(watcher).peer.topics) == ["weather/asia/east", "weather/europe"]
        await until(lambda: directory.members("sports") == ([other.node.id], 1))
        watcher.command(Unsubscribe("weather/#"))
        await until(lambda: not node(watcher).peer.topics)
        await until(partial(network.legitimate, "weather/europe"))

    run(tmp_path / "keys", look)
