"""Who is where, and who supervises: learned over real sockets from any one node."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from time import time

import pytest
from msgspec import structs

from planaria.core.codec import Codec
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effects, LinkDown, Node, Send, Supervisors
from planaria.network.contacts import SERIAL_MAX, Contact, to_wire
from planaria.network.frames import Kind
from planaria.network.host import Host
from planaria.network.identity import found_cluster, handle_of, issue
from planaria.network.presence import Presence
from planaria.network.tls import Credentials

INTERVAL = 0.05


class Ping(Message, frozen=True, tag="presence-test.ping"):
    number: int


class Listener(Node):
    """Keeps who supervises and what it hears."""

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.heard: list[tuple[Message, NodeId | None]] = []
        self.supervisors: tuple[NodeId, ...] = ()
        self.commands: list[Command] = []

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        self.heard.append((message, sender))
        return []

    def on_command(self, command: Command) -> Effects:
        self.commands.append(command)
        if isinstance(command, Supervisors):
            self.supervisors = command.ids
        return []


class Line:
    """Hosts that are connected one with the next, and are all stopped at the end."""

    def __init__(self, credentials: list[Credentials] | None = None) -> None:
        self.credentials = credentials or []
        self.hosts: list[Host] = []

    def host(self, id: bytes | None = None, *, supervises: bool = False) -> Host:
        given = self.credentials[len(self.hosts)] if self.credentials else None
        id = id or (given.identity.id if given else secrets.token_bytes(16))
        host = Host(
            Listener(handle_of(id)),
            id,
            Codec((Ping,)),
            lambda _: None,
            credentials=given,
            interval=INTERVAL,
            supervises=supervises,
        )
        self.hosts.append(host)
        return host

    async def start(self, n: int, supervisor: int | None = None) -> list[Host]:
        """`n` hosts, each joined with the one before it."""
        door = ""
        for at in range(n):
            host = self.host(supervises=at == supervisor)
            address = await host.start("127.0.0.1:0")
            if door:
                await host.join(door)
            door = address
        return self.hosts

    async def stop(self) -> None:
        for host in self.hosts:
            await host.stop()


def run(
    test: Callable[[Line], Awaitable[None]], credentials: list[Credentials] | None = None
) -> None:
    async def main() -> None:
        line = Line(credentials)
        try:
            async with asyncio.timeout(60):
                await test(line)
        finally:
            await line.stop()

    asyncio.run(main())


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def supervisors(host: Host) -> tuple[NodeId, ...]:
    assert isinstance(host.node, Listener)
    return host.node.supervisors


def is_led_by(host: Host, chief: Host) -> bool:
    return supervisors(host) == (chief.node.id,)


def reaches(host: Host, other: Host, addresses: tuple[str, ...]) -> bool:
    known = host.contacts.get(other.node.id)
    return known is not None and known.addresses == addresses


def certified(tmp_path: Path, *roles: tuple[str, ...]) -> list[Credentials]:
    found_cluster(tmp_path / "keys", "demo")
    return [Credentials(issue(tmp_path / "keys", f"n{at}", its)) for at, its in enumerate(roles)]


@pytest.mark.parametrize("secure", [False, True])
def test_every_node_of_a_line_learns_of_the_supervisor_at_its_end(
    tmp_path: Path, *, secure: bool
) -> None:
    async def look(line: Line) -> None:
        hosts = await line.start(4, supervisor=3)
        for host in hosts:
            await until(partial(is_led_by, host, hosts[3]))
            assert host.contacts.get(hosts[3].node.id) is not None
        assert len(hosts[0].links) == 1

    roles = [("node",)] * 3 + [("node", "supervise")]
    run(look, certified(tmp_path, *roles) if secure else None)


def test_who_may_not_supervise_is_told_so_and_believed_by_nobody(tmp_path: Path) -> None:
    async def look(line: Line) -> None:
        one, two = await line.start(2)
        with pytest.raises(UsageError, match="has not the role 'supervise'"):
            line.host(supervises=True)
        own = one.presence.own
        assert own is not None
        claim = structs.replace(own, serial=own.serial + 1, supervises=True)
        forged = two.contacts.forged
        (link,) = one.links.values()
        link.say(Kind.CONTACTS, to_wire([claim.sign(line.credentials[0])]))
        await until(lambda: two.contacts.forged > forged)
        assert supervisors(two) == ()
        known = two.contacts.get(one.node.id)
        assert known is not None
        assert not known.supervises

    run(look, certified(tmp_path, ("node",), ("node",), ("node",)))


def test_a_supervisor_that_resigns_is_one_no_more_for_anybody() -> None:
    async def look(line: Line) -> None:
        hosts = await line.start(3, supervisor=2)
        await until(lambda: supervisors(hosts[0]) == (hosts[2].node.id,))
        hosts[2].presence.resign()
        await until(lambda: supervisors(hosts[0]) == ())

    run(look)


def test_a_node_that_comes_back_elsewhere_is_found_there() -> None:
    """The first node has an old contact, and asks the second when that leads nowhere."""

    async def move(line: Line) -> None:
        one, two = await line.start(2)
        third = line.host()
        await third.start("127.0.0.1:0")
        await third.join(two.hello.addresses[0])
        target = third.node.id
        one._perform([Send(target, Ping(1))], None)
        await until(lambda: third.node.heard == [(Ping(1), one.node.id)])  # type: ignore[attr-defined]
        old = third.hello.addresses
        await third.stop()
        await until(lambda: target not in one.links)
        again = line.host(third.hello.id)
        await again.start("127.0.0.1:0")
        assert again.hello.addresses != old
        await again.join(two.hello.addresses[0])
        await until(lambda: again.presence.own == two.contacts.get(target))
        known = one.contacts.get(target)
        assert known is not None
        assert known.addresses == old
        one._perform([Send(target, Ping(2))], None)
        await until(lambda: again.node.heard == [(Ping(2), one.node.id)])  # type: ignore[attr-defined]

    run(move)


def test_a_node_that_nobody_can_reach_is_given_up_without_waiting_for_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its port is closed, and nobody knows of another: whoever sends to it need not wait."""
    monkeypatch.setattr("planaria.network.dialling.DIAL_SECONDS", 3600.0)

    async def lose(line: Line) -> None:
        one, two = await line.start(2)
        await until(lambda: two.node.id in one.links and one.contacts.get(two.node.id))
        await two.stop()
        await until(lambda: two.node.id not in one.links)
        one._perform([Send(two.node.id, Ping(1))], None)
        await until(lambda: LinkDown(two.node.id, (Ping(1),)) in one.node.commands)  # type: ignore[attr-defined]
        assert not one._dialling._patience

    run(lose)


