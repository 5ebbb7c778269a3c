"""daMulticast measured: formulas, arrays, the exact chain and the alternatives."""
