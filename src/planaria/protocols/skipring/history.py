"""The publications of one topic at one subscriber: spread, stored, kept, delivered.

Joins the parts of this package. A publication comes by broadcast or by anti-entropy; whichever
way, it is named once, where it comes in, and delivered if it is not expired and never was; what is
kept of it is another matter.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Persist, Published, Send
from planaria.core.state import State, Stateful
from planaria.protocols.publications.antientropy import AntiEntropy, AntiEntropyState
from planaria.protocols.publications.antientropy_messages import (
    AntiEntropyMessage,
    Compare,
    Difference,
    Digest,
    Done,
    Estimate,
    More,
    Push,
    Root,
    Sketch,
)
from planaria.protocols.publications.publication import (
    PAYLOAD_BYTES_MAX,
    Named,
    Publication,
    key,
    position_id,
    sound,
)
from planaria.protocols.publications.retention import Horizon, HorizonState, Rejected, Retention
from planaria.protocols.publications.store import PublicationStore, StoreState
from planaria.protocols.publications.streams import (
    Publisher,
    PublisherState,
    Streams,
    StreamsState,
)
from planaria.protocols.skipring.broadcast import Broadcast, BroadcastState, View
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack


class HistoryState(State):
    """What a subscriber holds of one topic, and all that it remembers of spreading it."""

    store: StoreState
    antientropy: AntiEntropyState
    broadcast: BroadcastState
    horizon: HorizonState
    streams: StreamsState
    publisher: PublisherState


class History(Stateful):
    """What a subscriber holds of one topic, and its part in bringing it to all others."""

    __slots__ = (
        "antientropy",
        "broadcast",
        "horizon",
        "id",
        "publisher",
        "store",
        "streams",
        "topic",
    )

    state_type = HistoryState

    def __init__(
        self, topic: str, id: NodeId, rng: Random, retention: Retention, *, ordered: bool
    ) -> None:
        self.topic, self.id = topic, id
        self.store = PublicationStore()
        self.antientropy = AntiEntropy(topic, id, self.store)
        self.broadcast = Broadcast(topic, id)
        self.horizon = Horizon(retention)
        self.streams = Streams(topic, ordered, mark=self._mark)
        self.publisher = Publisher(id, rng)
        self._show_window()

    def publish(self, view: View, payload: bytes) -> list[Effect]:
        """PUBLISH: number the payload, store it on disk, deliver it here, broadcast it to all."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise UsageError(
                f"payload of {len(payload)} bytes: at most {PAYLOAD_BYTES_MAX}, split it"
            )
        named = self.publisher.publish(payload, self.horizon.present, self.horizon.lo)
        said = named[1]
        published = Published(self.topic, position_id(said), said.publisher, said.sequence)
        return [published, *self._spread(view, named)]

    def on_message(self, view: View, message: Message) -> list[Effect]:
        """Take any message about publications, however false."""
        handler = _HANDLERS.get(type(message))
        return handler(self, view, message) if handler else []

    def on_digest(self, sender: NodeId, digest: Digest) -> list[Effect]:
        """A neighbour shows its clock and what it holds: vote, compare, reconcile.

        One whose link is full would get nothing of what is sent to it now.
        """
        self.horizon.hear(sender, digest.clock, digest.lo)
        if sender in self.broadcast.busy:
            return []
        return self.antientropy.on_digest(sender, digest)

    def digest(self) -> Digest:
        """What to put on every periodic message."""
        return self.antientropy.digest()

    def on_timeout(self, neighbours: list[NodeId]) -> list[Effect]:
        """Time passed: age clocks and tables, delete what expired, audit a slice."""
        self.horizon.on_timeout(neighbours)
        self._show_window()
        self.store.purge(self.horizon.windows())
        self.broadcast.on_timeout()
        self.antientropy.on_timeout()
        effects = self.streams.on_timeout(self.horizon.lo)
        return [*effects, Persist()] if effects else []

    def read_clock(self, seconds: int) -> None:
        """The driver read the wall clock."""
        self.horizon.read_clock(seconds)
        self.antientropy.clock = self.horizon.seconds or 0
        self._show_window()

    def retain(self, retention: Retention) -> None:
        """Another setting: it hides or shows at once, and deletes after the grace."""
        self.horizon.retain(retention)
        self._show_window()

    def link_down(self, view: View, peer: NodeId) -> list[Effect]:
        """A send to `peer` failed: serve otherwise what was lately handed to it."""
        self.antientropy.link_down(peer)
        return self.broadcast.link_down(view, peer)

    def _on_antientropy(self, view: View, message: AntiEntropyMessage) -> list[Effect]:
        """What anti-entropy brings is delivered, and starts no broadcast (R5)."""
        effects, fresh = self.antientropy.on_message(message)
        return effects + self._deliver(fresh)

    def _on_arc(self, view: View, message: Arc) -> list[Effect]:
        return self._received(view, message, self.broadcast.on_arc)

    def _on_flood(self, view: View, message: Flood) -> list[Effect]:
        return self._received(view, message, self.broadcast.on_flood)

    def _on_nack(self, view: View, message: Nack) -> list[Effect]:
        return self.broadcast.on_nack(view, message)

    def _on_rejected(self, view: View, message: Rejected) -> list[Effect]:
        """Peers keep nothing so old. If so it is here by now, publish again; else they err."""
        horizon = self.horizon
        named = self.publisher.restamp(message.key, horizon.present, horizon.lo)
        return self._spread(view, named) if named is not None and sound(named[1]) else []

    def _received(
        self, view: View, message: Any, pass_on: Callable[[View, Any, bytes], list[Effect]]
    ) -> list[Effect]:
        """A broadcast: refuse what is expired to its publisher, else pass it on and deliver it.

        Whom it is passed on to need not wait for this node's disk.
        """
        publication: Publication = message.publication
        if not sound(publication):
            return []
        name = key(publication)
        if publication.time < self.horizon.lo:
            return [Send(publication.publisher, Rejected(self.topic, self.id, name))]
        effects = pass_on(view, message, name)
        if self.store.offer(publication, name):
            effects += self._deliver([(name, publication)])
        return effects

    def _spread(self, view: View, named: Named) -> list[Effect]:
        """An own publication: it is on disk before anybody hears of it."""
        name, publication = named
        self.store.offer(publication, name)
        sends = self.broadcast.publish(view, publication, name)
        return [Persist(), *sends, *self._deliver([named])]

    def _deliver(self, found: list[Named]) -> list[Effect]:
        """Deliver what came in, kept or not, unless it once was; then put on disk that it was.

        So a crash in between repeats a delivery: the other order would lose one.
        """
        effects: list[Effect] = []
        for name, publication in found:
            if self.horizon.delivered.add(publication.time, name):
                effects += self.streams.offer(publication)
        return [*effects, Persist()] if effects else []

    def _mark(self, publication: Publication) -> None:
        self.horizon.delivered.add(publication.time, key(publication))

    def _show_window(self) -> None:
        self.store.show(self.horizon.window)


_EXCHANGED: tuple[type[Message], ...] = (
    Estimate, Sketch, More, Difference, Push, Root, Compare, Done,
)  # fmt: skip
_HANDLERS: dict[type[Message], Callable[[History, View, Any], list[Effect]]] = {
    **dict.fromkeys(_EXCHANGED, History._on_antientropy),
    Arc: History._on_arc,
    Flood: History._on_flood,
    Nack: History._on_nack,
    Rejected: History._on_rejected,
}

PUBLICATION_MESSAGES = tuple(_HANDLERS)
