"""A node of the live network: identity, store, protocol, driver and doors, in one directory.

`planaria node` runs it as a process; an application that wants to be a peer itself embeds it.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from random import Random
from threading import Thread
from time import monotonic
from typing import Any, Self

from planaria.core.composite import FromOverlay
from planaria.core.errors import CapacityExceeded
from planaria.core.message import Message
from planaria.core.node import Deliver, Effect, Joined, Leave, Notice, Restarted
from planaria.network.admission import Admissions
from planaria.network.application import Application
from planaria.network.belongings import load_credentials, local_id, take_directory
from planaria.network.chaos.agent import Agent
from planaria.network.chaos.layer import Layer
from planaria.network.charter_file import CharterFile
from planaria.network.charters import judge
from planaria.network.config import Config, save_config
from planaria.network.connection import Connection
from planaria.network.door import connections_max
from planaria.network.embedded import Embedded
from planaria.network.gate.clients import client_statuses
from planaria.network.gate.gate import Gate
from planaria.network.handover import Handover
from planaria.network.host import CONNECTIONS_MAX, Commit, Host
from planaria.network.http import HttpServer, monitoring
from planaria.network.identity import CLUSTER, handle_of
from planaria.network.insider import Insider
from planaria.network.joining import Joining
from planaria.network.memberships import RELEASED, Memberships, Noting, reasons
from planaria.network.monitor import Monitor
from planaria.network.overlays.registry import BULK as OVERLAYS_BULK
from planaria.network.overlays.registry import codec
from planaria.network.overlays.several import Several
from planaria.network.releasing import Releasing
from planaria.network.resuming import Resuming
from planaria.network.rights import RightsFile
from planaria.network.status import ClientStatus, OverlayStatus, Status
from planaria.network.store.database import Database
from planaria.network.store.directory import CLEAN
from planaria.network.tls import Credentials
from planaria.protocols.publications.admission import every_record
from planaria.protocols.publications.antientropy_messages import Compare, Difference, Push
from planaria.protocols.skipring.batch_messages import Review, Settle
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.deposit_messages import Deposit
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.pace import PACE_MAX
from planaria.records.memory import MemoryStore
from planaria.records.store import Committed, Store

STORE = "store"  # in the node's directory
LEAVE_SECONDS = 5.0  # for the rings to let go of a node that stops
# Messages that carry publications, all of them: one of a mebibyte never fits the window of control.
BULK: tuple[type[Message], ...] = (Arc, Flood, Push, Difference, Compare, Deposit, Review, Settle)

log = logging.getLogger("planaria.node")


class LiveNode(Application):
    """One running node. `async with LiveNode(config) as node:` starts it and leaves in good order.

    Memberships and records are in its directory and resumed at the next start; every start numbers
    publications in a new incarnation; its place in the rings is soft state.
    """

    def __init__(self, config: Config) -> None:
        """Take the directory, whoever used it last; raises UsageError if somebody still does."""
        self.config = config
        self.http: str | None = None
        self.listen = config.listen
        self.started = monotonic()
        self.broken: asyncio.Future[None] | None = None  # done when a part of this node failed
        self.database: Database | None = None
        self.gate: Gate | None = None  # from its start on
        self._directory = take_directory(config.dir)
        try:
            self._compose(config)
        except BaseException:
            self._release()
            raise
        self._tasks: set[asyncio.Task[None]] = set()
        self._commits: list[Committed] = []  # that wait for the file of memberships

    def _compose(self, config: Config) -> None:
        credentials = load_credentials(config)
        self.id = credentials.identity.id if credentials else local_id(config.dir)
        self.name = config.name or (credentials.identity.name if credentials else self.id.hex()[:8])
        cluster = credentials.cluster if credentials else config.cluster or CLUSTER
        if config.durability == "disk":
            self.database = Database(config.dir / STORE, log.warning)
        stored = [] if self.database is None else self.database.unopened()
        self.memberships = Memberships(config.dir, stored)
        self.noting = Noting(self.memberships, self._wanted, self._give)
        self.ring = self._ring(config, credentials)
        self.several = Several(config, self.ring, Random(secrets.randbits(256)))
        self.node = self.several.node
        commit = None if self.database is None else self._commit
        layer = Layer() if config.allow_chaos else None
        self.host = Host(
            self.node,
            self.id,
            codec(),
            self._application,
            bulk=(*BULK, *OVERLAYS_BULK),
            cluster=cluster,
            credentials=credentials,
            commit=commit,
            interval=config.interval,
            supervises=config.supervise,
            connections_max=connections_max(CONNECTIONS_MAX),
            connect=Connection if layer is None else layer.connect,
        )
        self.chaos = None
        if layer is not None:
            from planaria.network.chaos.parts import breakable  # a fifth of the time to start

            self.chaos = Agent(self.host, breakable(self.ring, self.node), layer)
        self._furnish(config, commit)

    def _furnish(self, config: Config, commit: Commit | None) -> None:
        """What stands around the protocol and its driver."""
        self.charters = CharterFile(config.dir, self.ring.charters)
        self.admissions.obey(self.ring.charters)
        if self.memberships.new:
            self.ring.charters.learn_first(company=bool(config.join))
        self.resuming = Resuming(self.memberships.names, self.host.command)
        self.releasing = None
        if self.database is not None:
            self.releasing = Releasing(
                self.memberships,
                self.database,
                lambda: self.ring.peer.topics,
                self._forget,
                monotonic,
            )
        self.joining = Joining(self.host, config.join, config.dir)
        self.handover = Handover(self.ring, self.host.command)
        self.monitor = Monitor(self)
        self._pages = HttpServer(monitoring(self.monitor))
        self.embedded = Embedded(self.host, commit, self.ring.peer.topics.__contains__)
        self.insider = Insider(self.host.node.id)
        self.rights = None if config.rights is None else RightsFile(config.rights)

    def _ring(self, config: Config, credentials: Credentials | None) -> RingNode:
        self.admissions = Admissions(credentials)
        return RingNode(
            handle_of(self.id),
            (),
            Random(secrets.randbits(256)),
            supervise=config.supervise,
            store=self.store,
            secret=credentials.secret if credentials else b"",
            pace_max=PACE_MAX,
            judge=judge(credentials.authority, credentials.former) if credentials else judge(None),
            admission=self.admissions if credentials else every_record,
        )

    # Life

    async def start(self) -> None:
        """Serve: listen, resume all topics, and return when a node of the network has answered.

        Raises UsageError if the port is taken, Refused if the network does not want this node.
        """
        self.embedded.check_new()
        self.broken = asyncio.get_running_loop().create_future()
        self.gate = Gate(
            self.host,
            self.ring,
            self.monitor.shown,
            self.embedded.wants,
            self.chaos,
            self.node,
            None if self.database is None else self.several.keeping.soon,
            self.rights,
        )
        self.listen = await self.host.start(self.config.listen, self.config.advertise)
        self._resume()
        if not self.memberships.new:
            self.host.command(Restarted())
        self.embedded.start()
        self.insider.start(self.gate.others)
        for work in (self._keep_time(), self._keep_memberships(), self.charters.keep()):
            self._spawn(work)
        await self.several.start(self.host, self._spawn)
        if self.config.http is not None:
            self.http = await self._pages.start(self.config.http)
        save_config(self.config, self.listen)  # what it cannot run with it need not remember
        log.info("%s listens on %s", self.name, self.listen)
        await self.joining.first()
        self._spawn(self.joining.ever())
        # The first exchange needs it, and would wait a tenth of a second for it at both ends.
        Thread(target=import_module, args=("numpy",), name="numpy", daemon=True).start()

    async def stop(self, *, leave: bool = True) -> None:
        """Leave the rings in good order (the next start resumes them), and end all of it.

        What no neighbour is known to hold is handed over first, for as long as patience lasts.
        """
        await self.noting.finish()
        if self.gate is not None:
            self.gate.close()
        if leave and self.gate is not None:
            self.embedded.refuse()
            await self.handover.run()
        if leave and (self.ring.peer.topics or self.node.awake()):
            log.info("leaving %d topics", len(self.ring.peer.topics))
            self.host.command(Leave())
            await self._until_left()
        if leave:
            self.host.presence.resign()  # or others would ask this one first for an hour
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.charters.write()
        self.embedded.close()
        self.insider.close()
        await self.several.stop()
        self.joining.close()
        await self._pages.stop()
        await self.host.stop()
        self._release()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop(leave=False)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # What it says of itself

    def status(self) -> Status:
        """How this node is now, as it knows itself."""
        return self.monitor.status()

    def overlays(self) -> dict[str, OverlayStatus]:
        """This node's parts in other overlays than `ring`, those that are awake."""
        others = None if self.gate is None else self.gate.others
        return {} if others is None else others.statuses()

    @property
    def clients(self) -> int:
        """How many clients are connected."""
        return 0 if self.gate is None else len(self.gate.sessions)

    def connected(self) -> list[ClientStatus]:
        """Those of them that came first."""
        return [] if self.gate is None else client_statuses(self.gate, monotonic())

    def store(self, topic: str) -> Store:
        """The store of a topic: on disk, or in memory where nothing is to be durable."""
        self.noting.opens(topic)
        if self.database is None:
            return MemoryStore(volatile=True)
        return self.database.topic(topic)

    def _release(self) -> None:
        """Let go of the directory; what is pending is written first."""
        if self.database is not None:
            self.database.close()
            self.database = None
        if hasattr(self, "memberships"):
            self.memberships.close()
        self._directory.mark(CLEAN)
        self._directory.release()

    async def _until_left(self) -> None:
        patience = monotonic() + LEAVE_SECONDS
        while (self.ring.peer.topics or self.several.leaving()) and monotonic() < patience:
            await asyncio.sleep(self.config.interval / 10)
        for topic in self.ring.peer.topics:
            log.warning("%s: not let go in time; its members will notice", topic)

    def _resume(self) -> None:
        """Join again, some at a time, what this node took part in; its records are in the store."""
        if self.resuming.left:
            topics = self.ring.peer.topics.values()
            for name in self.resuming.step(sum(one.awaited for one in topics)):
                assert self.gate is not None
                self.gate.memberships.serves(name)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a part of this node; if it fails, the node is broken, and says so."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)
        self._tasks.add(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a part of this node failed", exc_info=error)
            if self.broken is not None and not self.broken.done():
                self.broken.set_result(None)

    # What the protocol tells

    def _application(self, effect: Effect) -> None:
        """Every effect that is not for the network; a join is told when it is on disk."""
        if isinstance(effect, Deliver):  # as nearly always
            self.monitor.on_effect(effect)
            self.embedded.on_deliver(effect)
            if self.gate is not None:
                self.gate.on_deliver(effect)
            return
        if isinstance(effect, Joined):
            if self.noting.joined(effect):
                self._spawn(self.noting.try_to_note())
            return
        said = effect.effect if isinstance(effect, FromOverlay) else effect
        if isinstance(said, Notice):
            log.info("%s: %s %s", said.topic or "node", said.kind, said.detail)
        self._give(effect)

    def _give(self, effect: Effect) -> None:
        """Hand an effect to whoever waits for it here."""
        self.monitor.on_effect(effect)
        self.embedded.on_effect(effect)
        self.handover.on_effect(effect)
        if self.gate is not None:
            self.gate.on_effect(effect)

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(self.config.interval)
            self._resume()
            if self.releasing is not None:
                self.releasing.step()
            self.monitor.tick()
            if self.gate is not None:
                self.gate.on_timeout()

    # Memberships

    async def _keep_memberships(self) -> None:
        while True:
            await asyncio.sleep(self.config.interval)
            await self.noting.try_to_note()

    def _commit(self, done: Committed) -> None:
        """Make what the node has stored durable; no record before the membership of its topic.

        In the order of the calls, whatever they have to wait for.
        """
        if self._commits or self.noting.behind:
            self._commits.append(done)
            if len(self._commits) == 1:
                self._spawn(self._note_and_commit())
        else:
            self._commit_records(done)

    async def _note_and_commit(self) -> None:
        try:
            await self.noting.note()
            commit: Callable[[Committed], None] = self._commit_records
        except OSError as error:
            commit = partial(_fail, error)
        waiting, self._commits = self._commits, []
        for done in waiting:
            commit(done)

    def _commit_records(self, done: Committed) -> None:
        writer = None if self.database is None else self.database.writer
        if writer is None:
            done(CapacityExceeded("the store is read-only"))
        else:
            writer.commit(done)

    def _forget(self, topic: str) -> None:
        """Nothing of a topic that was released is here any more."""
        if self.gate is not None:
            self.gate.memberships.released.discard(topic)

    def _wanted(self) -> dict[str, str]:
        """The patterns and topics that this node takes part in and does not leave, and why."""
        ours = None if self.gate is None else self.gate.memberships
        served, released = (ours.served, ours.released) if ours else ((), ())
        joined = reasons(self.ring, served)
        return {**dict.fromkeys(released, RELEASED), **self.resuming.left, **joined}


def _fail(error: OSError, done: Committed) -> None:
    done(error)
