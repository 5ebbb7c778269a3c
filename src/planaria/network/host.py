"""The driver on a real network: calls a node with messages, time and commands, does its effects.

Receiving never waits for sending: a link that is full drops what is sent over it, the node is told
`Busy`, and catches the other end up later. Timeouts are this driver's, fair however busy it is.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage, UnknownMessage, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Busy,
    Clock,
    Command,
    Effect,
    Effects,
    LinkDown,
    LinkUp,
    Node,
    Notice,
    Persist,
    Ready,
    Send,
    Supervisors,
)
from planaria.network.connection import BEAT_SECONDS, CLIENT, VERSIONS, Connection, Handler, Hello
from planaria.network.contacts import format_address, is_unspecified, parse_address
from planaria.network.dialling import Dialling
from planaria.network.door import Door
from planaria.network.frames import Kind
from planaria.network.identity import CLUSTER, Refused, handle_of
from planaria.network.link import Task
from planaria.network.loop import give_memory_back
from planaria.network.presence import Presence
from planaria.network.tls import Credentials
from planaria.network.unreached import why
from planaria.network.wall import WallClock

INTERVAL_SECONDS = 0.5
SILENCE_SECONDS = 4.0  # without a frame, after which a peer is gone
CONNECTIONS_MAX = 4096  # accepted: nodes, clients and whoever has not said hello yet
STOP_SECONDS = 1.0  # for the other ends to say goodbye
OTHERS_SHARE = 3  # times as long as a timeout took: to hear others before the next
TRIM_SECONDS = 10.0  # from the close of a connection, by when its buffers are free, and many more

log = logging.getLogger("planaria.network")

Application = Callable[[Effect], None]
Done = Callable[[Exception | None], None]
Commit = Callable[[Callable[[Exception | None], object]], None]


class Connect(Protocol):
    """Makes one end of a connection."""

    def __call__(self, handler: Handler, *, dialled: bool) -> Connection:
        """An end that is served by `handler`."""


class Host:
    """Runs one node. `application` is given every effect that is not for the network.

    `commit` makes what the node has stored so far durable and calls back; without it nothing is
    durable and `Persist` is done at once.
    """

    def __init__(
        self,
        node: Node,
        id: bytes,
        codec: Codec,
        application: Application,
        *,
        bulk: Sequence[type[Message]] = (),
        cluster: str = CLUSTER,
        credentials: Credentials | None = None,
        commit: Commit | None = None,
        interval: float = INTERVAL_SECONDS,
        supervises: bool = False,
        connections_max: int = CONNECTIONS_MAX,
        connect: Connect = Connection,
    ) -> None:
        if handle_of(id) != node.id:
            raise UsageError(f"node {node.id} is not the one that its id {id.hex()} names")
        self.node, self.codec, self.application = node, codec, application
        self.credentials, self.interval = credentials, interval
        self.connections_max = connections_max
        self.wall = WallClock()
        self.hello = Hello(VERSIONS, id, cluster)
        self.links: dict[NodeId, Connection] = {}
        self.presence = Presence(
            id, credentials, self.links.values, self._supervised, self.wall, supervises=supervises
        )
        self.contacts = self.presence.contacts
        self.clients: Handler | None = None  # serves the connections of clients
        self.late = self.malformed = self.unknown = self.dropped = 0
        self.sent_messages = self.sent_bytes = 0  # to other nodes
        self._commit = commit
        self._bulk = frozenset(bulk)
        self._connect = connect
        self._dialling = Dialling(self._dialled, self, self.contacts, self.links, self._gave_up)
        self._touched: dict[Connection, None] = {}  # with something to write
        self._connections: set[Connection] = set()
        self._door: Door | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._beating: asyncio.TimerHandle | None = None
        self._trimming: asyncio.TimerHandle | None = None  # if a connection was closed lately
        self._stopped = asyncio.Event()

    # Life

    async def start(self, address: str, advertise: Sequence[str] = ()) -> str:
        """Listen, and begin the node's timeouts; returns the address that was bound."""
        loop = asyncio.get_running_loop()
        host, port = parse_address(address)
        if is_unspecified(host) and not advertise:
            raise UsageError(f"{address} is every address of this machine: advertise one of them")
        named = [parse_address(it, port) for it in advertise]
        context = self.credentials.context(server=True) if self.credentials else None
        try:
            self._door = Door(lambda: self._connect(self, dialled=False), context)
            where = await self._door.open(host, port)
        except OSError as error:
            reason = f"cannot listen on {address}: {why(error)}"
            raise UsageError(f"{reason}; name another with --listen") from None
        bound = format_address(*where)
        advertised = tuple(format_address(name, at or where[1]) for name, at in named)
        self.hello = Hello(VERSIONS, self.hello.id, self.hello.cluster, advertised or (bound,))
        self.presence.appear(self.hello.addresses)
        self._tick(loop.time())  # so the node knows the time before it is asked for anything
        self._beat(loop.time())
        return bound

    async def stop(self) -> None:
        """End the door, timeouts, dials and links; returns when nothing of them is left."""
        self._stopped.set()
        if self._door is not None:
            await self._door.close()  # first: who comes now finds another node at once
        for timer in (self._timer, self._beating, self._trimming):
            if timer is not None:
                timer.cancel()
        await self._dialling.stop()
        for connection in list(self._connections):
            connection.close("this node stops")
        loop = asyncio.get_running_loop()
        patience = loop.time() + STOP_SECONDS
        while self._connections:
            await asyncio.sleep(0.01)
            if loop.time() > patience:
                for connection in list(self._connections):
                    connection.abort()

    async def join(self, address: str) -> NodeId:
        """Connect to a node of which only the address is known; returns who it is.

        Raises Refused if one of the two ends will not have the other, UsageError if nobody answers.
        """
        connection = await self._dialling.dial(address)
        while not connection.admitted and connection in self._connections:
            await asyncio.sleep(0.01)
        if connection.theirs is not None and connection.peer in (self.node.id, *self.links):
            return connection.peer
        said = f"{address} does not let us in: {connection.reason}"
        if connection.theirs is None and not connection.refused:
            said += " before it said hello (does it want TLS?)"
        raise Refused(said) if connection.refused else UsageError(said)

    @property
    def queued(self) -> int:
        """How many messages wait for nodes that are looked for or dialled."""
        return len(self._dialling)

    def command(self, command: Command) -> None:
        """The local application asks; what the node refuses is raised to it."""
        self._perform(self.node.on_command(command), None)

    def _dialled(self) -> Connection:
        return self._connect(self, dialled=True)

    # What connections tell

    def connected(self, connection: Connection) -> None:
        """There is a socket more; whoever is one too many is told so."""
        self._connections.add(connection)
        if not connection.dialled and len(self._connections) > self.connections_max:
            connection.refuse(f"{self.connections_max} connections are open: try another node")

    def opened(self, connection: Connection) -> None:
        """A node is at the other end: use this link, unless a better one is there."""
        theirs, peer = connection.theirs, connection.peer
        assert theirs is not None
        if theirs.role == CLIENT:
            self._hand_over(connection)
            return
        if peer == self.node.id:
            connection.refuse("that is this node itself")
            return
        self.presence.greet(connection)
        other = self.links.get(peer)
        if other is not None and self._preferred(other) and not self._preferred(connection):
            connection.close("there is another link")
            return
        self.links[peer] = connection
        if other is not None:
            self._resend(connection, other)
            other.close("there is a better link")
        else:
            self._perform(self.node.on_command(LinkUp(peer)), None)
        self._perform([Send(peer, message) for message in self._dialling.reached(peer)], None)

    def _hand_over(self, connection: Connection) -> None:
        """A client is at the other end."""
        if self.clients is None:
            connection.refuse("this node serves no clients: connect to another one")
        else:
            connection.handler = self.clients
            self.clients.opened(connection)

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        """A message came in over a link: its end is its sender."""
        try:
            message = self.codec.decode(body)
        except MalformedMessage as error:
            # What a later version says is not for this one; whoever sent it need not wait for it.
            self.unknown += isinstance(error, UnknownMessage)
            self.malformed += not isinstance(error, UnknownMessage)
            connection.finish(task)
            return
        effects = self.node.on_message(message, connection.peer)
        self._perform(effects, partial(self._done, connection, task))

    def hear(self, message: Message, sender: NodeId) -> None:
        """Take a message as if `sender` had said it: whoever breaks a network says so."""
        self._perform(self.node.on_message(message, sender), None)

    def asked(self, connection: Connection, kind: int, body: bytes) -> None:
        """Somebody looks for nodes, or answers where they are."""
        if kind == Kind.WHERE:
            answer = self.contacts.answer(body)
            if answer is not None:
                connection.say(Kind.CONTACTS, answer)
            return
        self._dialling.found(self.presence.hear(connection, body))

    def ready(self, connection: Connection) -> None:
        """A full link has room again."""
        self._perform(self.node.on_command(Ready(connection.peer)), None)

    def closed(self, connection: Connection, reason: str) -> None:
        """A link is over: tell the node what may not have arrived."""
        self._connections.discard(connection)
        if self._trimming is None and not self._stopped.is_set():
            self._trimming = asyncio.get_running_loop().call_later(TRIM_SECONDS, self._trim)
        if connection.theirs is None:
            log.info("no link: %s", reason)
        elif self.links.get(connection.peer) is connection:
            del self.links[connection.peer]
            log.info("link to %s is down: %s", connection.peer, reason)
            lost = connection.link.unacknowledged()
            self._perform(self.node.on_command(LinkDown(connection.peer, lost)), None)

    def _trim(self) -> None:
        self._trimming = None
        give_memory_back()

    def _gave_up(self, node: NodeId, lost: tuple[Message, ...]) -> None:
        """A node cannot be reached."""
        self._perform(self.node.on_command(LinkDown(node, lost)), None)

    def _supervised(self, supervisors: tuple[NodeId, ...]) -> None:
        """Other nodes supervise than before."""
        self._perform(self.node.on_command(Supervisors(supervisors)), None)

    # Effects

    def _done(self, connection: Connection, task: Task, error: Exception | None) -> None:
        """Acknowledge a message; what could not be stored ends the link, and its sender knows."""
        if error is None:
            connection.finish(task)
        else:
            connection.close(f"not stored: {error}")

    def _perform(self, effects: Effects, done: Done | None) -> None:
        """Do effects in their order; what follows a `Persist` waits until that is on disk.

        What is sent leaves before the application is given anything: others wait for it.
        """
        if self._stopped.is_set():
            return
        for at, effect in enumerate(effects):
            if isinstance(effect, Send):
                self._send(effect)
                continue
            self._flush()
            if isinstance(effect, Persist):
                if self._commit is not None:
                    loop = asyncio.get_running_loop()
                    rest = partial(self._committed, effects[at + 1 :], done)
                    # The store calls back in the thread of its writer.
                    self._commit(partial(loop.call_soon_threadsafe, rest))
                    return
            else:
                self.application(effect)
        self._flush()
        if done is not None:
            done(None)

    def _flush(self) -> None:
        if self._touched:
            touched, self._touched = self._touched, {}
            for connection in touched:
                connection.flush()

    def _committed(self, rest: Effects, done: Done | None, error: Exception | None) -> None:
        """Go on after a commit; what could not be stored is not sent, delivered or acknowledged."""
        if error is None:
            self._perform(rest, done)
            return
        log.error("not stored: %s", error)
        self.application(Notice("", "not stored", {"reason": str(error)}))
        if done is not None:
            done(error)

    def _send(self, effect: Send) -> None:
        target, message = effect.target, effect.message
        if target == self.node.id:
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: self._perform(self.node.on_message(message, target), None))
            return
        connection, data = self.links.get(target), self.codec.encode(message)
        self.sent_messages += 1
        self.sent_bytes += len(data)
        if connection is None:
            self.dropped += not self._dialling.wait(target, message, len(data))
            return
        busy = connection.link.busy
        if connection.link.offer(data, message, bulk=type(message) in self._bulk):
            self._touched[connection] = None
            return
        self.dropped += 1
        if not busy:
            self._perform(self.node.on_command(Busy(target)), None)

    def _resend(self, connection: Connection, other: Connection) -> None:
        """Move to another link what the old one did not get across; twice is harmless."""
        for message in other.link.unacknowledged():
            connection.send(self.codec.encode(message), message, bulk=type(message) in self._bulk)

    def _preferred(self, connection: Connection) -> bool:
        """Of two links both ends keep the one that the smaller id dialled."""
        return connection.dialled == (self.node.id < connection.peer)

    def _expel(self) -> None:
        """Hang up on whoever was revoked since it was let in."""
        for connection in list(self._connections):
            if self.credentials is not None and connection.identity is not None:
                try:
                    self.credentials.check(connection.identity)
                except Refused as error:
                    connection.refuse(str(error))

    # Time

    def _beat(self, due: float) -> None:
        """Say on every connection that this node lives, and see which nodes do."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._beating = loop.call_at(now + BEAT_SECONDS, self._beat, now + BEAT_SECONDS)
        for connection in list(self.links.values()):
            # Who comes late has not listened meanwhile, and accuses nobody of it.
            if min(now, due) - connection.heard > SILENCE_SECONDS:
                connection.close("silent")
        for connection in list(self._connections):
            connection.beat()

    def _tick(self, due: float) -> None:
        """One timeout of the node; the next is due an interval later, however late this one is.

        But not before three times as long has passed as this one took: a node that has no time to
        hear what others say in theirs drops it, and doubts everybody.
        """
        now = (loop := asyncio.get_running_loop()).time()
        self.late += now - due > self.interval / 2
        try:
            self._expel()
            self.presence.on_time(now)
            if self.node.reads_clock:
                self._perform(self.node.on_command(Clock(int(self.wall()))), None)
            self._perform(self.node.on_timeout(), None)
        finally:
            pause = max(self.interval / 2, OTHERS_SHARE * (loop.time() - now))
            following = max(due + self.interval, loop.time() + pause)
            if not self._stopped.is_set():
                self._timer = loop.call_at(following, self._tick, following)
