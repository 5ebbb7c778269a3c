"""Somebody who stages and settles batches at a ring, by hand."""

from collections.abc import Sequence

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Send
from planaria.protocols.skipring.batch_messages import Review, Reviewed, Settle
from planaria.protocols.skipring.deposit_messages import Deposit, Held, NotHeld
from planaria.protocols.skipring.overlay import TOPIC
from planaria.protocols.skipring.peer import Peer
from planaria.records.manifest import (
    Manifest,
    Part,
    Portion,
    row_incarnation,
    seal_manifest,
    stage_incarnation,
)
from planaria.records.record import INCARNATION_BYTES, Draft, Record, seal
from ring_lab import RingLab

ENTRY = 99  # a node that is not in the ring
DRIVER = 12345
QUERY = "query"


def drawn(number: int) -> bytes:
    return bytes([number]) * INCARNATION_BYTES


class Batch:
    """Some rows in partitions, and the manifest that one attempt makes of them."""

    def __init__(self, partitions: Sequence[int], attempt: int = 0, batch: int = 0) -> None:
        self.records: list[Record] = []
        parts, first, row = list[Part](), 0, 0
        for at, count in enumerate(partitions):
            incarnation = stage_incarnation(drawn(16 * attempt + at))
            for lo in range(0, count, 2):
                drafts = [Draft(b"%d" % (row + n)) for n in range(lo, min(lo + 2, count))]
                self.records.append(seal((DRIVER, incarnation), lo, drafts, time=0))
            parts.append(Part(incarnation, count, first))
            first, row = first + count, row + count
        self.parts = parts
        self.rows = [b"%d" % number for number in range(row)]
        portions = {TOPIC: Portion(row_incarnation(QUERY, drawn(attempt)), parts)}
        self.manifest = seal_manifest(DRIVER, QUERY, batch, portions, time=0, staged=0)


class Lab(RingLab):
    """A ring, and somebody who stages and settles from outside."""

    def tell(self, id: NodeId, message: Message) -> list[Message]:
        """Hand a message to a member; returns what it answers."""
        return self.perform(id, self.peer(id).on_message(message, ENTRY))

    def perform(self, id: NodeId, effects: Effects) -> list[Message]:
        sends = [it for it in effects if isinstance(it, Send)]
        for it in sends:
            if it.target != ENTRY:
                self.simulator.inject(it.target, it.message, 1, id)
        return [it.message for it in sends if it.target == ENTRY]

    def peer(self, id: NodeId) -> Peer:
        found = self.simulator.nodes[id]
        assert isinstance(found, Peer)
        return found

    def stage(self, id: NodeId, record: Record) -> str:
        """Stage a record at a member; returns why not, if so."""
        (answer,) = self.tell(id, Deposit(TOPIC, ENTRY, record.data, False, True, True))
        assert isinstance(answer, Held | NotHeld)
        assert answer.key == record.key
        return answer.reason if isinstance(answer, NotHeld) else ""

    def review(self, id: NodeId, manifest: Manifest) -> Reviewed:
        (answer,) = self.tell(id, Review(TOPIC, ENTRY, manifest.record.data))
        assert isinstance(answer, Reviewed)
        return answer

    def settle(self, id: NodeId, manifest: Manifest, *spread: int) -> Reviewed:
        (answer,) = self.tell(id, Settle(TOPIC, ENTRY, manifest.record.data, list(spread)))
        assert isinstance(answer, Reviewed)
        return answer

    def crash(self, id: NodeId) -> None:
        """Lose all but what is on disk."""
        stored = self.peer(id).snapshot()
        self.peer(id).restore(stored)

    def rows(self, id: NodeId) -> list[bytes]:
        batch = self.peer(id).topics[TOPIC].history.holdings.store.read({})
        return [row for part in batch.slices for row in part.record.payloads(part.lo, part.hi)]

    def agree(self, rows: list[bytes], within: int = 60) -> None:
        for _ in range(within):
            if all(sorted(self.rows(id)) == sorted(rows) for id in self.peers):
                return
            self.run()
        raise AssertionError({id: self.rows(id) for id in self.peers})

    def tidy(self, id: NodeId, manifest: Manifest, within: int = 60) -> None:
        """Wait until a member holds nothing staged of a manifest."""
        for _ in range(within):
            answer = self.review(id, manifest)
            if not answer.staged and not answer.pieces:
                return
            self.run()
        raise AssertionError("what is published is kept twice")


def lab(n: int = 4, seed: int = 1) -> Lab:
    found = Lab.legitimate(n, seed)
    assert isinstance(found, Lab)
    return found


def kinds(effects: Effects) -> list[type]:
    return [type(it.message) if isinstance(it, Send) else type(it) for it in effects]