def test_other_addresses_of_a_running_node_are_learned() -> None:
    async def change(line: Line) -> None:
        hosts = await line.start(3, supervisor=2)
        moved = ("[::1]:7400", "host.example:7400")
        hosts[2].presence.appear(moved)
        for host in hosts[:2]:
            await until(partial(reaches, host, hosts[2], moved))

    run(change)


@pytest.mark.parametrize("secure", [False, True])
def test_a_node_whose_clock_was_set_back_exceeds_what_it_had_said(
    tmp_path: Path, *, secure: bool
) -> None:
    async def look(line: Line) -> None:
        one, two = await line.start(2)
        third = line.host()
        ahead = Contact(third.hello.id, ("old:1",), int(time() * 1000) + 10**9)
        if third.credentials:
            ahead = ahead.sign(third.credentials)
        assert two.contacts.learn(ahead)
        await third.start("127.0.0.1:0")
        await third.join(two.hello.addresses[0])
        await until(lambda: third.presence.own == two.contacts.get(third.node.id))
        assert third.presence.own is not None
        assert third.presence.own.serial > ahead.serial
        assert one.node.id in two.links

    run(look, certified(tmp_path, *[("node",)] * 3) if secure else None)


def test_a_false_serial_does_not_stop_a_node_from_renewing_its_contact() -> None:
    async def look(line: Line) -> None:
        one, two = await line.start(2)
        own = one.presence.own
        assert own is not None
        (link,) = two.links.values()
        link.say(Kind.CONTACTS, to_wire([structs.replace(own, serial=SERIAL_MAX)]))
        one.presence._due = 0.0
        await until(lambda: one.presence.own != own)
        assert one.presence.own is not None
        assert one.presence.own.sound

    run(look)


def test_contacts_are_renewed_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planaria.network.presence.RENEW_SECONDS", 0.1)

    async def look(line: Line) -> None:
        hosts = await line.start(3, supervisor=2)
        chief = hosts[2].node.id
        await until(lambda: hosts[0].contacts.get(chief) is not None)
        first = hosts[0].contacts.get(chief)
        assert first is not None
        await until(lambda: (hosts[0].contacts.get(chief) or first).serial > first.serial + 1)

    run(look)


def test_a_node_on_all_interfaces_must_say_how_it_is_reached() -> None:
    async def look(line: Line) -> None:
        host = line.host()
        for address in ("0.0.0.0:0", "[::]:0"):
            with pytest.raises(UsageError, match="advertise"):
                await host.start(address)
        with pytest.raises(UsageError, match="HOST:PORT"):
            await host.start("127.0.0.1:0", ["nowhere:port"])
        await line.host().start("0.0.0.0:0", ["node.example:7400", "[fd00::1]:7400"])
        other = line.host()
        bound = await other.start("127.0.0.1:0", ["node.example", "[fd00::1]:7400"])
        port = bound.rpartition(":")[2]
        assert other.hello.addresses == (f"node.example:{port}", "[fd00::1]:7400")

    run(look)


def test_nodes_talk_over_ipv6() -> None:
    async def look(line: Line) -> None:
        one, two = line.host(supervises=True), line.host()
        try:
            door = await one.start("[::1]:0")
        except UsageError:
            pytest.skip("this machine has no IPv6")
        assert door.startswith("[::1]:")
        await two.start("[::1]:0")
        await two.join(door)
        await until(lambda: supervisors(two) == (one.node.id,))
        known = two.contacts.get(one.node.id)
        assert known is not None
        assert known.addresses == (door,)

    run(look)


def test_a_supervisor_without_a_link_is_none_any_more_once_it_is_revoked(tmp_path: Path) -> None:
    found_cluster(tmp_path, "demo")
    mine = Credentials(issue(tmp_path, "n0"))
    chief = Credentials(issue(tmp_path, "n1", ("node", "supervise")))
    announced: list[tuple[NodeId, ...]] = []
    presence = Presence(mine.identity.id, mine, tuple, announced.append, time, supervises=False)
    contact = Contact(chief.identity.id, ("a:1",), 1, supervises=True).sign(chief)
    assert presence.contacts.learn(contact)
    presence.on_time(0.0)
    presence.on_time(1.0)
    assert {*announced} == {(chief.identity.handle,)}
    mine.revoked_since = {chief.identity.id: 0}.get
    presence.on_time(2.0)
    assert announced[-1] == ()
