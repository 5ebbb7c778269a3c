"""The simulator's protocol classes on real sockets: they join, deliver, and survive lost links."""

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from planaria.core.codec import Codec
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Busy,
    Command,
    Deliver,
    Effect,
    Effects,
    LinkDown,
    LinkUp,
    Node,
    Persist,
    Publish,
    Send,
    Subscribe,
)
from planaria.network.connection import Connection
from planaria.network.host import Host
from planaria.network.identity import Refused, found_cluster, handle_of, issue
from planaria.network.tls import Credentials
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.supervisor import Supervisor

INTERVAL = 0.1
TOPIC = "news"


async def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something that must come; how long it takes is not judged."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


class Network:
    """A supervisor and some peers in one process, each with a host and a port of its own."""

    def __init__(self, n: int, credentials: list[Credentials] | None = None) -> None:
        ids = [secrets.token_bytes(16) for _ in range(n + 1)]
        if credentials:
            ids = [it.identity.id for it in credentials]
        self.supervisor = handle_of(ids[0])
        self.given: dict[NodeId, list[Effect]] = {handle_of(id): [] for id in ids}
        codec = Codec(RingOverlay.messages)
        self.hosts = [
            Host(
                self._node(handle_of(id)),
                id,
                codec,
                self.given[handle_of(id)].append,
                bulk=(Arc, Flood),
                interval=INTERVAL,
                credentials=credentials[at] if credentials else None,
            )
            for at, id in enumerate(ids)
        ]

    def _node(self, id: NodeId) -> Node:
        if id == self.supervisor:
            return Supervisor(id, (id,))
        return Peer(id, (self.supervisor,), random.Random(id))

    async def start(self) -> None:
        door = await self.hosts[0].start("127.0.0.1:0")
        for host in self.hosts[1:]:
            await host.start("127.0.0.1:0")
            await host.join(door)
            host.command(Subscribe(TOPIC))
        await until(lambda: self.legitimate())

    async def stop(self) -> None:
        for host in self.hosts:
            await host.stop()

    def legitimate(self) -> bool:
        overlay = RingOverlay()
        overlay.supervisors = (self.supervisor,)
        states = {host.node.id: host.node.state() for host in self.hosts}
        return not overlay.violations(states, [])

    def holds(self, host: Host, count: int) -> bool:
        return len(self.payloads(host)) >= count

    def payloads(self, host: Host) -> list[bytes]:
        given = [it for it in self.given[host.node.id] if isinstance(it, Deliver)]
        return [it.payload for effect in given for it in effect.publications]


@asynccontextmanager
async def stopping(*hosts: Host) -> AsyncIterator[None]:
    """Stop these hosts in the end, also where the test fails."""
    try:
        yield
    finally:
        for host in hosts:
            await host.stop()


def run(
    n: int, test: Callable[[Network], Awaitable[None]], credentials: list[Credentials] | None = None
) -> None:
    async def main() -> None:
        network = Network(n, credentials)
        try:
            await network.start()
            await test(network)
        finally:
            await network.stop()

    asyncio.run(main())


def test_a_ring_forms_and_delivers_once_over_plain_sockets() -> None:
    async def publish(network: Network) -> None:
        said = [b"%d" % number for number in range(50)]
        for payload in said:
            network.hosts[1].command(Publish(TOPIC, payload))
        for host in network.hosts[1:]:
            await until(partial(network.holds, host, len(said)))
            assert sorted(network.payloads(host)) == sorted(said)

    run(5, publish)


def test_a_ring_forms_over_tls_and_ids_come_from_certificates(tmp_path: Path) -> None:
    found_cluster(tmp_path / "keys", "demo")
    credentials = [Credentials(issue(tmp_path / "keys", f"n{at}")) for at in range(4)]

    async def look(network: Network) -> None:
        network.hosts[2].command(Publish(TOPIC, b"secret"))
        for host in network.hosts[1:]:
            await until(partial(network.holds, host, 1))
            assert network.payloads(host) == [b"secret"]

    run(3, look, credentials)


