"""The live network beside other systems: one run, separate processes, the same messages."""
