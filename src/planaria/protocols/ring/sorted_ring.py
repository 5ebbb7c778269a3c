"""BuildList and BuildRing (paper 1, section 2.2, Algorithms 1 and 2), extended and amended.

Members sort themselves by label into a list and close it to a ring between minimum and maximum.
The label may be anything ordered: positions of a skip ring, hashed ids of a DHT. Labels believed
of others may be wrong; every CHECK says what is believed and is answered with the truth.

Amendments: no reference to oneself is kept (E2, E15, E20), the order is total over (label, id)
(E3), the loser of a contest for the ring edge is told of the winner (E1), a neighbour that stays
silent is dropped (E21), what others say of a neighbour's label is no reason to move it: the
neighbour is asked, and answers for itself (E22); an end hands its ring edge inward, or a ring could
wind round the order more than once (E23); whom I lost to silence only it itself brings back, or a
dead node could be handed round for ever; whom I hand to a neighbour I remember until it speaks, or
a dead one could cut members apart (both decision 0042); delegation uses any closer node known (S4).
"""

from collections.abc import Callable, Iterable
from typing import Any

from planaria.core.ids import NodeId, is_node_id
from planaria.core.node import Send
from planaria.core.state import State, Stateful
from planaria.protocols.ring.messages import (
    Check,
    Introduce,
    RawRef,
    Ref,
    Remove,
    RingLabel,
    RingMessage,
)

HOPS_MAX = 1 << 16  # a reference that has not found its place after this many hops is garbage
SILENCE_MAX = 16  # timeouts without a CHECK before a neighbour is gone: a few slow messages
LOST_MAX = 8  # neighbours gone silent that are still called: a partition takes at most a few
HANDED_MAX = 8  # of those handed to neighbours that have not spoken since: the last to be handed
LOST_AGE_MAX = 256  # timeouts for which they are called: longer partitions need a gateway


def _identity(label: RingLabel) -> Any:
    return label


class SortedRingState(State):
    """A member's label, its neighbours, whom it waits for or has lost, and whom it handed on."""

    label: int | bytes
    left: RawRef | None
    right: RawRef | None
    ring: RawRef | None
    silence: dict[int, int]
    lost: dict[int, int]
    handed: dict[int, int | bytes]


