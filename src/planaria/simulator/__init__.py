"""Virtual time, faults, corruption, traces: one driver of the protocols."""
