"""How batches settle at one member: staged rows move into the history when a manifest says so.

A manifest is first staged at as many members as its rows; only then does whoever commits the batch
say `Settle`. Members remember nothing of that beyond what is staged and what is published: asked
again they answer again. A member that holds a manifest and finds one of its rows in the history
knows that it was settled, and settles whatever it holds of it.
"""

from collections.abc import Callable, Sequence
from itertools import islice

from msgspec import field

from planaria.core.ids import NodeId
from planaria.core.node import Command, Effect, Notice, Send
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.inspection import Inspection
from planaria.protocols.skipring.batch_messages import Review, Reviewed, Settle
from planaria.protocols.skipring.deposits import CROWDED, FORGED, MALFORMED, TAKEN, VOLATILE
from planaria.protocols.skipring.staging import (
    Staging,
    last_batches,
    of_query,
    unsettled,
)
from planaria.records.batches import Arrival
from planaria.records.manifest import (
    PARTS_MAX,
    STAGE_MARK,
    Manifest,
    Origin,
    Portion,
    decode_manifest,
    origin_of,
    read_manifest,
    settleable,
)
from planaria.records.record import SEQUENCE_MAX, Record, Stream
from planaria.records.store import Store

LANES_MAX = 16  # streams of one query that are looked at for another manifest of a batch


class Consult(Command, frozen=True):
    """Ask these members what they have of a manifest; `settle`: they are to publish it.

    Each answer is a `Consulted`; there may be none. `spread` says which parts a member broadcasts.
    """

    topic: str
    manifest: Record
    members: tuple[NodeId, ...]
    settle: bool = False
    spread: dict[NodeId, list[int]] = field(default_factory=dict)


class Consulted(Effect, frozen=True, gc=False):
    """Tell whoever asked what a member has of a manifest."""

    answer: Reviewed


def question(command: Consult, sender: NodeId, member: NodeId) -> Review | Settle:
    """What one member is asked."""
    data = command.manifest.data
    if not command.settle:
        return Review(command.topic, sender, data)
    return Settle(command.topic, sender, data, command.spread.get(member, []))