def test_a_peer_that_is_gone_is_noticed_and_the_ring_closes_again() -> None:
    async def lose(network: Network) -> None:
        lost = network.hosts.pop()
        await lost.stop()
        assert not network.legitimate()
        await until(network.legitimate)
        network.hosts[1].command(Publish(TOPIC, b"after"))
        for host in network.hosts[1:]:
            await until(partial(network.holds, host, 1))
            assert network.payloads(host) == [b"after"]

    run(4, lose)


def test_garbage_hurts_only_its_own_connection() -> None:
    async def attack(network: Network) -> None:
        host = network.hosts[1]
        (address,) = host.hello.addresses
        name, _, port = address.rpartition(":")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\xff" * 1000):
            reader, writer = await asyncio.open_connection(name, int(port))
            writer.write(garbage)
            answer = await reader.read()
            assert b"frame of" in answer or b"must say hello" in answer
            writer.close()
        assert network.legitimate()
        host.command(Publish(TOPIC, b"unhurt"))
        await until(lambda: network.payloads(network.hosts[2]) == [b"unhurt"])

    run(2, attack)


def test_another_clusters_node_and_another_wire_are_refused_with_a_line() -> None:
    async def main() -> None:
        (ours,), (other,) = Network(0).hosts, Network(0).hosts
        async with stopping(other, ours):
            door = await ours.start("127.0.0.1:0")
            for wire, cluster in ((1, "another"), (9, "planaria")):
                other.hello = type(other.hello)((wire,), secrets.token_bytes(16), cluster)
                with pytest.raises(UsageError, match="does not let us in"):
                    await other.join(door)

    asyncio.run(main())


def certified(tmp_path: Path, cluster: str) -> tuple[Host, Credentials]:
    found_cluster(tmp_path / cluster, cluster)
    credentials = Credentials(issue(tmp_path / cluster, "one"))
    id = credentials.identity.id
    node = Probe(handle_of(id))
    return Host(node, id, Codec((Ping,)), lambda _: None, credentials=credentials), credentials


def test_who_has_no_certificate_of_ours_leaves_nothing_behind(tmp_path: Path) -> None:
    async def main() -> None:
        ours, _ = certified(tmp_path, "ours")
        theirs, _ = certified(tmp_path, "theirs")
        async with stopping(theirs, ours):
            door = await ours.start("127.0.0.1:0")
            with pytest.raises(UsageError, match="cannot trust"):
                await theirs.join(door)
            _, writer = await asyncio.open_connection(*door.split(":"))
            writer.write(b"no TLS at all")
            writer.close()
            await asyncio.sleep(0.1)
            assert ours._connections == theirs._connections == set()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_who_says_another_id_than_its_certificate_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        ours, _ = certified(tmp_path, "ours")
        liar = Credentials(issue(tmp_path / "ours", "liar"))
        other = Host(
            Probe(handle_of(bytes(16))), bytes(16), Codec((Ping,)), lambda _: None, credentials=liar
        )
        async with stopping(other, ours):
            door = await ours.start("127.0.0.1:0")
            with pytest.raises(Refused, match="another id than its certificate"):
                await other.join(door)
            assert ours.links == {}
            assert ours.node.commands == []  # type: ignore[attr-defined]

    asyncio.run(asyncio.wait_for(main(), 30))


class Ping(Message, frozen=True, tag="network-test.ping"):
    number: int
    body: bytes = b""


class Probe(Node):
    """Keeps what it is told."""

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.heard: list[tuple[Message, NodeId | None]] = []
        self.commands: list[Command] = []

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        self.heard.append((message, sender))
        return []

    def on_command(self, command: Command) -> Effects:
        self.commands.append(command)
        return []


class ProbeHost(Host):
    """A host whose node keeps what it is told."""

    node: Any


Commits = list[Callable[[Exception | None], object]]


