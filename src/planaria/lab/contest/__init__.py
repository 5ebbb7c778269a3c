"""The overlays and what one would use instead, on one workload with the same faults."""
