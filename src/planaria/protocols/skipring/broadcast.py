"""Broadcast of new publications over the skip ring: arcs, and flooding while in doubt (paper, 4.3).

In a legitimate state a publication costs n - 1 messages and reaches every node at its graph
distance. In any other state the rules R1-R6 (docs/overlays/ring.md) reach what they can and end;
convergence never rests on them but on anti-entropy alone. Knows nothing of the store: forwarding
never depends on what is stored (erratum T7), only on a volatile table of keys seen here.
"""

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from planaria.core.ids import NodeId
from planaria.core.node import Effect, Send
from planaria.protocols.publications.publication import Publication, key
from planaria.protocols.skipring.arcs import (
    INSIDE,
    Neighbour,
    Share,
    approach,
    reroute,
    split_arc,
)
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.skipring.labels import position

ARCS_MAX = 4  # distinct arcs served per key; a fifth shows a broken overlay, which needs a flood
REROUTES_MAX = 4  # orphaned arcs rerouted per key; a fifth needs a flood too
HOPS_MAX = 512  # far above log n; a ring this broken is left to anti-entropy
SEEN_MAX = 1 << 16  # keys in flight; a full table forwards nothing new, so it never repeats itself
SEEN_TIMEOUTS = 32  # no key is in flight for so long: log n hops take less, even one per timeout
HANDED_MAX = 1 << 10  # hand-offs whose loss could still be noticed; each holds a publication
HANDED_TIMEOUTS = 4  # a peer that answers nothing for so long is the failure detector's matter

K = TypeVar("K")
V = TypeVar("V")


class View(NamedTuple):
    """What the subscriber believes of its place: own label (None: none), own id, neighbours.

    In `doubt` (the subscriber is alarmed) everything is flooded.
    """

    label: int | None
    id: NodeId
    neighbours: list[Neighbour]
    doubt: bool = False


def view(
    label: int | None,
    id: NodeId,
    references: Iterable[Neighbour | None],
    doubt: bool = False,
) -> View:
    """The view of a subscriber with these references, each node once, itself never."""
    once: dict[NodeId, Neighbour] = {}
    for reference in references:
        if reference is not None and reference[1] != id:
            once.setdefault(reference[1], reference)
    return View(label, id, list(once.values()), doubt)


class Received(NamedTuple):
    """What to do, and what to offer to the store; deliver iff the insert is new (R1)."""

    effects: list[Effect]
    publication: Publication | None


class Refused(NamedTuple):
    """What to do, and the corrected reference (label or None, id) for the overlay to verify."""

    effects: list[Effect]
    hint: tuple[int | None, NodeId] | None


class Seen:
    """What this node did for one key."""

    __slots__ = ("arcs", "flooded", "reroutes")

    def __init__(self) -> None:
        self.arcs: list[tuple[int, int, int]] = []
        self.reroutes = 0
        self.flooded = False


class Recent(Generic[K, V]):
    """A table that forgets: an entry lives for `timeouts` to twice as many timeouts.

    In a crowded table it lives for one timeout at least: half of `entries_max` new entries fit
    between two timeouts without one being refused.
    """

    __slots__ = ("_age", "_old", "_timeouts", "_young", "entries_max")

    def __init__(self, entries_max: int, timeouts: int) -> None:
        self.entries_max = entries_max
        self._timeouts = timeouts
        self._age = 0
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, name: K) -> V | None:
        """The entry of that name, if it is not forgotten."""
        found = self._young.get(name)
        return self._old.get(name) if found is None else found

    def put(self, name: K, value: V) -> bool:
        """Keep an entry; False, and nothing kept, if the table is full."""
        if len(self) >= self.entries_max:
            return False
        self._young[name] = value
        return True

    def pop(self, name: K) -> V | None:
        """Take the entry of that name out."""
        found = self._young.pop(name, None)
        return self._old.pop(name, None) if found is None else found

    def names(self) -> list[K]:
        """All names, the older ones first."""
        return [*self._old, *self._young]

    def forget(self) -> None:
        """Forget the older half."""
        self._age = 0
        self._old, self._young = self._young, {}

    def on_timeout(self) -> None:
        """Time passed: forget the older half every `timeouts` calls, or when half full."""
        self._age += 1
        crowded = 2 * len(self) >= self.entries_max
        if crowded or not 0 <= self._age < self._timeouts:
            self.forget()


class Handed(NamedTuple):
    """A share given away, so that it can be served otherwise when its receiver is not there."""

    publication: Publication
    share: Share
    hops: int


