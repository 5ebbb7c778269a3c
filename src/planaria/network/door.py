"""A node's door: accepts connections, and does not let silent strangers fill it.

asyncio tells of a connection when its TLS handshake is done, and waits a minute for that: until
then everybody, with a certificate or without, would cost a descriptor that nobody counts. Here they
are counted from the first packet on, and who has stood there longest makes room for the next.
"""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial

HANDSHAKE_SECONDS = 5.0  # within which it must be done
KNOCKING_MAX = 128  # handshakes at a time: each costs a third of a mebibyte
BACKLOG = 512  # connections that the kernel holds for us: those beyond wait for a second
AT_ONCE = 16  # that are accepted before others have their turn
PAUSE_SECONDS = 1.0  # when there are no descriptors left
SPARED = 256  # descriptors for the store, links that the node dials, HTTP

log = logging.getLogger("planaria.network")


class Door:
    """Listens, and makes a `protocol` of each connection whose handshake is done."""

    def __init__(
        self, protocol: Callable[[], asyncio.BaseProtocol], context: ssl.SSLContext | None
    ) -> None:
        self._protocol, self._context = protocol, context
        self._listening: list[socket.socket] = []
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        self._knocking: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._unbegun: set[socket.socket] = set()  # that no transport closes yet

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen there; returns the first address that was bound. Raises OSError."""
        self._listening = await _bound(host, port)
        for one in self._listening:
            self._go_on(one)
        name: tuple[str, int] = self._listening[0].getsockname()[:2]
        return name

    async def close(self) -> None:
        """Listen no more, and hang up on whoever is not in yet."""
        listening, self._listening = self._listening, []
        for one in listening:
            asyncio.get_running_loop().remove_reader(one)
            one.close()
        for pause in self._pauses.values():
            pause.cancel()
        tasks = list(self._knocking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _go_on(self, listening: socket.socket) -> None:
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                one, _ = listening.accept()
            except (BlockingIOError, ConnectionError):
                return  # nobody is there, or it is gone again
            except OSError as error:
                log.warning("cannot accept connections: %s", error)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                self._pauses[listening] = loop.call_later(PAUSE_SECONDS, self._go_on, listening)
                return
            one.setblocking(False)
            self._knock(one)

    def _knock(self, one: socket.socket) -> None:
        task = asyncio.create_task(self._let_in(one))
        self._knocking[task] = None
        self._unbegun.add(one)
        task.add_done_callback(partial(self._over, one))
        if len(self._knocking) > KNOCKING_MAX:
            oldest = next(iter(self._knocking))
            del self._knocking[oldest]  # now: one that is done cannot be cancelled instead of it
            oldest.cancel()

    async def _let_in(self, one: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._unbegun.discard(one)
        seconds = None if self._context is None else HANDSHAKE_SECONDS
        with suppress(OSError):  # no handshake: it never was a connection
            await loop.connect_accepted_socket(
                self._protocol, one, ssl=self._context, ssl_handshake_timeout=seconds
            )

    def _over(self, one: socket.socket, task: asyncio.Task[None]) -> None:
        self._knocking.pop(task, None)
        if one in self._unbegun:
            self._unbegun.discard(one)
            one.close()


async def _bound(host: str, port: int) -> list[socket.socket]:
    """A socket for each address that this name has; raises OSError if one of them is taken."""
    loop, found = asyncio.get_running_loop(), list[socket.socket]()
    names = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, kind, protocol, _, name in dict.fromkeys(names):
            one = socket.socket(family, kind, protocol)
            found.append(one)
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(name)
            one.listen(BACKLOG)
    except OSError:
        for one in found:
            one.close()
        raise
    return found


def connections_max(most: int) -> int:
    """How many connections this process has descriptors for, at most so many."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, soft - KNOCKING_MAX - SPARED))


def make_room(most: int) -> None:
    """Let this process have descriptors for so many connections, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + KNOCKING_MAX + SPARED
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
