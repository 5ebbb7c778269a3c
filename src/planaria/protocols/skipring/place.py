"""The place in the skip ring that a subscriber believes to have, and what follows from it."""

from collections.abc import Sequence
from typing import ClassVar

from planaria.core.ids import NodeId, is_node_id
from planaria.core.state import State, Stateful
from planaria.protocols.ring.sorted_ring import SortedRing
from planaria.protocols.skipring.labels import LABEL_MAX, length, position
from planaria.protocols.skipring.messages import Ref
from planaria.protocols.skipring.neighbourhood import NOWHERE, Neighbourhood, longest, neighbourhood
from planaria.protocols.skipring.sums import WORD, children, fingerprint, parent

SUM_AGE_MAX = 8  # timeouts for which a child's sum counts


class PlaceState(State):
    """Label, ring neighbours and shortcuts as believed, and what children told of their sums."""

    label: int | None
    pred: tuple[int, int] | None
    succ: tuple[int, int] | None
    shortcuts: dict[int, int]
    child_sums: dict[int, tuple[int, int]]


class Place(Stateful):
    """Label, ring neighbours and shortcuts of one member; `pred` and `succ` close the ring."""

    __slots__ = ("child_sums", "id", "label", "pred", "shortcuts", "succ")
    state_type: ClassVar[type[State]] = PlaceState

    def __init__(self, id: NodeId) -> None:
        self.id = id
        self.label: int | None = None
        self.pred: Ref | None = None
        self.succ: Ref | None = None
        self.shortcuts: dict[int, NodeId] = {}
        self.child_sums: dict[int, tuple[int, int]] = {}  # of my children: sum and age

    @property
    def ring(self) -> list[Ref]:
        """My neighbours on the ring."""
        return [ref for ref in (self.pred, self.succ) if ref is not None]

    @property
    def shortcut_refs(self) -> list[Ref]:
        """My shortcuts that are filled."""
        return list(self.shortcuts.items())

    @property
    def around(self) -> Neighbourhood:
        """What my label and my ring neighbours' labels imply."""
        if self.label is None:
            return NOWHERE
        pred = None if self.pred is None else self.pred[0]
        succ = None if self.succ is None else self.succ[0]
        return neighbourhood(self.label, pred, succ)

    @property
    def window(self) -> int:
        """Requests are spread over as many timeouts as labels here have bits, about log n.

        Labels that are longer than any topic needs say nothing.
        """
        mine = self.label or 0
        pred = mine if self.pred is None else self.pred[0]
        succ = mine if self.succ is None else self.succ[0]
        return longest(mine, pred, succ)

    @property
    def probability(self) -> float:
        """1/2 for label 0, 1/(2^(k+1) k^2) for a label of k bits: less than 1 in all (E14)."""
        if not self.label:
            return 0.5
        k = length(self.label)
        return 1.0 / (k * k << (k + 1))

    def neighbours(self) -> list[Ref]:
        """Everybody I have an edge to, each once, ring neighbours first."""
        found: dict[NodeId, int] = {}
        for label, id in (*self.ring, *self.shortcut_refs):
            found.setdefault(id, label)
        found.pop(self.id, None)
        return [(label, id) for id, label in found.items()]

    def level_neighbours(self) -> tuple[Ref | None, Ref | None]:
        """My neighbours on level |label|: per side the end of the chain of shortcuts (E4)."""
        around = self.around
        return self._end(around.left, self.pred), self._end(around.right, self.succ)

    def subtree(self) -> int:
        """My sum: my own fingerprint and what my children told me."""
        assert self.label is not None  # only a member has one
        below = sum(total for total, _ in self.child_sums.values())
        return (fingerprint(self.label, self.id) + below) & WORD

    def children_sums(self) -> tuple[int | None, int | None]:
        """What my two children told me, as far as they did."""
        if self.label is None:
            return None, None
        first, second = (self.child_sums.get(-1 if c is None else c) for c in children(self.label))
        return first and first[0] & WORD, second and second[0] & WORD

    def ways_to(self, slot: int) -> list[int]:
        """The label before `slot` in each chain it ends: who has it may fill the slot (H6)."""
        found = []
        around = self.around
        for chain, ring in ((around.left, self.pred), (around.right, self.succ)):
            if slot in chain and ring is not None:
                found.append((ring[0], *chain)[chain.index(slot)])
        return found

    def vacate(self) -> None:
        """Be nowhere."""
        self.label, self.pred, self.succ = None, None, None
        self.shortcuts, self.child_sums = {}, {}

    def forget(self, id: NodeId) -> bool:
        """Drop every reference to `id`; was it a neighbour on the ring?"""
        beside = id in [ref[1] for ref in self.ring]
        self.pred = None if self.pred and self.pred[1] == id else self.pred
        self.succ = None if self.succ and self.succ[1] == id else self.succ
        self.shortcuts = {slot: other for slot, other in self.shortcuts.items() if other != id}
        return beside

    def repair(self) -> None:
        """Put my own variables right, whatever they were."""
        if self.label is not None and not 0 <= self.label <= LABEL_MAX:
            self.label = None
        if self.pred is not None or self.succ is not None:
            self.pred, self.succ = self.sound(self.pred), self.sound(self.succ)
        shortcuts = self.shortcuts
        if shortcuts and not shortcuts.keys() <= self.around.slots:
            shortcuts = {slot: id for slot, id in shortcuts.items() if slot in self.around.slots}
        ids = shortcuts.values()
        if ids and (self.id in ids or not is_node_id(min(ids)) or not is_node_id(max(ids))):
            shortcuts = {slot: id for slot, id in shortcuts.items() if self.may_be_neighbour(id)}
        self.shortcuts = shortcuts

    def sound(self, ref: Ref | None) -> Ref | None:
        """`ref`, unless it is none that a member could have: a label or an id out of range (H2)."""
        if ref is None or self.label is None or not 0 <= ref[0] <= LABEL_MAX:
            return None
        return ref if self.may_be_neighbour(ref[1]) else None

    def may_be_neighbour(self, id: NodeId) -> bool:
        """Is `id` an id, and not my own (E2)?"""
        return id != self.id and is_node_id(id)

    def age(self, promised_max: int) -> None:
        """Let what my children told me grow old; below 0 is what they promised to be silent."""
        if self.child_sums:
            self.child_sums = {
                label: (total, age + 1)
                for label, (total, age) in self.child_sums.items()
                if SUM_AGE_MAX - promised_max <= age < SUM_AGE_MAX and parent(label) == self.label
            }

    def as_sorted_ring(self, group: str) -> SortedRing:
        """The same place as a member of a plain sorted ring, for repair without a supervisor."""
        assert self.label is not None  # only a member takes part
        ring = SortedRing(group, self.id, self.label, position)
        wraps_left = self.pred is not None and not self._before_me(self.pred)
        wraps_right = self.succ is not None and self._before_me(self.succ)
        ring.left, ring.right = self.pred, self.succ
        if wraps_left and wraps_right:
            ring.left, ring.right = self.succ, self.pred
        elif wraps_left:
            ring.left, ring.ring = None, self.pred
        elif wraps_right:
            ring.right, ring.ring = None, self.succ
        return ring

    def _before_me(self, ref: Ref) -> bool:
        return (position(ref[0]), ref[1]) < (position(self.label or 0), self.id)

    def _end(self, chain: Sequence[int], ring: Ref | None) -> Ref | None:
        if not chain:
            return ring
        id = self.shortcuts.get(chain[-1])
        return None if id is None else (chain[-1], id)
