"""LLO and LLRO of the paper with one rule for both of its own (amendment 0): val + 1 modulo 3.

Three states are enough where they can be lifted to heights whose gaps are at most one: on trees
always, on other graphs from equal values while no link is added. No node can tell locally, so a
newcomer asks for one link only, which keeps a forest a forest. And a broken tree stays broken: no
node can tell either whether a peer in reach is in another part or in its own, where one more link
would close a cycle. To know that it would need a name for its part: more state than a height.
"""

from random import Random

from planaria.core.ids import NodeId
from planaria.protocols.mobile.messages import Word
from planaria.protocols.mobile.orientation import LID_MAX, Orientation

AUDIT = 8  # every so many words the local identifier is repeated


class ThreeState(Orientation):
    """`val` in {0, 1, 2} and a local identifier of this layer (erratum 12)."""

    name = "three-state"
    safe = (
        "trees, from any values, but a broken tree stays in parts; "
        "any other graph from equal values while no link is added"
    )
    forest = True
    waits = True
    variables = ("val", "lid", "views", "audit")
    volatile = ("lid", "views", "audit")

    def __init__(self, id: NodeId, rng: Random) -> None:
        self.id = id
        self.val = 0
        self.lid = rng.randrange(LID_MAX + 1)
        self.views: dict[NodeId, tuple[int, int]] = {}
        self.audit: dict[NodeId, int] = {}

    def repair(self) -> None:
        """Own values, and what is believed of others, in their range."""
        self.val %= 3
        self.lid = min(max(self.lid, 0), LID_MAX)
        for peer, (val, lid) in self.views.items():
            self.views[peer] = (val % 3, min(max(lid, 0), LID_MAX))

    def greet(self) -> Word:
        """The value and the local identifier."""
        return (self.val, self.lid)

    def link_up(self, peer: NodeId, word: Word) -> bool:
        """Without other links: a source, one above the only neighbour (LLO, R1)."""
        if not _whole(word):
            return False
        if not self.views:
            self.val = (word[0] + 1) % 3
        self.views[peer] = (word[0], word[1])
        return True

    def link_down(self, peer: NodeId) -> None:
        """Forget the neighbour."""
        self.views.pop(peer, None)
        self.audit.pop(peer, None)

    def peers(self) -> list[NodeId]:
        """All neighbours."""
        return list(self.views)

    def oriented(self, peer: NodeId) -> bool:
        """Values and identifiers give every link a direction."""
        return peer in self.views

    def sink(self) -> bool:
        """Every neighbour is one ahead, or equal with a higher identifier (Definition 4)."""
        return all(
            (val - self.val) % 3 == 1 or (val == self.val and (self.lid, self.id) < (lid, peer))
            for peer, (val, lid) in self.views.items()
        )

    def reverse(self) -> None:
        """R1 and R2 of LLRO in one (errata 2 and 3)."""
        self.val = (self.val + 1) % 3

    def word(self, peer: NodeId, *, whole: bool = False) -> Word:
        """The value, and now and then the identifier."""
        self.audit[peer] = left = (self.audit.get(peer, 0) - 1) % AUDIT
        return (self.val,) if left and not whole else self.greet()

    def knows(self, peer: NodeId, word: Word) -> bool:
        """Whoever starts again draws another local identifier."""
        return not _whole(word) or peer not in self.views or word[1] == self.views[peer][1]

    def hear(self, peer: NodeId, word: Word, *, informed: bool = False) -> None:
        """Believe what is in range."""
        if peer not in self.views:
            return
        if _whole(word):
            self.views[peer] = (word[0], word[1])
        elif len(word) == 1 and word[0] <= 2:
            self.views[peer] = (word[0], self.views[peer][1])


def _whole(word: Word) -> bool:
    return len(word) == 2 and word[0] <= 2 and word[1] <= LID_MAX
