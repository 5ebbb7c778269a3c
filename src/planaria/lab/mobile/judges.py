"""When is a layer of three states, or of edge bits, legitimate? As with heights but for directions.

Three states are level if they can be lifted to heights whose gaps are at most one.
"""

from typing import Any

from planaria.core.ids import NodeId
from planaria.core.overlay import Violation
from planaria.lab.mobile.edge_bits import Edge, EdgeBitsState
from planaria.lab.mobile.three_state import ThreeStateState
from planaria.protocols.mobile.layer import LayerState
from planaria.protocols.mobile.legitimacy import LayerJudge, Layers, linked
from planaria.protocols.mobile.messages import Beat


class ThreeStateJudge(LayerJudge):
    """Judges a layer oriented by three states."""

    def enough(self, connection_points: int, near: int) -> int:
        """It is told its links, or asks for one: both are legitimate."""
        return min(1, super().enough(connection_points, near))

    def sink(self, id: NodeId, layer: LayerState) -> bool:
        """Every neighbour is one ahead, or equal with a higher identifier."""
        mine = _three(layer)
        return all(
            (val - mine.val) % 3 == 1 or (val == mine.val and (mine.lid, id) < (lid, peer))
            for peer, (val, lid) in mine.views.items()
        )

    def points_to(self, a: NodeId, x: LayerState, b: NodeId, y: LayerState) -> NodeId | None:
        """Definition 4, with the id where two identifiers are equal."""
        mine, other = _three(x), _three(y)
        if mine.val == other.val:
            return a if (mine.lid, a) < (other.lid, b) else b
        return a if (mine.val + 1) % 3 == other.val else b

    def level(self, layers: Layers) -> list[Violation]:
        """Neighbours that are level and know it, and a lift of all."""
        found = []
        for id, layer in layers.items():
            mine = _three(layer)
            for peer, view in mine.views.items():
                if peer in layers:
                    found += _between(id, mine, peer, _three(layers[peer]), view)
        return found + _lift(layers)

    def misleads(self, target: LayerState, sender: LayerState, beat: Beat) -> bool:
        """Would the word make its target believe more than is true, or less than it knows?"""
        truth, mine, word = _three(sender), _three(target), beat.word
        known = mine.views.get(beat.sender)
        if not word or known is None:
            return False
        if len(word) == 2 and word[1] != truth.lid:
            return True
        return not _above(mine, known[0]) <= _above(mine, word[0]) <= _above(mine, truth.val)


class EdgeBitsJudge(LayerJudge):
    """Judges a layer oriented by bits: there are no heights, so nothing to be level."""

    def oriented(self, layer: LayerState, peer: NodeId) -> bool:
        """Only after the handshake."""
        edge = _edges(layer).get(peer)
        return edge is not None and bool(edge.up)

    def sink(self, id: NodeId, layer: LayerState) -> bool:
        """All tokens are here."""
        edges = _edges(layer).items()
        return all((it.bit == it.other) == (id < peer) for peer, it in edges if it.up)

    def points_to(self, a: NodeId, x: LayerState, b: NodeId, y: LayerState) -> NodeId | None:
        """To the lower id if the bits agree; None while one end is forming."""
        mine, other = _edges(x).get(b), _edges(y).get(a)
        if mine is None or other is None or not (mine.up and other.up):
            return None
        return min(a, b) if mine.bit == other.bit else max(a, b)

    def level(self, layers: Layers) -> list[Violation]:
        """Nothing."""
        return []

    def misleads(self, target: LayerState, sender: LayerState, beat: Beat) -> bool:
        """A bit is not judged: where links point is."""
        return False


def _three(layer: LayerState) -> ThreeStateState:
    found: Any = layer.orientation
    assert isinstance(found, ThreeStateState)
    return found


def _edges(layer: LayerState) -> dict[int, Edge]:
    found: Any = layer.orientation
    assert isinstance(found, EdgeBitsState)
    return found.edges


def _above(mine: ThreeStateState, val: int) -> int:
    """How far a value is above a node's: three states tell -1, 0 and 1 only."""
    return (val - mine.val + 1) % 3 - 1


def _between(
    id: NodeId, mine: ThreeStateState, peer: NodeId, other: ThreeStateState, view: tuple[int, int]
) -> list[Violation]:
    found = []
    low = -1 if (mine.lid, id) < (other.lid, peer) else 0
    seen, true = _above(mine, view[0]), _above(mine, other.val)
    if not low <= true <= low + 1:
        found.append(Violation("level", id, f"{peer} is {true} above it: {low} or {low + 1}"))
    if not low <= seen <= true or view[1] != other.lid:
        found.append(Violation("view", id, f"takes {peer} for {view[0]}"))
    return found


def _lift(layers: Layers) -> list[Violation]:
    """Walk from node to node adding up differences; a cycle must add up to zero."""
    lift: dict[NodeId, int] = {}
    around: dict[NodeId, list[NodeId]] = {id: [] for id in layers}
    for a, b in linked(layers):
        around[a].append(b)
        around[b].append(a)
    for start in layers:
        queue = [] if start in lift else [start]
        lift.setdefault(start, 0)
        while queue:
            id = queue.pop()
            for peer in around[id]:
                height = lift[id] + _above(_three(layers[id]), _three(layers[peer]).val)
                if peer not in lift:
                    lift[peer] = height
                    queue.append(peer)
                elif lift[peer] != height:
                    return [Violation("level", peer, f"no lift: {lift[peer]} and {height}")]
    return []
