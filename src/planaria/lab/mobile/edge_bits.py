"""EdgeBits: an orientation without counters and without identifiers (amendment 2).

Each end of a link keeps one bit. The token of the link is at the lower end if the bits agree, at
the higher end if they differ; a node that holds all its tokens is a sink, and flipping its bits
gives them all away. So every link points from the end that acted last to the other one, and a
cycle would have to go back in time.

A new link must keep that. It is forming until one end acts and offers it, saying how many acts of
the other it has heard of. The other accepts, as holder of the token, only if it has not acted
since: then the offering end did act last. It refuses otherwise. The answer names the act that it
answers, so an end that acted again in the meantime takes no notice and has offered anew.
"""

from random import Random

from msgspec import Struct

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.mobile.layer import Layer, LayerState
from planaria.protocols.mobile.messages import Word
from planaria.protocols.mobile.orientation import Orientation

ACTS = 1 << 16  # counts of acts are compared for equality only, within one handshake
# Timeouts in which an offer is answered, unless the other end is gone: words may take four and a
# half intervals each way. Who acts more often than that never agrees with anybody.
PATIENCE = 12
UP, FORMING = 1, 0


class Edge(Struct):
    """One end of a link, up or forming.

    `heard` counts the other's acts as last heard, `offer` is what it was when this end acted and
    offered; `accepted` and `refused` are offers of the other end, by its count.
    """

    up: bool = False
    bit: int = 0
    other: int = 0
    heard: int = 0
    offer: int | None = None
    accepted: int | None = None
    refused: int | None = None


class EdgeBitsState(State):
    """How often the node acted, its end of each link, and how long it waits for answers."""

    acts: int
    edges: dict[int, Edge]
    patience: int


class EdgeBits(Orientation):
    """One bit per link and end."""

    state_type = EdgeBitsState

    def __init__(self, id: NodeId, rng: Random) -> None:
        self.id = id
        self.acts = 0
        self.patience = 0
        self.edges: dict[NodeId, Edge] = {}

    def renew(self, rng: Random) -> None:
        """Nothing to draw: there is no identifier, so a late word may be taken for a new one."""

    def repair(self) -> None:
        """Own bits and counts in their range."""
        self.acts %= ACTS
        self.patience = min(max(self.patience, 0), PATIENCE)
        for edge in self.edges.values():
            edge.up, edge.bit, edge.other = bool(edge.up), edge.bit & 1, edge.other & 1
            edge.heard %= ACTS
            for name in ("offer", "accepted", "refused"):
                count = getattr(edge, name)
                if count is not None and not 0 <= count < ACTS:
                    setattr(edge, name, None)

    def greet(self) -> Word:
        """How often this node acted."""
        return (FORMING, self.acts, 0, 0, 0)

    def link_up(self, peer: NodeId, word: Word) -> bool:
        """The link is forming: both ends know of it, it has no direction yet."""
        if not _forming(word):
            return False
        self.edges[peer] = Edge(heard=word[1])
        return True

    def agree(self, peer: NodeId, *, mine: bool) -> None:
        """Begin with the link up and its token here or there, as both ends agree beforehand."""
        lower_has_it = mine == (self.id < peer)
        # The higher end keeps bit 0, so the lower one decides.
        bits = (0 if lower_has_it else 1, 0)
        own, other = bits if self.id < peer else bits[::-1]
        self.edges[peer] = Edge(up=True, bit=own, other=other)

    def link_down(self, peer: NodeId) -> None:
        """Forget the link, and any offer for it."""
        self.edges.pop(peer, None)

    def peers(self) -> list[NodeId]:
        """All links, forming ones too."""
        return list(self.edges)

    def oriented(self, peer: NodeId) -> bool:
        """Only after the handshake."""
        return peer in self.edges and self.edges[peer].up

    def sink(self) -> bool:
        """All tokens are here."""
        return all(
            (edge.bit == edge.other) == (self.id < peer)
            for peer, edge in self.edges.items()
            if edge.up
        )

    def takes_turn(self, rng: Random) -> bool:
        """Wait for the answers to offers, and with a forming link let half of the turns pass: two
        ends that always act at the same time would refuse each other's offers for ever."""
        forming = [edge for edge in self.edges.values() if not edge.up]
        if self.patience and any(edge.offer is not None for edge in forming):
            self.patience -= 1
            return False
        return self.sink() and not (forming and rng.random() < 0.5)

    def reverse(self) -> None:
        """Give all tokens away; offer every forming link, out of this source."""
        self.acts = (self.acts + 1) % ACTS
        self.patience = PATIENCE
        for edge in self.edges.values():
            if edge.up:
                edge.bit ^= 1
            else:
                edge.offer = edge.heard

    def word(self, peer: NodeId, *, whole: bool = False) -> Word:
        """My bit, or how far the handshake is."""
        edge = self.edges.get(peer, Edge())
        if edge.up:
            return (UP, edge.bit, 0 if edge.accepted is None else edge.accepted + 1)
        refused = 0 if edge.refused is None else edge.refused + 1
        offer = (0, 0) if edge.offer is None else (1, edge.offer)
        return (FORMING, self.acts, *offer, refused)

    def hear(self, peer: NodeId, word: Word, *, informed: bool = False) -> None:
        """Follow the other end's bit, or the handshake."""
        edge = self.edges.get(peer)
        if edge is None:
            return
        if _up(word):
            if edge.up:
                edge.other = word[1]
            elif edge.offer is not None and word[2] == self.acts + 1:
                self.edges[peer] = Edge(up=True, bit=0, other=word[1])
        elif _forming(word):
            self._hear_forming(peer, edge, word)

    def _hear_forming(self, peer: NodeId, edge: Edge, word: Word) -> None:
        _, acts, offering, heard, refused = word
        if edge.up:
            if not (offering and acts == edge.accepted):  # the other end lost the link: begin anew
                self.edges[peer] = Edge(heard=acts)
            return
        edge.heard = acts
        if refused == self.acts + 1:
            edge.offer = None
        if not offering:
            return
        if heard == self.acts:
            # The offering end has bit 0; mine puts the token here.
            self.edges[peer] = Edge(up=True, bit=int(self.id > peer), other=0, accepted=acts)
        else:
            edge.refused = acts


def _up(word: Word) -> bool:
    return len(word) == 3 and word[0] == UP and word[1] <= 1 and word[2] <= ACTS


def _forming(word: Word) -> bool:
    return len(word) == 5 and word[0] == FORMING and max(word[1:]) <= ACTS


class EdgeBitsLayerState(LayerState):
    """A layer oriented by bits."""

    orientation: EdgeBitsState  # type: ignore[assignment]


class EdgeBitsLayer(Layer):
    """A layer in which a turn may have to wait for the answer to an offer."""

    state_type = EdgeBitsLayerState
    orientation_type = EdgeBits

    def _takes_turn(self, rng: Random) -> bool:
        mine = self.orientation
        assert isinstance(mine, EdgeBits)
        return bool(mine.edges) and mine.takes_turn(rng)


def scramble_edge_bits(mine: Orientation, rng: Random) -> None:
    """Arbitrary values for all variables but which links there are."""
    assert isinstance(mine, EdgeBits)
    mine.acts, mine.patience = any_integer(rng, 0, ACTS), any_integer(rng, 0, PATIENCE)
    for edge in mine.edges.values():
        edge.bit, edge.other = any_integer(rng, 0, 1), any_integer(rng, 0, 1)
        edge.heard = any_integer(rng, 0, ACTS)
        edge.offer, edge.accepted, edge.refused = (
            rng.choice([None, any_integer(rng, 0, ACTS)]) for _ in range(3)
        )
