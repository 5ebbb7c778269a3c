"""`planaria sim tree`: the tree over the DHT, with the degree of its reference tree to choose."""

from planaria.protocols.tree.overlay import TreeOverlay
from planaria.simulator.worlds.registry import Kind, Option

TREE = Kind(
    TreeOverlay, (Option("degree", 3, "Degree of the reference tree; above 3, a wide one."),)
)
