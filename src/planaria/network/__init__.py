"""The live network: the protocol classes of the simulator, run by real processes over TLS."""
