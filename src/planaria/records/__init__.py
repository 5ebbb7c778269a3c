"""Publications in records: sealing, packing, positions, windows, stores, reconciliation."""
