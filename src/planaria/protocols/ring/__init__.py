"""The self-stabilizing sorted ring, BuildList and BuildRing, over any totally ordered label."""
