"""Leased routing measured: section 4 of its paper in closed form and as arrays."""
