"""Neighbours on the local network, found by multicast DNS (the extra `discovery`).

A node says its cluster, its port and a number that is new at each start: not who it is.
"""

import asyncio
import logging
import secrets
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from planaria.core.errors import UsageError
from planaria.network.contacts import format_address, parse_address
from planaria.network.overlays.neighbours import FOUND_MAX, Neighbours

if TYPE_CHECKING:
    from zeroconf import ServiceStateChange, Zeroconf

SERVICE = "_planaria._tcp.local."
RESOLVE_MILLISECONDS = 3000
RESOLVED_MAX = 64  # at a time: whoever likes can announce names

log = logging.getLogger("planaria.node")


class Discovery:
    """Announces a node of a cluster at `listen`, and tells `neighbours` of others."""

    def __init__(self, neighbours: Neighbours, cluster: str, listen: str) -> None:
        """Raises UsageError if the library is not there, or nobody could dial the address."""
        try:
            import zeroconf.asyncio
        except ImportError:
            raise UsageError(
                "discovery needs zeroconf: pip install 'planaria[discovery]', or name --link"
            ) from None
        self._library: Any = zeroconf
        self._neighbours, self._cluster = neighbours, cluster
        self._host, self._port = parse_address(listen)
        try:
            ip_address(self._host)
        except ValueError:
            raise UsageError(f"--discover needs a numeric address, not {self._host!r}") from None
        self._name = f"{secrets.token_hex(8)}.{SERVICE}"
        self._addresses: dict[str, str] = {}  # by the name of a service
        self._wanted: dict[str, None] = {}  # names that are to be resolved
        self._tasks: set[asyncio.Task[None]] = set()
        self._zeroconf: Any = None
        self._browser: Any = None

    async def start(self) -> None:
        """Announce, and listen for others; raises UsageError if there is no such interface."""
        library = self._library
        try:
            self._zeroconf = library.asyncio.AsyncZeroconf(interfaces=[self._host])
            info = library.ServiceInfo(
                SERVICE,
                self._name,
                port=self._port,
                properties={"cluster": self._cluster},
                parsed_addresses=[self._host],
                server=self._name,
            )
            await self._zeroconf.async_register_service(info)
        except OSError as error:
            raise UsageError(f"cannot discover neighbours from {self._host}: {error}") from None
        self._browser = library.asyncio.AsyncServiceBrowser(
            self._zeroconf.zeroconf, SERVICE, handlers=[self._changed]
        )

    async def stop(self) -> None:
        """Say goodbye."""
        self._wanted = {}
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._browser is not None:
            await self._browser.async_cancel()
        if self._zeroconf is not None:
            await self._zeroconf.async_unregister_all_services()
            await self._zeroconf.async_close()

    def _changed(
        self,
        zeroconf: "Zeroconf",
        service_type: str,
        name: str,
        state_change: "ServiceStateChange",
    ) -> None:
        if name == self._name:
            return
        if state_change is self._library.ServiceStateChange.Removed:
            self._forget(name)
            return
        self._wanted.pop(name, None)
        self._wanted[name] = None
        if len(self._wanted) > FOUND_MAX:
            del self._wanted[next(iter(self._wanted))]
        self._resolve_some()

    def _resolve_some(self) -> None:
        """Ask where those are that were announced, some at a time."""
        while self._wanted and len(self._tasks) < RESOLVED_MAX:
            name = next(iter(self._wanted))
            del self._wanted[name]
            task = asyncio.ensure_future(self._resolve(name))
            self._tasks.add(task)
            task.add_done_callback(self._resolved)

    def _resolved(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._resolve_some()

    async def _resolve(self, name: str) -> None:
        info = self._library.asyncio.AsyncServiceInfo(SERVICE, name)
        if not await info.async_request(self._zeroconf.zeroconf, RESOLVE_MILLISECONDS):
            return
        said = info.properties.get(b"cluster") or b""
        found = info.parsed_addresses()
        if said.decode(errors="replace") == self._cluster and found and info.port:
            address = format_address(found[0], info.port)
            if self._addresses.get(name) != address:
                self._forget(name)
            self._addresses[name] = address
            if len(self._addresses) > FOUND_MAX:
                self._forget(next(iter(self._addresses)))
            log.info("discovered a neighbour at %s", address)
            self._neighbours.discover(address)

    def _forget(self, name: str) -> None:
        address = self._addresses.pop(name, None)
        if address is not None and address not in self._addresses.values():
            self._neighbours.forget(address)
