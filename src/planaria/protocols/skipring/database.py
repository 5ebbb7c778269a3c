"""The supervisor's database of one topic (paper, section 3.1, Algorithm 3), amended.

Position i of the list is the owner of label l(i), so labels are never missing, never wrong and
never non-canonical; what remains to be repaired are entries without a subscriber and subscribers
with two entries. Removal moves the last entry into the gap at once (E9).
"""

from collections.abc import Iterable

from planaria.core.ids import NodeId, is_node_id
from planaria.core.state import State, Stateful
from planaria.protocols.skipring.labels import length, predecessor, successor
from planaria.protocols.skipring.messages import Ref
from planaria.protocols.skipring.sums import WORD, children, fingerprint, parent

MEMBERS_MAX = 1 << 20  # one topic's subscribers: what one supervisor can configure in time


class DatabaseState(State):
    """The owner of each label; beside it the label of each owner, the sums, and found damage."""

    entries: list[int | None]
    labels: dict[int, int]
    sums: list[int]
    damaged: bool


class Database(Stateful):
    """Who has which label. Every method leaves it free of corruption.

    A fault may strike between two repairs, so whatever a method looks at is compared with the list
    first, in constant time; damage found is repaired on the spot.
    """

    __slots__ = ("_damaged", "_entries", "_labels", "_sums")

    state_type = DatabaseState

    def __init__(self, entries: Iterable[NodeId] = ()) -> None:
        self._damaged = False  # was something repaired that `repair` has not reported yet?
        self.entries = list(entries)

    @property
    def entries(self) -> list[NodeId | None]:
        """The owner of each label, in the order of labels."""
        return self._entries

    @entries.setter
    def entries(self, entries: Iterable[NodeId | None]) -> None:
        """Take any list, however corrupt: from a store, or from a fault."""
        self._entries = list(entries)
        self._labels: dict[NodeId, int] = {}
        self._sums: list[int] = []
        self.repair()

    def state(self) -> DatabaseState:
        """The list, and what is remembered beside it."""
        return DatabaseState(self._entries, self._labels, self._sums, self._damaged)

    def load(self, state: State) -> None:
        """Take list and memory as they are, however they contradict each other."""
        assert isinstance(state, DatabaseState)
        self._entries, self._labels = state.entries, state.labels
        self._sums, self._damaged = state.sums, state.damaged

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, id: NodeId) -> bool:
        return self.label_of(id) is not None

    def repair(self) -> bool:
        """CHECKLABELS and CHECKMULTIPLECOPIES: drop empty and double entries, close the gaps.

        The lowest label of a subscriber is kept; the last entries move into the gaps. True if
        something was wrong, in the list or in what is derived from it, or had to be repaired since
        the last time.
        """
        self._repair()
        damaged, self._damaged = self._damaged, False
        return damaged

    def _repair(self) -> None:
        place: dict[NodeId, int] = {}
        gaps = []
        for index, id in enumerate(self.entries):
            if not _is_id(id) or id in place:
                gaps.append(index)
            else:
                assert id is not None
                place[id] = index
        if not gaps and place == self._labels and len(self._sums) == len(self.entries):
            return
        self._damaged = True
        for gap in gaps:
            while self.entries and place.get(self.entries[-1]) != len(self.entries) - 1:  # type: ignore[arg-type]
                self.entries.pop()
            if gap >= len(self.entries):
                break
            last = self.entries.pop()
            assert last is not None
            self.entries[gap], place[last] = last, gap
        self._labels = place
        self.recount()

    def recount(self) -> None:
        """Compute all sums anew from the entries."""
        n = len(self.entries)
        self._sums = [fingerprint(label, id or 0) for label, id in enumerate(self.entries)]
        for label in range(n - 1, 0, -1):
            above = label >> 1
            self._sums[above] = (self._sums[above] + self._sums[label]) & WORD

    def label_of(self, id: NodeId) -> int | None:
        """The label of a recorded subscriber."""
        label = self._labels.get(id)
        if label is not None and not self._right(label, id):
            self._repair()
            label = self._labels.get(id)
        return label

    def owner(self, label: int) -> NodeId | None:
        """The subscriber recorded for `label`; None if there is none."""
        if not 0 <= label < len(self.entries):
            return None
        id = self.entries[label]
        if id is None or self._labels.get(id) != label or not _is_id(id):
            self._repair()
            id = self.entries[label] if label < len(self.entries) else None
        return id

    def neighbours(self, label: int) -> tuple[Ref, Ref] | None:
        """Predecessor and successor on the ring; None for a single member (E15)."""
        while 0 <= label < len(self.entries) >= 2:
            n = len(self.entries)
            before, after = predecessor(label, n), successor(label, n)
            pred, succ = self.owner(before), self.owner(after)
            if pred is not None and succ is not None and n == len(self.entries):
                return (before, pred), (after, succ)
        return None

    def sum_of(self, label: int) -> int | None:
        """The sum over the subtree of `label`; None if nobody has that label."""
        return self._sums[label] if 0 <= label < min(len(self._sums), len(self)) else None

    def insert(self, id: NodeId) -> list[NodeId]:
        """Record a subscriber at the next label; returns whose configuration changed (S1)."""
        self._check_sizes()
        label = self.label_of(id)
        if label is not None:
            return [id, *self._beside(label)]
        label = len(self.entries)
        self.entries.append(id)
        self._labels[id] = label
        self._sums.append(0)
        self._retotal(label)
        return [id, *self._beside(label)]

    def remove(self, id: NodeId) -> list[NodeId]:
        """Forget a subscriber, the last one takes its label; returns whose configuration changed.

        Neighbours are looked up after the move (E10).
        """
        self._check_sizes()
        last = len(self.entries) - 1
        touched = self._beside(last)
        moved, gap = self.owner(last), self.label_of(id)
        if gap is None or moved is None or last != len(self.entries) - 1:
            return self._remove_from_damaged(id)
        del self._labels[id]
        self.entries.pop()
        self._sums.pop()
        if last:
            self._retotal(last >> 1)
        if gap != last:
            self.entries[gap], self._labels[moved] = moved, gap
            self._retotal(gap)
            touched += [moved, *self._beside(gap)]
        return [other for other in dict.fromkeys(touched) if other != id]

    def longest_label(self) -> int:
        """The number of bits of the longest label in use."""
        return length(max(0, len(self.entries) - 1))

    def _remove_from_damaged(self, id: NodeId) -> list[NodeId]:
        """Forget a subscriber after a repair, which moved who knows whom."""
        self.entries = [other for other in self.entries if other != id]
        self._damaged = True
        return [other for other in self.entries if other is not None]

    def _right(self, label: int, id: NodeId) -> bool:
        return 0 <= label < len(self.entries) and self.entries[label] == id and _is_id(id)

    def _check_sizes(self) -> None:
        if not len(self.entries) == len(self._labels) == len(self._sums):
            self._repair()

    def _beside(self, label: int) -> list[NodeId]:
        found = self.neighbours(label)
        return [ref[1] for ref in found] if found else []

    def _retotal(self, label: int) -> None:
        """Sum anew from `label` up to the top."""
        at: int | None = label
        while at is not None:
            total = fingerprint(at, self.entries[at] or 0)
            for child in children(at):
                total += (self.sum_of(child) or 0) if child is not None else 0
            self._sums[at] = total & WORD
            at = parent(at)


def _is_id(id: object) -> bool:
    return isinstance(id, int) and is_node_id(id)
