"""Pictures of runs: rings, moving graphs, Lamport diagrams."""