class Batches:
    """What one member makes of manifests.

    `requested` are those that somebody had settled since the last timeout, and goes on with.
    """

    __slots__ = ("_inspection", "holdings", "id", "requested", "staging", "topic")

    def __init__(
        self, topic: str, id: NodeId, holdings: Holdings, staging: Staging, inspection: Inspection
    ) -> None:
        self.topic, self.id, self.holdings, self.staging = topic, id, holdings, staging
        self._inspection = inspection
        self.requested: set[bytes] = set()

    def read(self, data: bytes) -> tuple[Manifest, Portion] | None:
        """A manifest and its portion of this topic, if it has one and its publisher signed it."""
        manifest = decode_manifest(data)
        portion = None if manifest is None else manifest.portions.get(self.topic)
        if manifest is None or portion is None:
            return None
        return (manifest, portion) if self._inspection.admits_staged(manifest.record) else None

    def refusal(self, record: Record, crowded: Callable[[Stream], bool]) -> str:
        """Why something is not to be staged, if so; what cannot be published later is refused."""
        if not self._inspection.admits_staged(record):
            return FORGED
        if record.incarnation[:1] == STAGE_MARK:
            return "" if settleable(record) else MALFORMED
        manifest = read_manifest(record)
        portion = manifest.portions.get(self.topic) if manifest is not None else None
        if manifest is None or portion is None:
            return MALFORMED
        if self._overtaken(manifest, portion):
            return TAKEN
        return CROWDED if crowded((record.publisher, portion.incarnation)) else ""

    def stage(self, record: Record, present: int, crowded: Callable[[Stream], bool]) -> str:
        """Hold rows or a manifest; returns why not, if so.

        What the manifest before it has settled is dropped first: only the last one is looked at.
        """
        volatile = self.staging.holdings.store.volatile
        reason = VOLATILE if volatile else self.refusal(record, crowded)
        if reason:
            return reason
        for manifest in self.staging.last(record.stream):
            portion = manifest.portions.get(self.topic)
            if portion is not None and manifest.record.key != record.key:
                self.tidy(manifest, portion)
        return self.staging.hold(record, present)

    def due(
        self, manifest: Manifest, portion: Portion, present: int, spread: Sequence[int]
    ) -> list[tuple[int, Record]]:
        """What to publish now, each record with the number of its part; first what to `spread`.

        Nothing if another manifest is held, or the query went on without this one.
        """
        if self._overtaken(manifest, portion) or self.staging.hold(manifest.record, present):
            return []
        found = self.staging.settle(manifest, portion, self.holdings, spread)
        return [(at, record) for at, record in found if self._inspection.admits(record)]

    def tidy(self, manifest: Manifest, portion: Portion) -> None:
        """Drop what was staged once all of it is published."""
        if not any(unsettled(self.holdings, manifest, portion)):
            self.staging.drop(manifest, portion)

    def begun(self) -> list[tuple[Manifest, Portion]]:
        """The manifests of which something is published here and something is still staged.

        Without those that somebody settles now: both would broadcast the same rows.
        """
        found = []
        for manifest in self.staging.manifests():
            portion = manifest.portions.get(self.topic)
            requested = manifest.record.key in self.requested
            if portion is not None and not requested and self._published(manifest, portion):
                found.append((manifest, portion))
        self.requested.clear()
        return found

    def answer(self, manifest: Manifest, portion: Portion, sender: NodeId) -> Effect:
        """What this member has of a manifest, for whoever asked."""
        last = self._last(manifest, portion)
        rival = self.staging.rival(manifest)
        lacks = unsettled(self.holdings, manifest, portion)
        rows = sum(part.count for part in portion.parts) - sum(lacks)
        reviewed = Reviewed(
            self.topic,
            self.id,
            manifest.record.key,
            last.batch,
            last.manifest,
            b"" if rival is None else rival.data,
            self.staging.staged(manifest, portion),
            [at for at, lack in enumerate(lacks) if not lack],
            self.staging.pieces(manifest, portion)[:PARTS_MAX],
            max(0, min(rows, SEQUENCE_MAX)),
        )
        return Consulted(reviewed) if sender == self.id else Send(sender, reviewed)

    def notices(self, arrival: Arrival) -> list[Effect]:
        """Tell if its batch was published under two manifests."""
        record, origin = arrival.record, origin_of(arrival.record)
        if origin is None or not arrival.new or record.first != origin.first:
            return []
        other = self._other(record.stream, origin)
        return [] if other is None else [self._equivocation(record.stream, other, origin.batch)]

    def _equivocation(self, stream: Stream, other: Stream, batch: int) -> Notice:
        detail = {"publisher": stream[0], "batch": batch, "incarnation": stream[1].hex()}
        return Notice(self.topic, "equivocation", {**detail, "other": other[1].hex()})

    def _overtaken(self, manifest: Manifest, portion: Portion) -> bool:
        """Did the query go on under another manifest, of this batch or of a later one?"""
        last = self._last(manifest, portion)
        return last.batch >= manifest.batch and last.manifest != manifest.record.key

    def _last(self, manifest: Manifest, portion: Portion) -> Origin:
        """The last batch of a manifest's query here: its own, if one of its rows is here."""
        if self._published(manifest, portion):
            return Origin(manifest.record.key, manifest.batch, portion.first)
        found = last_batches(self.holdings, (manifest.publisher, portion.incarnation))
        return max(found, key=lambda it: it.batch, default=Origin(b"", -1, 0))

    def _published(self, manifest: Manifest, portion: Portion) -> bool:
        """Is a row of it in the history?"""

        def look(store: Store) -> bool:
            lane = store.index.lanes.get((manifest.publisher, portion.incarnation))
            parts = portion.parts
            return lane is not None and any(lane.covered.common(it.first, it.end) for it in parts)

        return self.holdings.ask(look)

    def _other(self, stream: Stream, origin: Origin) -> Stream | None:
        """A stream of the same query in which another manifest settled the same batch."""

        def look(store: Store) -> Stream | None:
            others = (it for it in of_query(store, stream) if it != stream)
            for other in islice(others, LANES_MAX):
                found = _settled_in(store, other, origin.batch)
                if found is not None and found.manifest != origin.manifest:
                    return other
            return None

        return self.holdings.ask(look)


def _settled_in(store: Store, stream: Stream, batch: int) -> Origin | None:
    """Where a batch in a stream comes from, if it is there: batches ascend with the numbers."""
    entries = store.index.lanes[stream].entries
    lo, hi = 0, len(entries)
    while lo < hi:
        at = (lo + hi) // 2
        record = next(iter(store.get([entries[at].place])), None)
        origin = None if record is None else origin_of(record)
        if origin is None or origin.batch == batch:
            return origin
        lo, hi = (at + 1, hi) if origin.batch < batch else (lo, at)
    return None
