"""Hosts that run a node which keeps all it is told, and a wire that can be looked at."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, cast

from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effects, Node, Send
from planaria.network.connection import Connection, Hello
from planaria.network.frames import Reader
from planaria.network.host import Host
from planaria.network.identity import handle_of

INTERVAL = 0.1


class Ping(Message, frozen=True, tag="driver-test.ping"):
    number: int
    body: bytes = b""


class Check(Message, frozen=True, tag="driver-test.check"):
    number: int


class Later(Message, frozen=True, tag="driver-test.later"):
    """A message of a version to come."""

    number: int


class Probe(Node):
    """Keeps what it hears and is told; sends what `answer` says to each message."""

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.heard: list[Message] = []
        self.commands: list[Command] = []
        self.timeouts = 0
        self.answer: Callable[[Message], Effects] = lambda _: ()

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        self.heard.append(message)
        return self.answer(message)

    def on_timeout(self) -> Effects:
        self.timeouts += 1
        return ()

    def on_command(self, command: Command) -> Effects:
        self.commands.append(command)
        return ()


def host(*messages: type[Message], **options: Any) -> Host:
    id = secrets.token_bytes(16)
    codec = Codec(messages or (Ping, Check))
    node = Probe(handle_of(id))
    return Host(node, id, codec, lambda _: None, bulk=(Ping,), interval=INTERVAL, **options)


def probe(one: Host) -> Probe:
    return cast(Probe, one.node)


def send(one: Host, *messages: Message, to: Host) -> None:
    one._perform([Send(to.node.id, message) for message in messages], None)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


def run(test: Callable[..., Awaitable[None]], *all: Host | Callable[[], Host]) -> None:
    """Run a test with hosts that are connected to the first of them."""

    async def main() -> None:
        made = [it() if callable(it) else it for it in all]
        try:
            doors = [await one.start("127.0.0.1:0") for one in made]
            for one in made[1:]:
                await one.join(doors[0])
            await until(lambda: len(made[0].links) == len(made) - 1)
            await test(*made)
        finally:
            for one in made:
                await one.stop()

    asyncio.run(main())


def numbers(one: Host) -> list[int]:
    return [it.number for it in probe(one).heard if isinstance(it, Ping | Check)]


class Wire:
    """A socket that keeps what is written, and tells whether it is read from."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.reading = self.open = True

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return not self.open

    def close(self) -> None:
        self.open = False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def frames(self) -> list[tuple[int, bytes]]:
        return list(Reader().feed(b"".join(self.written)))


def wired(one: Host) -> tuple[Connection, Wire]:
    """A link of a host to nobody, over a wire that can be looked at."""
    wire, link = Wire(), Connection(one, dialled=True)
    link._transport = cast(asyncio.Transport, wire)
    link.theirs = Hello((1,), secrets.token_bytes(16), one.hello.cluster)
    one.links[link.peer] = link
    return link, wire
