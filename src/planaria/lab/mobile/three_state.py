"""LLO and LLRO of the paper with one rule for both of its own (amendment 0): val + 1 modulo 3.

Three states are enough where they can be lifted to heights whose gaps are at most one: on trees
always, on other graphs from equal values while no link is added. No node can tell locally, so a
newcomer asks for one link only, which keeps a forest a forest. And a broken tree stays broken: no
node can tell either whether a peer in reach is in another part or in its own, where one more link
would close a cycle. To know that it would need a name for its part: more state than a height.
"""

from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.node import Effect, Send
from planaria.core.state import State
from planaria.protocols.mobile.dissemination import Dissemination
from planaria.protocols.mobile.layer import Layer, LayerState
from planaria.protocols.mobile.link import ASKED, UP
from planaria.protocols.mobile.messages import Beat, RequestLinkDown, RequestLinkUp, Word
from planaria.protocols.mobile.orientation import AUDIT, LID_MAX, Ordered, Orientation


class ThreeStateState(State):
    """Own value and identifier, what is believed of neighbours, and when to repeat the lid."""

    val: int
    lid: int
    views: dict[int, tuple[int, int]]
    audit: dict[int, int]


class ThreeState(Ordered):
    """`val` in {0, 1, 2} and a local identifier of this layer (erratum 12)."""

    state_type = ThreeStateState

    def __init__(self, id: NodeId, rng: Random) -> None:
        super().__init__(id, rng)
        self.val = 0

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
        return self.greet() if self._audited(peer) or whole else (self.val,)

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


class ThreeStateLayerState(LayerState):
    """A layer oriented by three states, and who has heard what this node says of itself."""

    orientation: ThreeStateState  # type: ignore[assignment]
    informed: dict[int, bool]


class ThreeStateLayer(Layer):
    """A layer whose links are a forest, and whose turns wait for news.

    A turn waits until every neighbour has said something knowing the last one. Where neighbours
    take turns it has, but from any state two could run after each other's old words for ever.
    """

    state_type = ThreeStateLayerState
    orientation_type = ThreeState

    def __init__(
        self,
        topic: str,
        id: NodeId,
        rng: Random,
        dissemination: Dissemination,
        connection_points: int = 0,
    ) -> None:
        super().__init__(topic, id, rng, dissemination, connection_points)
        self.informed: dict[NodeId, bool] = {}  # peer -> its last word was said knowing mine

    def lose(self, peer: NodeId) -> None:
        """The link is gone, with or without goodbye."""
        super().lose(peer)
        self.informed.pop(peer, None)

    def _accepts(self, peer: NodeId) -> bool:
        """Requests of nodes that ask each other in a circle would close a cycle: while asking,
        accept only higher ids, so that no circle of requests is refused all round."""
        asking = any(link.state == ASKED for link in self.links.values())
        if self._state(peer) is None and asking and peer < self.id:
            return False
        return super()._accepts(peer)

    def _on_request_up(self, message: RequestLinkUp) -> list[Effect]:
        """Withdraw the own requests, because the asked may join those that are accepted.

        Whoever says OK all the same is told that there is no link.
        """
        if self._accepts(message.sender):
            for peer in [peer for peer, link in self.links.items() if link.state == ASKED]:
                self.lose(peer)
        return super()._on_request_up(message)

    def _one_sided(self, peer: NodeId) -> list[Effect]:
        """A link that only the other end has might close a cycle here."""
        return [Send(peer, RequestLinkDown(self.topic, self.id))]

    def _missing(self) -> int:
        """One link is enough, and a second might close a cycle."""
        return int(not self.links)

    def _informed(self, beat: Beat) -> bool:
        informed = self.informed[beat.sender] = super()._informed(beat)
        return informed

    def _say(self) -> None:
        before = self.said
        super()._say()
        if self.said != before:
            self.informed = {}

    def _takes_turn(self, rng: Random) -> bool:
        up = [peer for peer, link in self.links.items() if link.state == UP]
        heard = all(self.informed.get(peer) for peer in up)
        return heard and self.said[0] == self.orientation.greet() and super()._takes_turn(rng)


def scramble_three_state(mine: Orientation, peers: list[NodeId], rng: Random) -> None:
    """Arbitrary values for all variables."""
    assert isinstance(mine, ThreeState)
    mine.lid = rng.choice([mine.lid, any_integer(rng, 0, LID_MAX)])
    mine.audit = {peer: any_integer(rng, 0, AUDIT) for peer in peers}
    mine.val = any_integer(rng, 0, 2)
    mine.views = {peer: (any_integer(rng, 0, 2), it) for peer, (_, it) in mine.views.items()}
