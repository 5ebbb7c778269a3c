"""Broadcast of new records over the skip ring: arcs, and flooding while in doubt (paper, 4.3).

In a legitimate state a record costs n - 1 messages and reaches every node at its graph
distance. In any other state the rules R1-R6 (docs/overlays/ring.md) reach what they can and end;
convergence never rests on them but on anti-entropy alone. Knows nothing of the store: forwarding
never depends on what is stored (erratum T7), only on a volatile table of keys seen here.
"""

from collections.abc import Iterable

from msgspec import Struct

from planaria.core.forgetting import Forgetful, ForgetfulState
from planaria.core.ids import NodeId
from planaria.core.node import Effect, Notice, Send
from planaria.core.state import State, Stateful
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
from planaria.records.record import Record

ARCS_MAX = 4  # distinct arcs served per key; a fifth shows a broken overlay, which needs a flood
REROUTES_MAX = 4  # orphaned arcs rerouted per key; a fifth needs a flood too
HOPS_MAX = 512  # far above log n; a ring this broken is left to anti-entropy
SEEN_MAX = 1 << 18  # keys in flight; a full table serves arcs alone, and says so
SEEN_TIMEOUTS = 32  # no key is in flight for so long: log n hops take less, even one per timeout
HANDED_MAX = 1 << 16  # hand-offs whose loss could still be noticed
HANDED_BYTES_MAX = 16 << 20  # of the records in them
AGAIN_BYTES_MAX = 2 << 20  # served otherwise when a link is lost: what its window held, no more
SPLITS_MAX = 1 << 10  # arcs whose division is remembered while the place stays the same
HANDED_TIMEOUTS = 4  # a peer that answers nothing for so long is the failure detector's matter
BUSY_MAX = 1 << 8  # links that are full: a node has at most 2 * 62 neighbours
BUSY_TIMEOUTS = 4  # a link that is full for longer is reported again, or the report was false

Entry = tuple[int, bytes, int, int, int]  # of a share that was handed on: to whom, of what, which


class View:
    """What the subscriber believes of its place: own label (None: none), own id, neighbours.

    In `doubt` (the subscriber is alarmed) everything is flooded. How it divides an arc follows from
    it alone, and is worked out once.
    """

    __slots__ = ("_splits", "doubt", "id", "label", "neighbours")

    def __init__(
        self, label: int | None, id: NodeId, neighbours: list[Neighbour], doubt: bool = False
    ) -> None:
        self.label, self.id, self.neighbours, self.doubt = label, id, neighbours, doubt
        self._splits: dict[tuple[int, int, int], list[Share]] = {}

    def beside(self, neighbours: list[Neighbour]) -> "View":
        """The same place with other neighbours."""
        return View(self.label, self.id, neighbours, self.doubt)

    def divide(self, arc: tuple[int, int, int]) -> list[Share]:
        """Who is to serve which part of an arc; nobody if this node has no place."""
        if self.label is None:
            return []
        shares = self._splits.get(arc)
        if shares is None:
            lo, hi, side = arc
            if len(self._splits) >= SPLITS_MAX:
                self._splits.clear()
            if lo == hi == position(self.label):
                shares = split_arc(self.label, self.neighbours, lo, hi)
            else:
                shares = approach(self.label, self.neighbours, lo, hi, side)
            self._splits[arc] = shares
        return shares


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


class Seen(Struct, gc=False):
    """What this node did for one key."""

    arcs: tuple[tuple[int, int, int], ...] = ()
    reroutes: int = 0
    flooded: bool = False


class Handed(Struct, frozen=True, array_like=True, gc=False):
    """A share given away, so that it can be served otherwise when its receiver is not there."""

    record: bytes
    share: Share
    hops: int


class BroadcastState(State):
    """Keys in flight, shares that were handed on, and neighbours whose links are full.

    `handed_bytes` counts the records in the shares, `refused` the floods since a timeout for which
    there was no room.
    """

    seen: ForgetfulState[bytes, Seen]
    handed: ForgetfulState[Entry, Handed]
    busy: ForgetfulState[int, None]
    handed_bytes: int
    refused: int


