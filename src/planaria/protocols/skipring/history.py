"""The publications of one topic at one subscriber: spread, stored, kept, delivered.

Joins the parts of this package. A record comes by broadcast or by anti-entropy; either way it is
decoded and named once, where it comes in, and what of it was never seen before is delivered; what
is kept of it is another matter.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Notice, Persist, Published, Send
from planaria.core.state import State, Stateful
from planaria.protocols.publications.admission import EVERYTHING, Admission
from planaria.protocols.publications.antientropy import EXCHANGED, AntiEntropy
from planaria.protocols.publications.antientropy_messages import (
    AntiEntropyMessage,
    Digest,
    Refused,
)
from planaria.protocols.publications.deliveries import position_id
from planaria.protocols.publications.exchange import AntiEntropyState
from planaria.protocols.publications.holdings import Holdings, HoldingsState
from planaria.protocols.publications.inspection import Inspection
from planaria.protocols.publications.publisher import Publisher, PublisherState
from planaria.protocols.publications.reader import Reader, ReaderState
from planaria.protocols.publications.retention import Horizon, HorizonState, Rejected, Retention
from planaria.protocols.skipring import deposits
from planaria.protocols.skipring.batch_messages import Review, Settle
from planaria.protocols.skipring.batches import Batches
from planaria.protocols.skipring.broadcast import Broadcast, BroadcastState, View
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.skipring.deposit_messages import Deposit
from planaria.protocols.skipring.staging import Staging, StagingState
from planaria.records.batches import Arrival
from planaria.records.manifest import Manifest, Portion
from planaria.records.record import (
    BATCH,
    Draft,
    MalformedRecord,
    Record,
    Stream,
    decode,
    record_key,
)
from planaria.records.store import Store

OPEN_STREAMS_MAX = 1 << 15  # of one topic: vectors and what is remembered grow with them


class HistoryState(State):
    """What a subscriber holds of one topic, and all that it remembers of spreading it."""

    holdings: HoldingsState
    antientropy: AntiEntropyState
    broadcast: BroadcastState
    horizon: HorizonState
    reader: ReaderState
    publisher: PublisherState
    staging: StagingState


class History(Stateful):
    """What a subscriber holds of one topic, and its part in bringing it to all others."""

    __slots__ = (
        "antientropy",
        "batches",
        "broadcast",
        "holdings",
        "horizon",
        "id",
        "inspection",
        "publisher",
        "reader",
        "staging",
        "topic",
    )

    state_type = HistoryState

    def __init__(
        self,
        topic: str,
        id: NodeId,
        rng: Random,
        retention: Retention,
        store: Store,
        *,
        ordered: bool,
        admission: Admission = EVERYTHING,
    ) -> None:
        self.topic, self.id = topic, id
        self.holdings = Holdings(store)
        self.antientropy = AntiEntropy(topic, id, self.holdings)
        self.broadcast = Broadcast(topic, id)
        self.horizon = Horizon(retention)
        self.reader = Reader(topic, self.holdings, ordered=ordered)
        self.publisher = Publisher(id, rng, admission.sealer)
        self.inspection = Inspection(topic, self.holdings, admission)
        self.staging = Staging(store.staging())
        self.batches = Batches(topic, id, self.holdings, self.staging, self.inspection)
        self._show_window()

    def state(self) -> HistoryState:
        """What is remembered; with a store on disk no record, and nothing that grows with them.

        Its hand-offs and keys in flight are forgotten within seconds, with a process at once.
        """
        state = super().state()
        assert isinstance(state, HistoryState)
        if self.holdings.durable:
            fresh = Broadcast(self.topic, self.id).state()
            assert isinstance(fresh, BroadcastState)
            state.broadcast = fresh
            state.publisher.rejectable, state.publisher.rejectable_bytes = {}, 0
        return state

    def publish(self, view: View, *drafts: Draft) -> list[Effect]:
        """PUBLISH: number the payloads, store them on disk, deliver them here, broadcast to all.

        Raises CapacityExceeded, with nothing numbered, if the store takes nothing now.
        """
        now = self.inspection.stamp(self.horizon.present)
        stream, number = self.publisher.publish(now, *drafts)
        id = position_id(*stream, number)
        published = Published(self.topic, id, self.id, number, len(drafts))
        records = self.publisher.seal(now, self.holdings.low(stream))
        try:
            self.holdings.store.admit(records)
        except CapacityExceeded:
            self.publisher.withdraw(records)
            raise
        spread = self._spread(view, *records)
        if _full(spread):
            self.publisher.withdraw(records)
        return [published, *spread]

    def deposit(
        self, view: View, sender: NodeId, record: Record, *, spread: bool, durable: bool
    ) -> list[Effect]:
        """Hold a record for `sender`, and say so once it is on disk; a repeat delivers nothing.

        Whoever has passed its broadcast on already does not begin it again. What the topic's count
        lets go at once is as if it had come before what stands above it: held, and let go then.
        """
        if durable and self.holdings.store.volatile:
            return [deposits.answer(self.topic, self.id, sender, record.key, deposits.VOLATILE)]
        if not self.inspection.admits(record):
            return [deposits.answer(self.topic, self.id, sender, record.key, deposits.FORGED)]
        if record.time < self.horizon.lo:
            return [deposits.answer(self.topic, self.id, sender, record.key, deposits.EXPIRED)]
        if self._crowded(record.stream):
            return [deposits.answer(self.topic, self.id, sender, record.key, deposits.CROWDED)]
        taken = self._take([record])
        if _full(taken) and record.place not in self.holdings.store.index.shown:
            return [*taken, deposits.answer(self.topic, self.id, sender, record.key, deposits.FULL)]
        unknown = spread and record.key not in self.broadcast.seen
        sent = self.broadcast.publish(view, record) if unknown else []
        held = deposits.answer(self.topic, self.id, sender, record.key)
        if not durable:
            return [*sent, held, *taken]
        if not taken or taken[-1] != Persist():  # shown it may be, and not yet on disk
            taken.append(Persist())
        return [*sent, *taken, held]

    def stage(self, sender: NodeId, record: Record) -> list[Effect]:
        """Hold a record for `sender` outside of the history, and say so once it is on disk."""
        reason = self.batches.stage(record, self.horizon.present, self._crowded)
        held = deposits.answer(self.topic, self.id, sender, record.key, reason)
        return [held] if reason else [Persist(), held]

    def finish(self, view: View) -> list[Effect]:
        """Go on with what manifests have begun to settle, whoever told this node to has gone.

        What is settled is dropped now: whoever commits need not wait for the deletion.
        """
        effects: list[Effect] = []
        for manifest, portion in self.batches.begun():
            effects += self._settle(view, manifest, portion, range(len(portion.parts)))
            self.batches.tidy(manifest, portion)
        return effects

    def review(self, view: View, sender: NodeId, question: Review | Settle) -> list[Effect]:
        """Say what is here of a manifest; if it is to settle, publish what is staged of it first.

        Some at a time: whoever wants the rest published asks again.
        """
        found = self.batches.read(question.manifest)
        if found is None:
            return []
        effects: list[Effect] = []
        if isinstance(question, Settle):
            self.batches.requested.add(found[0].record.key)
            effects = [*self._settle(view, *found, question.spread), Persist()]
        return [*effects, self.batches.answer(*found, sender)]

    def on_message(self, view: View, message: Message) -> list[Effect]:
        """Take any message about publications, however false."""
        handler = _HANDLERS.get(type(message))
        return handler(self, view, message) if handler else []

    @property
    def unsettled(self) -> bool:
        """Is something on its way, or missing?"""
        return bool(self.antientropy.exchanges or self.reader.holes)

    def on_digest(self, sender: NodeId, digest: Digest, promise: int = 1) -> list[Effect]:
        """A neighbour shows its clock and what it holds: vote, compare, reconcile.

        One whose link is full would get nothing of what is sent to it now.
        """
        self.horizon.hear(sender, digest.clock, digest.lo, promise)
        if sender in self.broadcast.busy:
            return []
        return self.antientropy.on_digest(sender, digest)

    def digest(self) -> Digest:
        """What to put on every periodic message."""
        return self.antientropy.digest(self.horizon.shown_clock, self.horizon.cut)

    def on_timeout(self, neighbours: list[NodeId]) -> list[Effect]:
        """Time passed: age clocks and tables, delete what expired, audit a slice."""
        self.horizon.on_timeout(neighbours)
        self.staging.on_timeout(self.horizon.present)
        effects = [*self._show_window(), *self.reader.on_timeout()]
        self.holdings.purge(windows := self.horizon.windows())
        self.holdings.forget(self.horizon.oldest(windows))
        checks = self.inspection.on_timeout()  # before the audit, which takes a doubt as seen to
        self.antientropy.on_timeout()
        checks += self.broadcast.on_timeout()
        return [*([*effects, Persist()] if effects else []), *checks]

    def read_clock(self, seconds: int) -> list[Effect]:
        """The driver read the wall clock."""
        self.horizon.read_clock(seconds)
        return self._show_window()

    def retain(self, retention: Retention) -> list[Effect]:
        """Another setting: it hides or shows at once, and deletes after the grace."""
        self.horizon.retain(retention)
        return self._show_window()

    def link_down(self, view: View, peer: NodeId) -> list[Effect]:
        """A send to `peer` failed: serve otherwise what was lately handed to it."""
        self.antientropy.link_down(peer)
        return self.broadcast.link_down(view, peer)

    def _on_antientropy(self, view: View, message: AntiEntropyMessage) -> list[Effect]:
        """What anti-entropy brings is delivered, and starts no broadcast (R5).

        Whoever pushes what nobody may have published is told: else it would for ever.
        """
        answers: list[Effect] = []

        def take(found: list[Record]) -> None:
            admitted, refused = self.inspection.sift(found)
            answers.extend(self._take(admitted, history=True))
            if refused:
                refusal = Refused(self.topic, self.id, message.exchange, refused)
                answers.append(Send(message.sender, refusal))

        return self.antientropy.on_message(message, take) + answers

    def _on_refused(self, view: View, message: Refused) -> list[Effect]:
        self.inspection.suspect(message.places)
        return []

    def _on_deposit(self, view: View, message: Deposit) -> list[Effect]:
        """Somebody publishes for others."""
        try:
            record = decode(message.record)
        except MalformedRecord:
            key = record_key(message.record)
            return [deposits.answer(self.topic, self.id, message.sender, key, deposits.MALFORMED)]
        if message.stage:
            return self.stage(message.sender, record)
        spread, durable = message.spread, message.durable
        return self.deposit(view, message.sender, record, spread=spread, durable=durable)

    def _on_review(self, view: View, message: Review | Settle) -> list[Effect]:
        """Somebody commits a batch."""
        return self.review(view, message.sender, message)

    def _settle(
        self, view: View, manifest: Manifest, portion: Portion, spread: Sequence[int]
    ) -> list[Effect]:
        """Publish some of what is staged of a manifest; nothing while a neighbour is behind."""
        if spread and len(self.broadcast.busy):
            return []
        due = self.batches.due(manifest, portion, self.horizon.present, spread)
        taken = self._take([record for _, record in due])
        sends: list[Effect] = []
        if not _full(taken):
            for at, record in due:
                if at in spread and record.key not in self.broadcast.seen:
                    sends += self.broadcast.publish(view, record)
        return [*sends, *taken]

    def _crowded(self, stream: Stream) -> bool:
        """Would this be one stream too many?"""
        lanes = self.holdings.store.index.lanes
        return len(lanes) >= OPEN_STREAMS_MAX and stream not in lanes

    def _on_nack(self, view: View, message: Nack) -> list[Effect]:
        return self.broadcast.on_nack(view, message)

    def _on_rejected(self, view: View, message: Rejected) -> list[Effect]:
        """Peers keep nothing so old. If so it is here by now, publish again; else they err."""
        horizon, rejectable = self.horizon, self.publisher.rejectable
        before = rejectable.get(message.key)
        record = self.publisher.restamp(message.key, horizon.present, horizon.lo)
        if before is None or record is None:
            return []
        spread = self._spread(view, record)
        if _full(spread):  # until somebody rejects it again
            rejectable[message.key] = before
        return spread

    def on_broadcast(self, view: View, message: Arc | Flood) -> list[Effect]:
        """Refuse what is expired to its publisher, else pass it on and deliver it.

        Whom it is passed on to need not wait for this node's disk.
        """
        try:
            record = decode(message.record)
        except MalformedRecord:
            return []
        if not self.inspection.admits(record):
            return []
        if record.time < self.horizon.lo:
            return [Send(record.publisher, Rejected(self.topic, self.id, record.key))]
        if isinstance(message, Arc):
            effects = self.broadcast.on_arc(view, message, record.key)
        else:
            effects = self.broadcast.on_flood(view, message, record.key)
        return effects + self._take([record])

    def _spread(self, view: View, *records: Record) -> list[Effect]:
        """Own records: all are on disk before anybody hears of one.

        They wait for the disk once. If one waited for another's, what is published next, and
        waits once, would be delivered between them. What the store refuses nobody hears of.
        """
        taken = self._take(records)
        if _full(taken):
            return taken
        sends = [send for record in records for send in self.broadcast.publish(view, record)]
        return [Persist(), *sends, *taken]

    def _take(self, records: Sequence[Record], *, history: bool = False) -> list[Effect]:
        """Store what came in and hand out what is new of it, kept or not; then put that on disk.

        So a crash in between repeats a delivery: the other order would lose one. What the store
        cannot take now is not here: peers bring it again.
        """
        effects: list[Effect] = []
        if self.reader.holes and self.holdings.tight(sum(it.count for it in records)):
            effects += self.reader.give_up()
        try:
            arrivals: list[Arrival] = self.holdings.append(records)
        except CapacityExceeded as error:
            return [*effects, Notice(self.topic, "full", {"reason": str(error)})]
        for one in arrivals:
            if one.record.columns & BATCH:
                effects += self.batches.notices(one)
        effects += self.reader.arrived(arrivals, history=history)
        return [*effects, Persist()] if effects else []

    def _show_window(self) -> list[Effect]:
        """Move the window; what waits behind a hole is handed out before it is out of sight."""
        window, effects = self.horizon.window, list[Effect]()
        if window != self.holdings.window:
            if self.reader.holes and self.holdings.hides(window):
                effects = self.reader.give_up()
            self.holdings.show(window)
        return effects


def _full(effects: Sequence[Effect]) -> bool:
    """Did the store refuse? Then that is the last to say."""
    return bool(effects) and isinstance(effects[-1], Notice) and effects[-1].kind == "full"


_HANDLERS: dict[type[Message], Callable[[History, View, Any], list[Effect]]] = {
    **dict.fromkeys(EXCHANGED, History._on_antientropy),
    Arc: History.on_broadcast,
    Flood: History.on_broadcast,
    Deposit: History._on_deposit,
    Nack: History._on_nack,
    Refused: History._on_refused,
    Rejected: History._on_rejected,
    Review: History._on_review,
    Settle: History._on_review,
}

PUBLICATION_MESSAGES = tuple(_HANDLERS)
