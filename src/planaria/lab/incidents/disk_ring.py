"""A ring whose peers keep their records in SQLite, and disks that keep what was committed alone."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from threading import Event

from planaria.core.ids import NodeId
from planaria.core.node import Node, Persist, Subscribe
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.network.store.database import Database
from planaria.network.store.writer import Pending, Writer
from planaria.protocols.publications.holdings import CONTRADICTION
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.records.record import TIME_MAX, Record
from planaria.records.store import Store
from planaria.simulator.engine import Entry, Simulator


class CommittingWriter(Writer):
    """Writes when a commit is asked for, and not before: so a crash loses all that came since."""

    def _take(self) -> bool:
        with self._changed:
            while not self._closing and not self._pending.waiting:
                self._changed.wait()
            if self._closing:
                self._pending = Pending()
        return super()._take()


class DiskRing(RingOverlay):
    """Peers with a directory each. Who is spawned again finds what its disk has."""

    def __init__(self, root: Path, retention: Retention | None = None) -> None:
        super().__init__()
        self.root, self.retention = root, retention or Retention()
        self.databases: dict[NodeId, Database] = {}
        self.said: list[str] = []

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A process begins: the one before it has ended without a word."""
        if id in self.supervisors:
            return super().spawn(id, rng)
        if id in self.databases:
            self.databases.pop(id).close()
        disk = self.databases[id] = Database(self.root / str(id), self.said.append)
        peer = Peer(id, self.supervisors, rng, {TOPIC: self.retention}, disk.topic)
        peer.on_command(Subscribe(TOPIC))
        return peer

    def store(self, id: NodeId) -> Store:
        """What a peer has of the topic."""
        return self.databases[id].topic(TOPIC)

    def records(self, id: NodeId) -> set[Record]:
        """What a peer can read from its disk; nothing while its index contradicts itself."""
        store = self.store(id)
        try:
            return {*store.get(store.places(0, TIME_MAX))}
        except CONTRADICTION:
            return set()

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """What is wrong with the ring; then, whose disk lacks what another one has."""
        found = super().violations(states, channel)
        members = [
            id
            for id, state in states.items()
            if isinstance(state, PeerState) and TOPIC in state.topics
        ]
        held = {id: self.records(id) for id in members}
        everything = set[Record]().union(*held.values())
        return found + [
            Violation("publications", id, f"lacks {len(everything - mine)} of them")
            for id, mine in held.items()
            if mine != everything
        ]

    def close(self) -> None:
        """Close all files."""
        for disk in self.databases.values():
            disk.close()


class Disks:
    """The driver's part: what a peer asks to be persisted is on disk before it does anything else.

    Watch a simulator with it.
    """

    kinds = ("effect",)

    def __init__(self, ring: DiskRing) -> None:
        self.ring, self.commits = ring, 0
        self.simulator: Simulator | None = None

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Commit what a peer asks to be persisted, unless its power is cut before."""
        if not isinstance(effect, Persist) or node not in self.ring.databases:
            return
        cut = None if self.simulator is None else self.simulator.power_cuts.get(node)
        if cut is None or cut.after:
            commit(self.ring.store(node))
            self.commits += 1


def commit(store: Store) -> None:
    """Wait until all is on disk."""
    done, errors = Event(), list[Exception | None]()

    def committed(error: Exception | None) -> None:
        errors.append(error)
        done.set()

    store.commit(committed)
    assert done.wait(60)
    assert errors == [None]
