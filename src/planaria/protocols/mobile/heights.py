"""Heights: the self-stabilizing orientation, for any graph and any link at any time (amendment 1).

The order is (height, lid, id), which is total, so no state has a cycle. A neighbour's height only
grows, so an old word about it is too low and can only keep a node from acting, never make it act.
"""

from random import Random

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.mobile.messages import Word
from planaria.protocols.mobile.orientation import LID_MAX, Ordered

HEIGHT_MAX = 2**40  # a turn per millisecond for 34 years
# Two parts of a network that ran apart may differ by the turns of that time (50 days of turns per
# millisecond). A larger gap is a fault, and the higher node comes down instead of dragging all up.
GAP_MAX = 2**32
LOUD = 3  # words with the whole height after a step that was not one


class HeightsState(State):
    """Own place in the order, what is believed of neighbours, and when to say all of it."""

    height: int
    lid: int
    views: dict[int, tuple[int, int]]
    settled: bool | int
    loud: int
    audit: dict[int, int]


class Heights(Ordered):
    """An integer height; a sink climbs above its neighbours."""

    state_type = HeightsState

    def __init__(self, id: NodeId, rng: Random) -> None:
        super().__init__(id, rng)
        self.height = 0
        self.settled: bool | int = False  # has its place among others, or took a turn
        self.loud = 0

    def repair(self) -> None:
        """Out of range: start again; a view that cannot be is the lowest, which lets nobody act."""
        self.lid = min(max(self.lid, 0), LID_MAX)
        self.settled = bool(self.settled)
        self.loud = min(max(self.loud, 0), LOUD * max(1, len(self.views)))
        for peer, (height, lid) in self.views.items():
            if not (0 <= height <= HEIGHT_MAX and 0 <= lid <= LID_MAX):
                self.views[peer] = (0, min(max(lid, 0), LID_MAX))
        if not 0 <= self.height <= HEIGHT_MAX:
            self._step_to(0)

    def greet(self) -> Word:
        """The whole height, the local identifier of this layer, and whether it has its place."""
        return (self.height % 3, self.height, self.lid, int(self.settled))

    def link_up(self, peer: NodeId, word: Word) -> bool:
        """A newcomer takes its place above the first that is there, as a source.

        Only once: a node that climbed with every new link would never come to its turn while it
        moves. Newcomers that meet only each other need not.
        """
        if not _whole(word):
            return False
        self.views[peer] = (word[1], word[2])
        self.audit[peer] = 0
        if not self.settled and word[3] and 0 <= word[1] - self.height <= GAP_MAX:
            self._step_to(word[1] + 1)
            self.settled = True
        return True

    def sink(self) -> bool:
        """Lower than every neighbour."""
        me = (self.height, self.lid, self.id)
        return all(me < (height, lid, peer) for peer, (height, lid) in self.views.items())

    def reverse(self) -> None:
        """H = max(H + 1, highest neighbour): both rules of LLRO where gaps are at most one."""
        limit = self.height + GAP_MAX
        plausible = [height for height, _ in self.views.values() if height <= limit]
        self.settled = True
        self._step_to(max(self.height + 1, *plausible, 0))

    def word(self, peer: NodeId, *, whole: bool = False) -> Word:
        """The height modulo 3 where the gap is at most one, else, and now and then, all of it."""
        audited, height = self._audited(peer), self.views.get(peer, (-2, 0))[0]
        if self.loud:
            self.loud -= 1
        elif not audited and not whole and abs(height - self.height) <= 1:
            return (self.height % 3,)
        return self.greet()

    def knows(self, peer: NodeId, word: Word) -> bool:
        """Whoever starts again draws another local identifier."""
        return not _whole(word) or peer not in self.views or word[2] == self.views[peer][1]

    def hear(self, peer: NodeId, word: Word, *, informed: bool = False) -> None:
        """Believe a whole height; complete a residue to the one height that is a neighbour's.

        Far above one that knows it and stays below: come down to the highest that is plausible.
        Two that did so by what they believed of each other before could change places for ever.
        """
        if peer not in self.views:
            return
        if _whole(word):
            self.views[peer] = (word[1], word[2])
            if informed and self.height - word[1] > GAP_MAX:
                limit = word[1] + GAP_MAX
                self._step_to(max(it for it, _ in self.views.values() if it <= limit) + 1)
        elif len(word) == 1 and word[0] <= 2:
            height, lid = self.views[peer]
            # Far from one's own height, the least one that it can be: heights only grow.
            base = self.height - 1 if abs(height - self.height) <= 1 else height
            self.views[peer] = (base + (word[0] - base) % 3, lid)

    def _step_to(self, height: int) -> None:
        if height > HEIGHT_MAX:
            height = 0
        if height != self.height + 1:
            self.loud = LOUD * max(1, len(self.views))
        self.height = height


def _whole(word: Word) -> bool:
    """A height in range, with its residue as a check, a local identifier, a flag."""
    return (
        len(word) == 4
        and word[3] <= 1
        and word[1] <= HEIGHT_MAX
        and word[0] == word[1] % 3
        and word[2] <= LID_MAX
    )