class SortedRing(Stateful):
    """One member's part of the sorted ring. A component: its owner passes messages and time on."""

    __slots__ = (
        "_order",
        "group",
        "handed",
        "id",
        "label",
        "left",
        "lost",
        "right",
        "ring",
        "silence",
    )

    state_type = SortedRingState

    def __init__(
        self,
        group: str,
        id: NodeId,
        label: RingLabel,
        order: Callable[[Any], Any] = _identity,
    ) -> None:
        self.group, self.id, self.label = group, id, label
        self.left: Ref | None = None
        self.right: Ref | None = None
        self.ring: Ref | None = None
        self.silence: dict[NodeId, int] = {}
        self.lost: dict[NodeId, int] = {}
        self.handed: dict[NodeId, RingLabel] = {}
        self._order = order

    @property
    def predecessor(self) -> Ref | None:
        """The neighbour before me on the ring, over the closing edge if I am the minimum."""
        return self.left or (self.ring if self.right else None)

    @property
    def successor(self) -> Ref | None:
        """The neighbour after me on the ring, over the closing edge if I am the maximum."""
        return self.right or (self.ring if self.left else None)

    def neighbours(self) -> list[Ref]:
        """The members this one points at."""
        return [ref for ref in (self.left, self.right, self.ring) if ref is not None]

    # Inputs

    def on_timeout(self, shortcuts: Iterable[Ref] = ()) -> list[Send]:
        """BUILDRINGTIMEOUT: repair, then tell both neighbours who I think they are."""
        effects = self.repair(shortcuts) + self._drop_silent(shortcuts) + self._take_back()
        me: Ref = (self.label, self.id)
        for ref, cyclic in ((self.left, False), (self.right, False), (self.ring, True)):
            if ref is not None:
                effects.append(self._ask(ref, cyclic=cyclic))
        inward = self.right if self.left is None else self.left if self.right is None else None
        if inward is not None:
            # An end of the list that does not know the other end looks for it (Alg. 2, l. 3). One
            # that does may be on one of several lists that their ring edges tie together: only
            # sorting the far end in as well shows it (E23).
            far = Introduce(self.group, self.ring or me, self.ring is None, int(bool(self.ring)))
            if far.ref != inward:
                effects.append(Send(inward[1], far))
        return effects

    def on_message(self, message: RingMessage, shortcuts: Iterable[Ref] = ()) -> list[Send]:
        """Take any message of this ring, however false."""
        effects = self.repair(shortcuts)
        match message:
            case Check() if self._comparable(message.sender):
                return effects + self._check(message, shortcuts)
            case Introduce() if self._comparable(message.ref):
                return effects + self._introduce(message, shortcuts)
            case Remove():
                self.forget(message.id)
                self.lost.pop(message.id, None)
        return effects

    def forget(self, id: NodeId) -> None:
        """Drop every reference to `id`."""
        for side in ("left", "right", "ring"):
            ref = getattr(self, side)
            if ref is not None and ref[1] == id:
                setattr(self, side, None)
        self.silence.pop(id, None)
        self.handed.pop(id, None)

    def miss(self, ids: Iterable[NodeId], shortcuts: Iterable[Ref] = ()) -> list[Send]:
        """Do without neighbours that are gone; call them for a while, and look for the next ones.

        The loss of a connection may be an error, or the beginning of a partition.
        """
        gone = [id for id in ids if self._labels_known(id)]
        for id in gone:
            self.forget(id)
            # From the beginning, and as the last: an age or a place that a fault left here would
            # let it go uncalled, and who is not called is cut off.
            self.lost.pop(id, None)
            self.lost[id] = 0
        if not gone:
            return []
        alive = [ref for ref in shortcuts if ref[1] not in self.lost]
        return [send for ref in alive for send in self.learn(ref)]

    def learn(self, ref: Ref, shortcuts: Iterable[Ref] = (), hops: int = 0) -> list[Send]:
        """LINEARIZE: keep the closest on each side, hand every other on towards its place.

        The label is believed: what is only hearsay comes as INTRODUCE.
        """
        if ref[1] == self.id:
            return []
        if self._believes_otherwise(ref):
            self.forget(ref[1])  # the same node under an older label
        side = "left" if self._key(ref) < self._key((self.label, self.id)) else "right"
        known: Ref | None = getattr(self, side)
        if known == ref:
            return []
        if known is None:
            setattr(self, side, ref)
            return [self._ask(ref, cyclic=False)]
        if self._between(ref, known):
            setattr(self, side, ref)
            self._remember(known)
            # Also those that `known` was handed: it may have been dead.
            handed = [it for it in self._handed() if self._between(ref, it)]
            introductions = [Introduce(self.group, it, False, hops + 1) for it in handed]
            return [self._ask(ref, cyclic=False), *(Send(ref[1], it) for it in introductions)]
        return self._delegate(ref, known, shortcuts, hops)

    # Rules

    def repair(self, shortcuts: Iterable[Ref] = ()) -> list[Send]:
        """Put my own variables right; what is on the wrong side is handed on, never lost."""
        me = self._key((self.label, self.id))
        loose: list[Ref] = []
        if self.left is not None and self._key(self.left) >= me:
            loose.append(self.left)
            self.left = None
        if self.right is not None and self._key(self.right) <= me:
            loose.append(self.right)
            self.right = None
        if self.ring is not None and not self._ring_edge_fits(self.ring):
            loose.append(self.ring)
            self.ring = None
        return [send for ref in loose for send in self.learn(ref, shortcuts)]

    def _ring_edge_fits(self, ref: Ref) -> bool:
        """Only the minimum points at something greater over the ring edge, and the reverse."""
        if ref[1] == self.id:
            return False
        if self._key(ref) > self._key((self.label, self.id)):
            return self.left is None and self.right is not None
        return self.right is None and self.left is not None

    def _check(self, message: Check, shortcuts: Iterable[Ref]) -> list[Send]:
        sender = message.sender
        if sender[1] == self.id:
            return []
        if sender[1] in self.silence:
            self.silence[sender[1]] = 0
        if self.handed and sender in (self.left, self.right):
            # It lives, so it has heard of those that I handed it.
            beyond = [it[1] for it in self._handed() if self._between(sender, it)]
            self.handed = {id: label for id, label in self.handed.items() if id not in beyond}
        effects = []
        if message.believed != self.label:
            me: Ref = (self.label, self.id)
            effects.append(Send(sender[1], Check(self.group, me, sender[0], False)))
        if self._believes_otherwise(sender):
            self.forget(sender[1])  # the same node under an older label
        return effects + self._introduce(
            Introduce(self.group, sender, message.cyclic, 0), shortcuts
        )

    def _introduce(self, message: Introduce, shortcuts: Iterable[Ref]) -> list[Send]:
        ref, hops = message.ref, message.hops
        if ref[1] == self.id or not 0 <= hops < HOPS_MAX:
            return []
        if not hops:
            self.lost.pop(ref[1], None)  # it speaks for itself
        if self._believes_otherwise(ref):
            # Hearsay against what I believe of a neighbour: every CHECK asks it anyway (E22).
            return []
        below = self._key(ref) < self._key((self.label, self.id))
        if not message.cyclic:
            known = self.left if below else self.right
            if ref[1] in self.lost and (known is None or self._between(ref, known)):
                # Others may not know yet that it is gone: asked, it comes back by itself.
                return [self._ask(ref, cyclic=False)]
            return self.learn(ref, shortcuts, hops)
        inward = self.right if below else self.left
        if inward is None:
            if ref[1] in self.lost:
                return [self._ask(ref, cyclic=True)]
            return self._contest(ref, shortcuts, hops)
        for shortcut in shortcuts:
            if self._between(inward, shortcut) and shortcut[1] != ref[1]:
                inward = shortcut  # the far end is sought: the longest jump is the best
        return [Send(inward[1], Introduce(self.group, ref, True, hops + 1))]

    def _contest(self, ref: Ref, shortcuts: Iterable[Ref], hops: int) -> list[Send]:
        """I am an end; `ref` claims the other end. The farther of two wins, the other is told."""
        if self.left is None and self.right is None:
            return self.learn(ref, shortcuts, hops)  # two nodes alone: neighbours on the list too
        if self.ring is None:
            self.ring = ref
            return [self._ask(ref, cyclic=True)]
        if self.ring[1] == ref[1]:
            return []
        winner, loser = (ref, self.ring) if self._between(self.ring, ref) else (self.ring, ref)
        effects = [Send(loser[1], Introduce(self.group, winner, False, hops + 1))]
        if winner != self.ring:
            self.ring = winner
            effects.append(self._ask(winner, cyclic=True))
        return effects + self.learn(loser, shortcuts, hops)

    def _delegate(self, ref: Ref, known: Ref, shortcuts: Iterable[Ref], hops: int) -> list[Send]:
        """Hand `ref` to the known node closest to it on my side of it, at worst to `known`."""
        best = known
        for shortcut in shortcuts:
            between = self._between(shortcut, ref) and not self._between(shortcut, best)
            if between and shortcut[1] not in (self.id, ref[1]):
                best = shortcut
        self._remember(ref)
        return [Send(best[1], Introduce(self.group, ref, False, hops + 1))]

    def _remember(self, ref: Ref) -> None:
        """I hand `ref` to a neighbour before it, which may be dead: so mine it is as well."""
        self.handed.pop(ref[1], None)
        self.handed[ref[1]] = ref[0]
        if len(self.handed) > HANDED_MAX:
            self.handed = dict(list(self.handed.items())[-HANDED_MAX:])

    def _take_back(self) -> list[Send]:
        """Ask whom I handed on and no neighbour of mine stands before any more: if it lives, it
        knows of me then, and comes by itself."""
        handed = self._handed()
        kept = [ref for ref in handed if self._stands_before(ref)]
        self.handed = {id: label for label, id in kept}
        return [self._ask(ref, cyclic=False) for ref in handed if ref not in kept]

    def _handed(self) -> list[Ref]:
        """Whom I handed on, but for what a fault put there."""
        others = [(label, id) for id, label in self.handed.items() if id != self.id]
        return [ref for ref in others if self._comparable(ref) and is_node_id(ref[1])]

    def _drop_silent(self, shortcuts: Iterable[Ref]) -> list[Send]:
        """A neighbour that never speaks is gone, or does not know me; look for the next one."""
        self.silence = {ref[1]: self.silence.get(ref[1], 0) + 1 for ref in self.neighbours()}
        gone = [id for id, silent in self.silence.items() if not 0 <= silent <= SILENCE_MAX]
        return self.miss(gone, shortcuts) + self._call_lost()

    def _call_lost(self) -> list[Send]:
        """Whom a partition took away cannot come back by itself: both sides forgot each other.

        Each is called after 1, 2, 4, 8, ... timeouts.
        """
        aged = {
            id: age + 1
            for id, age in self.lost.items()
            if 0 <= age < LOST_AGE_MAX and is_node_id(id)
        }
        self.lost = dict(list(aged.items())[-LOST_MAX:])
        me = Introduce(self.group, (self.label, self.id), False, 0)
        return [Send(id, me) for id, age in self.lost.items() if age & (age - 1) == 0]

    def _ask(self, ref: Ref, *, cyclic: bool) -> Send:
        """CHECK: say who I am and who I think `ref` is; at each timeout, and to a new neighbour at
        once, so that joining takes messages and not timeouts."""
        return Send(ref[1], Check(self.group, (self.label, self.id), ref[0], cyclic))

    def _labels_known(self, id: NodeId) -> list[RingLabel]:
        return [ref[0] for ref in self.neighbours() if ref[1] == id]

    def _believes_otherwise(self, ref: Ref) -> bool:
        """Do I have this node as a neighbour, under another label?"""
        label, id = ref
        for known in (self.left, self.right, self.ring):
            if known is not None and known[1] == id and known[0] != label:
                return True
        return False

    def _between(self, ref: Ref, far: Ref) -> bool:
        """Does `ref` lie strictly between me and `far`?"""
        me, key, end = self._key((self.label, self.id)), self._key(ref), self._key(far)
        return me < key < end or end < key < me

    def _stands_before(self, ref: Ref) -> bool:
        """Have I a neighbour between `ref` and me?"""
        known = self.left if self._key(ref) < self._key((self.label, self.id)) else self.right
        return known is not None and self._between(known, ref)

    def _comparable(self, ref: Ref) -> bool:
        """A label of another kind than mine cannot be sorted in: garbage."""
        return type(ref[0]) is type(self.label)

    def _key(self, ref: Ref) -> tuple[Any, NodeId]:
        return self._order(ref[0]), ref[1]
