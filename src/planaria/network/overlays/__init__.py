"""The overlays beside `ring` that a node of the live network takes part in."""
