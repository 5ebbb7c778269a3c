"""The publications of one topic at one subscriber: spread, stored, kept, delivered.

Joins the parts of this package. A publication comes by broadcast or by anti-entropy; whichever
way, it is stored if the topic's window and quota admit it, and delivered if it never was.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.node import Effect, Send, Stateful
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import AntiEntropyMessage, Digest
from planaria.protocols.publications.broadcast import Broadcast, Received, View
from planaria.protocols.publications.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.publications.publication import (
    EPOCH_MAX,
    PAYLOAD_BYTES_MAX,
    Publication,
    key,
)
from planaria.protocols.publications.retention import Horizon, Quota, Rejected, Retention
from planaria.protocols.publications.store import LIMIT_MAX, PublicationStore, place_of
from planaria.protocols.publications.streams import Publisher, Stamp, Streams

PublicationMessage = AntiEntropyMessage | Arc | Flood | Nack | Rejected


class History(Stateful):
    """What a subscriber holds of one topic, and its part in bringing it to all others."""

    __slots__ = (
        "antientropy",
        "broadcast",
        "horizon",
        "id",
        "publisher",
        "quota",
        "retention",
        "store",
        "streams",
        "topic",
    )

    def __init__(
        self, topic: str, id: NodeId, rng: Random, retention: Retention, *, ordered: bool
    ) -> None:
        self.topic, self.id, self.retention = topic, id, retention
        self.store = PublicationStore(retention.count or LIMIT_MAX)
        self.antientropy = AntiEntropy(topic, id, self.store)
        self.broadcast = Broadcast(topic, id)
        self.horizon = Horizon(retention)
        self.quota = Quota(retention)
        self.streams = Streams(topic, ordered)
        self.publisher = Publisher(id, rng)

    def publish(self, view: View, payload: bytes) -> list[Effect]:
        """PUBLISH: number the payload, store and deliver it here, broadcast it to all."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise UsageError(
                f"payload of {len(payload)} bytes: at most {PAYLOAD_BYTES_MAX}, split it"
            )
        publication = self.publisher.publish(payload, self.horizon.epoch or 0, self.horizon.lo)
        return self._accept(publication) + self.broadcast.publish(view, publication)

    def on_message(self, view: View, message: PublicationMessage) -> list[Effect]:
        """Take any message about publications, however false."""
        if isinstance(message, AntiEntropyMessage):
            effects, fresh = self.antientropy.on_message(message)
            return effects + [effect for one in fresh for effect in self._admit(one)]
        if isinstance(message, Arc):
            return self._received(message, lambda: self.broadcast.on_arc(view, message))
        if isinstance(message, Flood):
            return self._received(message, lambda: self.broadcast.on_flood(view, message))
        if isinstance(message, Nack):
            return self.broadcast.on_nack(view, message).effects
        return self._restamp(view, message)

    def on_digest(self, sender: NodeId, digest: Digest) -> list[Effect]:
        """A neighbour shows its clock and what it holds: vote, compare, reconcile."""
        self.horizon.hear(sender, digest.clock)
        return self.antientropy.on_digest(sender, digest)

    def digest(self) -> Digest:
        """What to put on every periodic message."""
        return self.antientropy.digest()

    def on_timeout(self, neighbours: list[NodeId]) -> list[Effect]:
        """Time passed: age clocks and tables, delete what expired, audit a slice."""
        self.horizon.on_timeout(neighbours)
        self._show_window()
        stored = [] if self.store.empty else self.store.epochs() + self.store.hidden()
        expired = self.horizon.expire(stored)
        if expired is not None:
            self.store.remove_bucket(expired)
            self.quota.forget((self.horizon.lo, 0))
        self.broadcast.on_timeout()
        return self.antientropy.on_timeout() + self.streams.on_timeout(self.horizon.lo)

    def read_clock(self, seconds: int) -> None:
        """The driver read the wall clock."""
        self.horizon.read_clock(seconds)
        self.antientropy.clock = self.horizon.clock or 0
        self._show_window()

    def link_down(self, view: View, peer: NodeId) -> list[Effect]:
        """A send to `peer` failed: serve otherwise what was lately handed to it."""
        self.antientropy.link_down(peer)
        return self.broadcast.link_down(view, peer)

    def snapshot(self) -> dict[str, Any]:
        """What a store keeps: publications, delivered marks, my own numbering."""
        held = [*self.store.publications()]
        return {
            "publications": held,
            "delivered": self.horizon.delivered.marks(),
            "stamp": self.publisher.stamp,
            "ordered": self.streams.ordered,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take a stored state, however old or corrupt: keys and checks are computed anew."""
        for epoch, marks in snapshot.get("delivered", {}).items():
            for mark in marks:
                self.horizon.delivered.add(epoch, mark)
        for publication in snapshot.get("publications", []):
            self._admit_silently(publication)
        self.streams.ordered = bool(snapshot.get("ordered", False))
        stamp = snapshot.get("stamp")
        self.publisher.stamp = stamp if isinstance(stamp, Stamp) else None

    def _received(self, message: Arc | Flood, receive: Callable[[], Received]) -> list[Effect]:
        """A broadcast: refuse what is outside the window to its publisher, else pass it on."""
        rejected = self.horizon.reject(self.topic, self.id, message.publication)
        if rejected is not None:
            return [Send(message.publication.publisher, rejected)]
        received = receive()
        if received.publication is None:
            return received.effects
        return self._accept(received.publication) + received.effects

    def _accept(self, publication: Publication) -> list[Effect]:
        return self._admit(publication) if self.store.insert(publication) else []

    def _admit(self, publication: Publication) -> list[Effect]:
        """Deliver what was just stored, unless the quota puts it out again or it once was."""
        surplus = self.quota.add(publication.publisher, place_of(publication))
        if surplus is not None:
            self.store.remove(surplus)
        if surplus == place_of(publication):
            return []
        if not self.horizon.delivered.add(publication.epoch, key(publication)):
            return []
        return self.streams.offer(publication)

    def _admit_silently(self, publication: Publication) -> None:
        if self.store.insert(publication):
            self.quota.add(publication.publisher, place_of(publication))
            self.horizon.delivered.add(publication.epoch, key(publication))
            self.streams.offer(publication)

    def _restamp(self, view: View, message: Rejected) -> list[Effect]:
        """Peers live in another epoch: publish again under theirs, forget the old stamp."""
        publication = self.publisher.on_rejected(message)
        if publication is None or not self.horizon.accepts(publication.epoch):
            return []
        return self._accept(publication) + self.broadcast.publish(view, publication)

    def _show_window(self) -> None:
        horizon = self.horizon
        hi = EPOCH_MAX if horizon.epoch is None else horizon.epoch + 1
        if (self.store.lo, self.store.hi) != (horizon.lo, hi):
            self.store.set_window(horizon.lo, hi)
