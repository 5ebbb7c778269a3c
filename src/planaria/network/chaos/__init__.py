"""Harm done to a running node, when it was started for that: frames, memory, clock."""
