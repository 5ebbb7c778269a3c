"""Nodes that must be found and dialled before they can be sent to, and what waits for them."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.network.connection import Connection, Handler
from planaria.network.contacts import Contact, Contacts, parse_address
from planaria.network.frames import Kind
from planaria.network.identity import Refused
from planaria.network.unreached import cannot

DIAL_SECONDS = 3.0
MOVED_SECONDS = 0.5  # for others to say where a node is that does not answer where it was
DIALS_MAX = 64  # at a time
WAITING_MAX = 256  # messages to one node that is being dialled
WAITING_BYTES_MAX = 16 << 20  # of all messages to all of them
SOUGHT_MAX = 1024  # nodes that are looked for or dialled at a time

log = logging.getLogger("planaria.network")

Connect = Callable[[], Connection]
GaveUp = Callable[[NodeId, tuple[Message, ...]], None]


class Dialling:
    """Looks for nodes and dials them; `gave_up` is told of each that was not reached in time."""

    def __init__(
        self,
        connect: Connect,
        owner: Handler,
        contacts: Contacts,
        links: Mapping[NodeId, Connection],
        gave_up: GaveUp,
    ) -> None:
        self._connect, self._owner = connect, owner
        self._contacts, self._links = contacts, links
        self._gave_up = gave_up
        self._waiting: dict[NodeId, list[tuple[Message, int]]] = {}
        self._bytes = 0
        self._dials: dict[NodeId, asyncio.Task[None]] = {}
        self._queue: dict[NodeId, None] = {}  # to be dialled when another dial ends
        self._patience: dict[NodeId, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """How many messages wait."""
        return sum(map(len, self._waiting.values()))

    def wait(self, target: NodeId, message: Message, size: int) -> bool:
        """Keep a message while its receiver is looked for; False if there is no room for it."""
        new = target not in self._waiting
        if new and len(self._waiting) >= SOUGHT_MAX:
            return False
        waiting = self._waiting.setdefault(target, [])
        room = len(waiting) < WAITING_MAX and self._bytes + size <= WAITING_BYTES_MAX
        if room:
            waiting.append((message, size))
            self._bytes += size
        if new:
            self._wait_for(target, DIAL_SECONDS)
            self._seek(target)
        return room

    def reached(self, node: NodeId) -> list[Message]:
        """There is a link: what waited for it."""
        waiting = self._waiting.pop(node, [])
        self._queue.pop(node, None)
        if node in self._patience:
            self._patience.pop(node).cancel()
        self._bytes -= sum(size for _, size in waiting)
        return [message for message, _ in waiting]

    def found(self, nodes: Iterable[NodeId]) -> None:
        """Somebody said where these nodes are."""
        for node in nodes:
            if node in self._waiting:
                self._wait_for(node, DIAL_SECONDS)
                self._seek(node)

    async def dial(self, address: str) -> Connection:
        """Connect to an address; raises UsageError, or Refused, in one line."""
        loop, credentials = asyncio.get_running_loop(), self._owner.credentials
        host, port = parse_address(address)
        try:
            context = credentials.context(server=False) if credentials else None
            dial = loop.create_connection(self._connect, host, port, ssl=context)
            _, connection = await asyncio.wait_for(dial, DIAL_SECONDS)
        except ssl.SSLError as error:
            raise Refused(cannot(address, error)) from None
        except OSError as error:
            raise UsageError(cannot(address, error)) from None
        return connection

    async def stop(self) -> None:
        """Dial nobody any more."""
        self._queue = {}
        dials = list(self._dials.values())
        for dial in dials:
            dial.cancel()
        for patience in self._patience.values():
            patience.cancel()
        await asyncio.gather(*dials, return_exceptions=True)

    def _seek(self, target: NodeId) -> None:
        contact = self._contacts.get(target)
        if contact is None:
            self._ask_where(target)
        elif target in self._dials:
            return
        elif len(self._dials) < DIALS_MAX:
            task = asyncio.ensure_future(self._reach(contact))
            self._dials[target] = task
            task.add_done_callback(lambda _: self._dialled(target))
        else:
            self._queue[target] = None

    def _dialled(self, target: NodeId) -> None:
        """A dial ended: there is room for the next that waits for one."""
        del self._dials[target]
        if self._queue:
            following = next(iter(self._queue))
            del self._queue[following]
            self._wait_for(following, DIAL_SECONDS)
            self._seek(following)

    def _ask_where(self, target: NodeId) -> None:
        question = self._contacts.question([target])
        for connection in self._links.values():
            connection.say(Kind.WHERE, question)

    async def _reach(self, contact: Contact) -> None:
        for address in contact.addresses:
            try:
                await self.dial(address)
            except UsageError as error:
                log.info("%s", error)
            else:
                return
        if contact.handle in self._waiting:  # it may have moved
            self._ask_where(contact.handle)
            self._wait_for(contact.handle, MOVED_SECONDS)

    def _wait_for(self, target: NodeId, seconds: float) -> None:
        """Give up a node after so long, however long it was to be waited for before."""
        if target in self._patience:
            self._patience[target].cancel()
        loop = asyncio.get_running_loop()
        self._patience[target] = loop.call_later(seconds, self._give_up, target)

    def _give_up(self, target: NodeId) -> None:
        lost = self.reached(target)
        if lost:
            self._gave_up(target, tuple(lost))