class Broadcast:
    """One subscriber's part in the broadcasts of one topic.

    Per key it serves at most `ARCS_MAX` arcs, reroutes `REROUTES_MAX` and floods once, so every
    broadcast ends, whatever the tables say.
    """

    __slots__ = ("handed", "id", "seen", "topic")

    def __init__(self, topic: str, id: NodeId) -> None:
        self.topic = topic
        self.id = id
        self.seen: Recent[bytes, Seen] = Recent(SEEN_MAX, SEEN_TIMEOUTS)
        self.handed: Recent[tuple[NodeId, bytes, int, int, int], Handed] = Recent(
            HANDED_MAX, HANDED_TIMEOUTS
        )

    def publish(self, view: View, publication: Publication) -> list[Effect]:
        """Start the broadcast of a new publication: this node's arc is the whole ring."""
        name = key(publication)
        seen = self._seen(name)
        if seen is None:
            return []
        if view.doubt or view.label is None:
            return self._flood(view, seen, publication, 0)
        here = position(view.label)
        seen.arcs.append((here, here, INSIDE))
        shares = split_arc(view.label, view.neighbours, here, here)
        return self._hand(name, publication, shares, 1)

    def on_arc(self, view: View, message: Arc) -> Received:
        """Serve an arc (R2), or give it back if it was meant for another label (R3)."""
        if message.topic != self.topic:
            return Received([], None)
        publication = message.publication
        name = key(publication)
        effects: list[Effect] = []
        misdirected = view.label is None or message.to != view.label
        if misdirected and message.sender != self.id:
            lo, hi, side = message.lo, message.hi, message.side
            nack = Nack(self.topic, self.id, name, lo, hi, side, view.label)
            effects.append(Send(message.sender, nack))
        seen = self._seen(name)
        if seen is None or seen.flooded or not 0 <= message.hops < HOPS_MAX:
            return Received(effects, publication)
        if view.doubt:
            effects += self._flood(view, seen, publication, message.hops)
        elif not misdirected:
            effects += self._serve(view, seen, name, message)
        return Received(effects, publication)

    def on_flood(self, view: View, message: Flood) -> Received:
        """Pass the first flood of a key on to all other neighbours (R6), stored or not (T7)."""
        if message.topic != self.topic:
            return Received([], None)
        publication = message.publication
        seen = self._seen(key(publication))
        effects: list[Effect] = []
        if seen is not None and not seen.flooded and 0 <= message.hops < HOPS_MAX:
            effects = self._flood(view, seen, publication, message.hops, message.sender)
        return Received(effects, publication)

    def on_nack(self, view: View, message: Nack) -> Refused:
        """A receiver is not where this node believed: serve its arc otherwise (R3, R4)."""
        if message.topic != self.topic:
            return Refused([], None)
        believed = [label for label, id in view.neighbours if id == message.sender]
        hint = None
        if believed and believed[0] != message.label:
            hint = (message.label, message.sender)
        name = (message.sender, message.key, message.lo, message.hi, message.side)
        handed = self.handed.pop(name)
        if handed is None:
            return Refused([], hint)
        others = [n for n in view.neighbours if n[1] != message.sender]
        if message.label is not None:
            others.append((message.label, message.sender))
        return Refused(self._orphan(view._replace(neighbours=others), message.key, handed), hint)

    def link_down(self, view: View, peer: NodeId) -> list[Effect]:
        """The driver lost `peer`: serve the arcs lately handed to it otherwise (R4)."""
        others = view._replace(neighbours=[n for n in view.neighbours if n[1] != peer])
        effects: list[Effect] = []
        for name in self.handed.names():
            if name[0] == peer:
                handed = self.handed.pop(name)
                if handed is not None:
                    effects += self._orphan(others, name[1], handed)
        return effects

    def on_timeout(self) -> None:
        """Time passed: forget keys that are no longer in flight."""
        self.seen.on_timeout()
        self.handed.on_timeout()

    def _seen(self, name: bytes) -> Seen | None:
        """What was done for a key; None if the table is full: then nothing is forwarded."""
        seen = self.seen.get(name)
        if seen is None:
            seen = Seen()
            if not self.seen.put(name, seen):
                return None
        return seen

    def _serve(self, view: View, seen: Seen, name: bytes, message: Arc) -> list[Effect]:
        """Hand an arc on once; one arc too many shows a broken overlay and floods (R2)."""
        arc = (message.lo, message.hi, message.side)
        if view.label is None or arc in seen.arcs:
            return []
        if len(seen.arcs) >= ARCS_MAX:
            return self._flood(view, seen, message.publication, message.hops)
        seen.arcs.append(arc)
        shares = approach(view.label, view.neighbours, *arc)
        return self._hand(name, message.publication, shares, message.hops + 1)

    def _orphan(self, view: View, name: bytes, handed: Handed) -> list[Effect]:
        """Serve an orphaned arc otherwise (R4); one too many shows a broken overlay and floods."""
        seen = self._seen(name)
        if seen is None or seen.flooded or not 0 <= handed.hops < HOPS_MAX:
            return []
        if view.label is None or view.doubt or not 0 <= seen.reroutes < REROUTES_MAX:
            return self._flood(view, seen, handed.publication, handed.hops)
        seen.reroutes += 1
        shares = reroute(view.label, view.neighbours, handed.share)
        return self._hand(name, handed.publication, shares, handed.hops + 1)

    def _hand(
        self, name: bytes, publication: Publication, shares: list[Share], hops: int
    ) -> list[Effect]:
        """Send each share to its neighbour, and remember it for a while."""
        effects: list[Effect] = []
        for share in shares:
            label, peer, lo, hi, side = share
            entry, handed = (peer, name, lo, hi, side), Handed(publication, share, hops)
            if not self.handed.put(entry, handed):
                self.handed.forget()  # the loss of the newest hand-offs is the likeliest to show
                self.handed.put(entry, handed)
            arc = Arc(self.topic, self.id, publication, label, lo, hi, side, hops)
            effects.append(Send(peer, arc))
        return effects

    def _flood(
        self,
        view: View,
        seen: Seen,
        publication: Publication,
        hops: int,
        sender: NodeId | None = None,
    ) -> list[Effect]:
        """Send a key to all neighbours but the one it came from, once."""
        seen.flooded = True
        flood = Flood(self.topic, self.id, publication, hops + 1)
        return [Send(peer, flood) for _, peer in view.neighbours if peer != sender]