class Broadcast(Stateful):
    """One subscriber's part in the broadcasts of one topic.

    Per key it serves at most `ARCS_MAX` arcs, reroutes `REROUTES_MAX` and floods once, so every
    broadcast ends, whatever the tables say.
    """

    __slots__ = ("busy", "handed", "handed_bytes", "id", "refused", "seen", "topic")

    state_type = BroadcastState

    def __init__(self, topic: str, id: NodeId) -> None:
        self.topic = topic
        self.id = id
        self.seen: Forgetful[bytes, Seen] = Forgetful(SEEN_MAX, SEEN_TIMEOUTS)
        self.handed: Forgetful[Entry, Handed] = Forgetful(HANDED_MAX, HANDED_TIMEOUTS)
        self.busy: Forgetful[NodeId, None] = Forgetful(BUSY_MAX, BUSY_TIMEOUTS)
        self.handed_bytes = 0
        self.refused = 0

    def publish(self, view: View, record: Record) -> list[Effect]:
        """Start the broadcast of a new record: this node's arc is the whole ring."""
        seen = self._seen(record.key)
        if view.doubt or view.label is None:
            return self._flood(view, seen, record.data, 0)
        here = position(view.label)
        arc = (here, here, INSIDE)
        if seen is not None:
            seen.arcs = (arc,)
        return self._hand(view, record.key, record.data, view.divide(arc), 1)

    def on_arc(self, view: View, message: Arc, name: bytes) -> list[Effect]:
        """Serve an arc (R2), or give it back if it was meant for another label (R3).

        `name` is the record's key, here and below.
        """
        effects: list[Effect] = []
        misdirected = view.label is None or message.to != view.label
        if misdirected and message.sender != self.id:
            lo, hi, side = message.lo, message.hi, message.side
            nack = Nack(self.topic, self.id, name, lo, hi, side, view.label)
            effects.append(Send(message.sender, nack))
        seen = self._seen(name)
        if (seen is not None and seen.flooded) or not 0 <= message.hops < HOPS_MAX:
            return effects
        if view.doubt:
            return effects + self._flood(view, seen, message.record, message.hops)
        return effects if misdirected else self._serve(view, seen, name, message)

    def on_flood(self, view: View, message: Flood, name: bytes) -> list[Effect]:
        """Pass the first flood of a key on to all other neighbours (R6), stored or not (T7)."""
        seen = self._seen(name)
        if (seen is not None and seen.flooded) or not 0 <= message.hops < HOPS_MAX:
            return []
        return self._flood(view, seen, message.record, message.hops, message.sender)

    def on_nack(self, view: View, message: Nack) -> list[Effect]:
        """A receiver is not where this node believed: serve its arc otherwise (R3, R4)."""
        entry = (message.sender, message.key, message.lo, message.hi, message.side)
        handed = self.handed.pop(entry)
        if handed is None:
            return []
        others = [n for n in view.neighbours if n[1] != message.sender]
        if message.label is not None:
            others.append((message.label, message.sender))
        return self._orphan(view.beside(others), message.key, handed)

    def link_down(self, view: View, peer: NodeId) -> list[Effect]:
        """The driver lost `peer`: serve the arcs lately handed to it otherwise (R4).

        What the driver says was not acknowledged would do for this, but not for a refusal (R3):
        the table is needed anyway, and one way is enough. The newest are served, up to
        `AGAIN_BYTES_MAX`: the peer acknowledged the others, and more would fill other links.
        """
        self.ready(peer)
        others = view.beside([n for n in view.neighbours if n[1] != peer])
        again: list[tuple[bytes, Handed]] = []
        size = 0
        for name in reversed([name for name in self.handed if name[0] == peer]):
            handed = self.handed.pop(name)
            if handed is not None and size < AGAIN_BYTES_MAX:
                again.append((name[1], handed))
                size += len(handed.record)
        served = [self._orphan(others, key, handed) for key, handed in reversed(again)]
        return [effect for effects in served for effect in effects]

    def link_full(self, peer: NodeId) -> None:
        """What is sent to `peer` is dropped: hand its shares to others from now on."""
        if peer not in self.busy:
            self.busy.put(peer, None)

    def ready(self, peer: NodeId) -> bool:
        """The link to `peer` takes messages again; was it full?"""
        full = peer in self.busy
        self.busy.pop(peer)
        return full

    def on_timeout(self) -> list[Effect]:
        """Time passed: forget keys that are no longer in flight, the sooner the more there are.

        A third of a table's entries fit between two timeouts without one being refused.
        """
        self.busy.on_timeout()
        for table in (self.seen, self.handed):
            if 3 * len(table) >= table.entries_max:
                table.forget()
            else:
                table.on_timeout()
        self._weigh()
        refused, self.refused = self.refused, 0
        if refused <= 0:
            return []
        return [Notice(self.topic, "overload", {"floods": refused})]

    def _weigh(self) -> None:
        tables = self.handed.generations
        self.handed_bytes = sum(len(it.record) for table in tables for it in table.values())

    def _seen(self, name: bytes) -> Seen | None:
        """What was done for a key; None if the table is full.

        Then arcs are served all the same, since each is divided into smaller ones and so they end;
        a flood that nobody remembers would not.
        """
        return self.seen.setdefault(name, Seen())

    def _serve(self, view: View, seen: Seen | None, name: bytes, message: Arc) -> list[Effect]:
        """Hand an arc on once; one arc too many shows a broken overlay and floods (R2)."""
        arc = (message.lo, message.hi, message.side)
        if view.label is None or (seen is not None and arc in seen.arcs):
            return []
        if seen is not None:
            if len(seen.arcs) >= ARCS_MAX:
                return self._flood(view, seen, message.record, message.hops)
            seen.arcs += (arc,)
        return self._hand(view, name, message.record, view.divide(arc), message.hops + 1)

    def _orphan(self, view: View, name: bytes, handed: Handed) -> list[Effect]:
        """Serve an orphaned arc otherwise (R4); one too many shows a broken overlay and floods."""
        seen = self._seen(name)
        if seen is None or seen.flooded or not 0 <= handed.hops < HOPS_MAX:
            return []
        if view.label is None or view.doubt or not 0 <= seen.reroutes < REROUTES_MAX:
            return self._flood(view, seen, handed.record, handed.hops)
        seen.reroutes += 1
        shares = reroute(view.label, view.neighbours, handed.share)
        return self._hand(view, name, handed.record, shares, handed.hops + 1)

    def _hand(
        self, view: View, name: bytes, record: bytes, shares: list[Share], hops: int
    ) -> list[Effect]:
        """Send each share to its neighbour, and remember it for a while."""
        effects: list[Effect] = []
        if not shares:  # half of the nodes are at the end of their arc
            return effects
        topic, id = self.topic, self.id
        for share in self._around_busy(view, shares) if self.busy else shares:
            label, peer, lo, hi, side = share
            self._note((peer, name, lo, hi, side), Handed(record, share, hops))
            effects.append(Send(peer, Arc(topic, id, record, label, lo, hi, side, hops)))
        return effects

    def _note(self, entry: Entry, handed: Handed) -> None:
        """Remember a hand-off; the loss of the newest is the likeliest to show."""
        self.handed_bytes += len(handed.record)
        if self.handed_bytes > HANDED_BYTES_MAX or not self.handed.put(entry, handed):
            self.handed.forget()
            self.handed.put(entry, handed)
            self._weigh()

    def _around_busy(self, view: View, shares: list[Share]) -> list[Share]:
        """Let others serve what is for a neighbour whose link is full (R4).

        Up to half the ring lies behind it and must not wait. What nobody else can approach, and
        the neighbour itself unless one of its own reaches it, is left to anti-entropy: to flood
        would fill more links.
        """
        others = [n for n in view.neighbours if n[1] not in self.busy]
        served: list[Share] = []
        for share in shares:
            if share.id not in self.busy:
                served.append(share)
            elif view.label is not None:
                served += reroute(view.label, others, share)
        return served

    def _flood(
        self,
        view: View,
        seen: Seen | None,
        record: bytes,
        hops: int,
        sender: NodeId | None = None,
    ) -> list[Effect]:
        """Send a key to all neighbours but the one it came from, once; if there is no room to
        remember that, not at all."""
        if seen is None:
            self.refused += 1
            return []
        seen.flooded = True
        flood = Flood(self.topic, self.id, record, hops + 1)
        peers = [peer for _, peer in view.neighbours if peer != sender]
        return [Send(peer, flood) for peer in peers if peer not in self.busy]