def linked(
    test: Callable[[ProbeHost, ProbeHost], Awaitable[None]], commits: Commits | None = None
) -> None:
    """Run a test with two hosts, of which the second joined the first."""
    ids = [secrets.token_bytes(16) for _ in range(2)]

    async def main() -> None:
        one, two = (
            ProbeHost(
                Probe(handle_of(id)),
                id,
                Codec((Ping,)),
                lambda _: None,
                bulk=(Ping,),
                interval=INTERVAL,
                commit=None if commits is None else commits.append,
            )
            for id in ids
        )
        async with stopping(two, one):
            door = await one.start("127.0.0.1:0")
            await two.start("127.0.0.1:0")
            assert await two.join(door) == one.node.id
            await until(lambda: two.node.id in one.links)
            await test(one, two)

    asyncio.run(main())


def test_the_sender_is_the_end_of_the_link_and_both_are_told_of_it() -> None:
    async def send(one: ProbeHost, two: ProbeHost) -> None:
        two._perform([Send(one.node.id, Ping(7))], None)
        await until(lambda: one.node.heard == [(Ping(7), two.node.id)])
        assert LinkUp(two.node.id) in one.node.commands
        await two.stop()
        await until(lambda: LinkDown(two.node.id) in one.node.commands)

    linked(send)


def test_memory_is_given_back_once_when_links_were_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[None] = []
    monkeypatch.setattr("planaria.network.host.TRIM_SECONDS", 0.2)
    monkeypatch.setattr("planaria.network.host.give_memory_back", lambda: given.append(None))

    async def close(one: ProbeHost, two: ProbeHost) -> None:
        for _ in range(3):
            _, writer = await asyncio.open_connection(*two.hello.addresses[0].split(":"))
            writer.close()
        await until(lambda: given)
        await asyncio.sleep(0.3)
        assert len(given) == 1

    linked(close)


def test_what_follows_persist_waits_for_the_disk_and_is_never_sent_if_it_fails() -> None:
    commits: Commits = []

    async def persist(one: ProbeHost, two: ProbeHost) -> None:
        target = one.node.id
        two._perform([Send(target, Ping(1)), Persist(), Send(target, Ping(2))], None)
        two._perform([Persist(), Send(target, Ping(3))], None)
        await until(lambda: [it for it, _ in one.node.heard] == [Ping(1)])
        commits[1](OSError("disk full"))
        commits[0](None)
        await until(lambda: [it for it, _ in one.node.heard] == [Ping(1), Ping(2)])
        await asyncio.sleep(3 * INTERVAL)
        assert [it for it, _ in one.node.heard] == [Ping(1), Ping(2)]

    linked(persist, commits)


def test_a_reader_that_reads_nothing_makes_its_sender_busy_and_no_bigger() -> None:
    async def crowd(one: ProbeHost, two: ProbeHost) -> None:
        socket = one.links[two.node.id]._transport
        assert socket is not None
        socket.pause_reading()
        for number in range(100):
            two._perform([Send(one.node.id, Ping(number, bytes(1 << 16)))], None)
            await asyncio.sleep(0)
        assert Busy(one.node.id) in two.node.commands
        assert two.dropped > 0
        link = two.links[one.node.id].link
        assert link.bulk.bytes <= link.bulk.bytes_max
        socket.resume_reading()
        await until(lambda: any(type(it).__name__ == "Ready" for it in two.node.commands))

    linked(crowd)


def test_what_was_not_acknowledged_comes_back_with_the_loss_of_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lose(one: ProbeHost, two: ProbeHost) -> None:
        monkeypatch.setattr(one, "received", lambda *_: None)  # takes frames, finishes none
        two._perform([Send(one.node.id, Ping(1)), Send(one.node.id, Ping(2))], None)
        await asyncio.sleep(2 * INTERVAL)
        far: Connection = one.links[two.node.id]
        far.close("gone")
        await until(lambda: LinkDown(one.node.id, (Ping(1), Ping(2))) in two.node.commands)

    linked(lose)


def test_a_message_that_cannot_be_stored_ends_its_link_and_is_not_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commits: Commits = []

    async def refuse(one: ProbeHost, two: ProbeHost) -> None:
        monkeypatch.setattr(one.node, "on_message", lambda *_: [Persist()])
        two._perform([Send(one.node.id, Ping(1))], None)
        await until(lambda: commits)
        commits[0](OSError("disk full"))
        await until(lambda: LinkDown(one.node.id, (Ping(1),)) in two.node.commands)

    linked(refuse, commits)
