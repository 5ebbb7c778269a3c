"""What a member does while no supervisor answers: it takes part in a plain sorted ring.

A sorted ring takes any label that has an order; here only labels of a skip ring have a place.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar

from planaria.core.ids import NodeId
from planaria.core.node import Send
from planaria.core.state import State
from planaria.protocols.ring.messages import Check, Introduce, RingMessage
from planaria.protocols.ring.sorted_ring import SortedRing, SortedRingState
from planaria.protocols.skipring.inquiry import Inquiry, InquiryState
from planaria.protocols.skipring.labels import position
from planaria.protocols.skipring.messages import Ref
from planaria.protocols.skipring.place import Place, PlaceState

# How often a member hands a reference of orphans on, for each bit of a label: about twice what it
# takes over shortcuts. Stale references must not walk the ring for n intervals.
HOPS_PER_BIT = 4


class OrphanState(PlaceState):
    """A place, the dealings with supervisors, and what takes their place while none answers."""

    leaving: bool
    inquiry: InquiryState
    orphan: SortedRingState | None
    acquaintances: list[int]


class Orphan(Place):
    """A member that can do without a supervisor: `orphan` is its part in the sorted ring then."""

    __slots__ = ("_rng", "acquaintances", "inquiry", "leaving", "orphan", "topic")
    state_type: ClassVar[type[State]] = OrphanState

    def __init__(self, topic: str, id: NodeId, supervisors: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id)
        self.topic = topic
        self.leaving = False
        self.inquiry = Inquiry(supervisors, rng)
        self.orphan: SortedRing | None = None
        self.acquaintances: list[NodeId] = []  # whom an orphan knew when it became one
        self._rng = rng

    @property
    def member(self) -> bool:
        """Does it hold a place in the ring, wanted or not?"""
        return self.label is not None

    def load(self, state: State) -> None:
        """Take any state; an orphan has a ring to load into."""
        assert isinstance(state, OrphanState)
        ring = SortedRing(self.topic, self.id, 0, position)
        self.orphan = None if state.orphan is None else ring
        super().load(state)

    def repair(self) -> None:
        """Put my own variables right: nobody is an orphan without need."""
        super().repair()
        self.inquiry.repair()
        if self.orphan is not None:
            repair_orphan(self.orphan, self)
            known = dict.fromkeys(self.acquaintances)
            self.acquaintances = [id for id in known if self.may_be_neighbour(id)]
            if not self.member or not self.inquiry.hopeless:
                self.orphan = None

    def on_ring_message(self, message: RingMessage) -> list[Send]:
        """Peers repairing without a supervisor: help them; else it is a contradiction (A4)."""
        self.repair()
        if not self.member or self.leaving or not sortable(message, self):
            return []
        if self.orphan is not None:
            return self.orphan.on_message(message, self.guides())
        if isinstance(message, Introduce) and message.hops > HOPS_PER_BIT * self.window:
            return []
        ring = self.as_sorted_ring(self.topic)
        effects = ring.on_message(message, self.guides())
        if (ring.predecessor, ring.successor) != (self.pred, self.succ):
            self.inquiry.alarm(self.window)
        # I adopt nobody, so I greet nobody: two such helpers would greet each other for ever.
        handed_on = [send for send in effects if not isinstance(send.message, Check)]
        return correction(message, self.topic, self) + handed_on

    def help_ourselves(self) -> list[Send]:
        """BuildRing among peers: what can be repaired without a supervisor is."""
        if self.label is None:
            return []
        if self.orphan is None:
            self.orphan = self.as_sorted_ring(self.topic)
            self.acquaintances = [id for _, id in self.neighbours()]
        effects = self.orphan.on_timeout(self.guides())
        if self.acquaintances:
            # Shortcuts may be all that holds the survivors together, and a repaired ring implies
            # other ones; introductions get lost at dead nodes. So call everybody, one at a time.
            call = Introduce(self.topic, (self.label, self.id), False, 0)
            effects.append(Send(self._rng.choice(self.acquaintances), call))
        self.pred = as_ref(self.orphan.predecessor)
        self.succ = as_ref(self.orphan.successor)
        return effects

    def guides(self) -> list[Ref]:
        """Shortcuts over which to hand a reference on; every other time none.

        A shortcut may lead to a dead node, and without a supervisor nobody replaces it.
        """
        return self.shortcut_refs if self._rng.random() < 0.5 else []


def as_ref(ref: Iterable[object] | None) -> Ref | None:
    """A reference of a sorted ring as one of a skip ring."""
    if ref is None:
        return None
    label, id = ref
    return (label, id) if isinstance(label, int) and isinstance(id, int) else None


def sortable(message: RingMessage, place: Place) -> bool:
    """Is the message about a node that could have a place beside mine?"""
    if isinstance(message, Check):
        return place.sound(as_ref(message.sender)) is not None
    return not isinstance(message, Introduce) or place.sound(as_ref(message.ref)) is not None


def correction(message: RingMessage, topic: str, place: Place) -> list[Send]:
    """Tell my label to an orphan that believes another."""
    if not isinstance(message, Check) or message.believed == place.label:
        return []
    label, sender = message.sender
    me: Ref = (place.label or 0, place.id)
    return [Send(sender, Check(topic, me, label, False))] if sender != place.id else []


def repair_orphan(orphan: SortedRing, place: Place) -> None:
    """Put the variables of an orphan's ring right, whatever they were."""
    orphan.label = place.label or 0
    orphan.left = place.sound(as_ref(orphan.left))
    orphan.right = place.sound(as_ref(orphan.right))
    orphan.ring = place.sound(as_ref(orphan.ring))
    orphan.lost = {id: age for id, age in orphan.lost.items() if place.may_be_neighbour(id)}
    handed = [place.sound(as_ref((label, id))) for id, label in orphan.handed.items()]
    orphan.handed = {ref[1]: ref[0] for ref in handed if ref is not None}
