"""What a layer asks of its orientation: is this node a sink, and what does it do to its links?

Heights are the product's; the laboratory has others to compare them with.

An orientation lives in one layer of one node. It knows its neighbours only by the words they
said, which may be old: an old word may hide from a node that it is a sink, never the reverse.
"""

from abc import ABC, abstractmethod
from random import Random

from planaria.core.ids import NodeId
from planaria.core.state import Stateful
from planaria.protocols.mobile.messages import Word

LID_MAX = 2**62 - 1  # local identifiers are drawn from here: two neighbours rarely share one
AUDIT = 16  # in every so many words all is said, in case that two ends believe falsehoods
# in so many of them in a row: one that is overtaken counts for nothing, and if each of them is
# overtaken, then by another of them, as long as none takes longer than five intervals
AUDIT_RUN = 6


class Orientation(Stateful, ABC):
    """One node's side of the orientation of one layer."""

    @abstractmethod
    def __init__(self, id: NodeId, rng: Random) -> None:
        """The side of node `id`, without links."""

    @abstractmethod
    def renew(self, rng: Random) -> None:
        """Begin another life: nobody may take what was said in the last one for said in this."""

    @abstractmethod
    def repair(self) -> None:
        """Bring own variables back into their range, whatever a fault made of them."""

    @abstractmethod
    def greet(self) -> Word:
        """All that a new neighbour must know."""

    @abstractmethod
    def link_up(self, peer: NodeId, word: Word) -> bool:
        """A link to `peer`, who greets with `word`; False, and no link, if the word is nonsense."""

    @abstractmethod
    def link_down(self, peer: NodeId) -> None:
        """The link to `peer` is gone. Never closes a cycle, whatever the orientation."""

    @abstractmethod
    def peers(self) -> list[NodeId]:
        """All links it knows, with or without a direction."""

    @abstractmethod
    def oriented(self, peer: NodeId) -> bool:
        """Has the link to `peer` a direction? If not, it is still forming."""

    @abstractmethod
    def sink(self) -> bool:
        """Do all links point to this node, as far as it knows (Definition 5)?"""

    @abstractmethod
    def reverse(self) -> None:
        """Turn all links of this sink around (LLRO, Table 2, as amended)."""

    @abstractmethod
    def word(self, peer: NodeId, *, whole: bool = False) -> Word:
        """What to tell the neighbour `peer` at this timeout; `whole`: with the lid, if any."""

    def knows(self, peer: NodeId, word: Word) -> bool:
        """May `word` be said by the `peer` that is known? Not with another local identifier: it
        was said before that one lost its memory, or after and nobody noticed."""
        return True

    @abstractmethod
    def hear(self, peer: NodeId, word: Word, *, informed: bool = False) -> None:
        """The neighbour `peer` said `word`, perhaps some time ago; `informed`: after it had heard
        what this node says of itself now."""


class Ordered(Orientation):
    """An orientation by a total order: of a number first, then of local identifiers, then of ids.

    `views` holds what each neighbour said of its number and its local identifier.
    """

    def __init__(self, id: NodeId, rng: Random) -> None:
        self.id = id
        self.renew(rng)
        self.views: dict[NodeId, tuple[int, int]] = {}
        self.audit: dict[NodeId, int] = {}  # words left until all is said

    def renew(self, rng: Random) -> None:
        """Draw the local identifier, by which neighbours tell one life of a node from the next.

        Random: identifiers in order round a ring leave one sink that wanders (concurrency 1/n).
        """
        self.lid = rng.randrange(LID_MAX + 1)

    def link_down(self, peer: NodeId) -> None:
        """Forget the neighbour."""
        self.views.pop(peer, None)
        self.audit.pop(peer, None)

    def peers(self) -> list[NodeId]:
        """All neighbours."""
        return list(self.views)

    def oriented(self, peer: NodeId) -> bool:
        """A total order gives every link a direction."""
        return peer in self.views

    def _audited(self, peer: NodeId) -> bool:
        """Count one more word to `peer`: is it one that says all?"""
        self.audit[peer] = left = (self.audit.get(peer, 0) - 1) % AUDIT
        return left < AUDIT_RUN
