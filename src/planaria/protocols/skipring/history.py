"""The publications of one topic at one subscriber: spread, stored, kept, delivered.

Joins the parts of this package. A publication comes by broadcast or by anti-entropy; whichever
way, it is delivered if it is not expired and never was; what is kept of it is another matter.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.node import Effect, Send, Stateful
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import AntiEntropyMessage, Digest
from planaria.protocols.publications.publication import (
    PAYLOAD_BYTES_MAX,
    Publication,
    key,
    sound,
)
from planaria.protocols.publications.retention import Horizon, Rejected, Retention
from planaria.protocols.publications.store import PublicationStore
from planaria.protocols.publications.streams import Publisher, Stamp, Streams
from planaria.protocols.skipring.broadcast import Broadcast, Received, View
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack

PublicationMessage = AntiEntropyMessage | Arc | Flood | Nack | Rejected


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
        """PUBLISH: number the payload, store and deliver it here, broadcast it to all."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise UsageError(
                f"payload of {len(payload)} bytes: at most {PAYLOAD_BYTES_MAX}, split it"
            )
        publication = self.publisher.publish(payload, self.horizon.present, self.horizon.lo)
        return self._accept(publication) + self.broadcast.publish(view, publication)

    def on_message(self, view: View, message: PublicationMessage) -> list[Effect]:
        """Take any message about publications, however false."""
        if isinstance(message, AntiEntropyMessage):
            effects, fresh = self.antientropy.on_message(message)
            return effects + [effect for one in fresh for effect in self._deliver(one)]
        if isinstance(message, Arc):
            return self._received(message, lambda: self.broadcast.on_arc(view, message))
        if isinstance(message, Flood):
            return self._received(message, lambda: self.broadcast.on_flood(view, message))
        if isinstance(message, Nack):
            return self.broadcast.on_nack(view, message).effects
        return self._restamp(view, message)

    def on_digest(self, sender: NodeId, digest: Digest) -> list[Effect]:
        """A neighbour shows its clock and what it holds: vote, compare, reconcile."""
        self.horizon.hear(sender, digest.clock, digest.lo)
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
        return self.antientropy.on_timeout() + self.streams.on_timeout(self.horizon.lo)

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

    def snapshot(self) -> dict[str, Any]:
        """What a store keeps: publications, delivered marks, my own numbering."""
        held = [*self.store.publications(), *self.store.hidden.values()]
        return {
            "publications": held,
            "delivered": self.horizon.delivered.marks(),
            "stamp": self.publisher.stamp,
            "ordered": self.streams.ordered,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state, however old or corrupt: keys and checks are computed anew."""
        for time, marks in snapshot.get("delivered", {}).items():
            for mark in marks:
                self.horizon.delivered.add(time, mark)
        held = [one for one in snapshot.get("publications", []) if sound(one)]
        self.horizon.keep(len(held))
        self.store.load(held)
        for publication in held:
            self.horizon.delivered.add(publication.time, key(publication))
            self.streams.offer(publication)
        self.streams.ordered = bool(snapshot.get("ordered", False))
        stamp = snapshot.get("stamp")
        self.publisher.stamp = stamp if isinstance(stamp, Stamp) else None

    def _received(self, message: Arc | Flood, receive: Callable[[], Received]) -> list[Effect]:
        """A broadcast: refuse what is expired to its publisher, else pass it on."""
        rejected = self.horizon.reject(self.topic, self.id, message.publication)
        if rejected is not None:
            return [Send(message.publication.publisher, rejected)]
        received = receive()
        if received.publication is None:
            return received.effects
        return self._accept(received.publication) + received.effects

    def _accept(self, publication: Publication) -> list[Effect]:
        new = self.store.is_new(publication)
        self.store.insert(publication)
        return self._deliver(publication) if new else []

    def _deliver(self, publication: Publication) -> list[Effect]:
        """Deliver what came in, kept or not, unless it once was."""
        if not self._mark(publication):
            return []
        return self.streams.offer(publication)

    def _mark(self, publication: Publication) -> bool:
        return self.horizon.delivered.add(publication.time, key(publication))

    def _restamp(self, view: View, message: Rejected) -> list[Effect]:
        """Peers keep nothing so old. If so it is here by now, publish again; else they err."""
        horizon = self.horizon
        publication = self.publisher.restamp(message.key, horizon.present, horizon.lo)
        if publication is None or not sound(publication):
            return []
        return self._accept(publication) + self.broadcast.publish(view, publication)

    def _show_window(self) -> None:
        self.store.show(self.horizon.window)
