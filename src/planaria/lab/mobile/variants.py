"""The mobile overlay with the two orientations that do not heal, for comparison with heights.

planaria sim planaria.lab.mobile.variants:EDGE_BITS --graph grid:8x8 --start fresh
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from planaria.core.errors import unknown
from planaria.core.ids import NodeId, stable_hash
from planaria.core.node import Node
from planaria.core.state import State
from planaria.lab.mobile.edge_bits import (
    EdgeBits,
    EdgeBitsLayer,
    EdgeBitsLayerState,
    scramble_edge_bits,
)
from planaria.lab.mobile.judges import EdgeBitsJudge, ThreeStateJudge
from planaria.lab.mobile.three_state import (
    ThreeState,
    ThreeStateLayer,
    ThreeStateLayerState,
    scramble_three_state,
)
from planaria.protocols.mobile.layer import Layer
from planaria.protocols.mobile.node import MobileNode, MobileState
from planaria.protocols.mobile.orientation import Orientation
from planaria.protocols.mobile.overlay import unwrap
from planaria.simulator.worlds.mobile import OPTIONS, OUTPUTS, MovingOverlay, connect
from planaria.simulator.worlds.registry import Kind


class ThreeStateNodeState(MobileState):
    """The peers in reach, and layers of three states."""

    layers: dict[str, ThreeStateLayerState]  # type: ignore[assignment]


class ThreeStateNode(MobileNode):
    """A node whose layers are oriented by three states."""

    state_type = ThreeStateNodeState
    layer_type = ThreeStateLayer


class EdgeBitsNodeState(MobileState):
    """The peers in reach, and layers of edge bits."""

    layers: dict[str, EdgeBitsLayerState]  # type: ignore[assignment]


class EdgeBitsNode(MobileNode):
    """A node whose layers are oriented by bits."""

    state_type = EdgeBitsNodeState
    layer_type = EdgeBitsLayer


class VariantOverlay(MovingOverlay):
    """Nodes that move, with another orientation; `safe_on` says where it keeps its promise."""

    orientation: ClassVar[str]
    safe_on: ClassVar[str]

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """The overlay's, and where the orientation is safe."""
        variant = {"orientation": self.orientation, "safe_on": self.safe_on}
        return variant | super().metrics(states)


class ThreeStateOverlay(VariantOverlay):
    """Link reversal with three states, as the paper has it but for one rule."""

    orientation = "three-state"
    safe_on = (
        "trees, from any values, but a broken tree stays in parts; "
        "any other graph from equal values while no link is added"
    )
    node_type = ThreeStateNode
    judge = ThreeStateJudge()

    def scramble_orientation(self, mine: Orientation, peers: list[NodeId], rng: Random) -> None:
        """Arbitrary values and identifiers."""
        scramble_three_state(mine, peers, rng)

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary values, also for who knows what a node says of itself."""
        super().corrupt(node, ids, rng)
        for layer in unwrap(node).layers.values():
            assert isinstance(layer, ThreeStateLayer)
            layer.informed = {peer: rng.random() < 0.5 for peer in layer.links}

    def link(self, mine: Layer, other: Layer) -> None:
        """My side of a link that begins up, between nodes of equal values."""
        orientation, theirs = mine.orientation, other.orientation
        assert isinstance(orientation, ThreeState)
        assert isinstance(theirs, ThreeState)
        orientation.views[other.id] = (theirs.val, theirs.lid)
        connect(mine, other)
        assert isinstance(mine, ThreeStateLayer)
        mine.informed[other.id] = True


class EdgeBitsOverlay(VariantOverlay):
    """Link reversal with one bit per link and end."""

    orientation = "edge-bits"
    safe_on = "any graph, any link at any time, from an acyclic state; it does not heal itself"
    node_type = EdgeBitsNode
    judge = EdgeBitsJudge()

    def scramble_orientation(self, mine: Orientation, peers: list[NodeId], rng: Random) -> None:
        """Arbitrary bits and counts."""
        scramble_edge_bits(mine, rng)

    def link(self, mine: Layer, other: Layer) -> None:
        """My side of a link that begins up, tokens in a random order.

        Random, because tokens in the order of ids leave a ring with one sink that wanders round it.
        """
        orientation = mine.orientation
        assert isinstance(orientation, EdgeBits)
        orientation.agree(other.id, mine=_rank(mine) < _rank(other))
        connect(mine, other)


def _rank(layer: Layer) -> tuple[int, NodeId]:
    return stable_hash(layer.topic, layer.id, bits=64), layer.id


ORIENTATIONS: Mapping[str, type[MovingOverlay]] = {
    "heights": MovingOverlay,
    "three-state": ThreeStateOverlay,
    "edge-bits": EdgeBitsOverlay,
}
THREE_STATE = Kind(make=ThreeStateOverlay, options=OPTIONS, outputs=OUTPUTS)
EDGE_BITS = Kind(make=EdgeBitsOverlay, options=OPTIONS, outputs=OUTPUTS)


def oriented(orientation: str, graph: str = "grid", **options: Any) -> MovingOverlay:
    """The overlay with the orientation of that name; the product's is `heights`."""
    if orientation not in ORIENTATIONS:
        raise unknown("orientation", orientation, ORIENTATIONS)
    return ORIENTATIONS[orientation](graph, **options)
