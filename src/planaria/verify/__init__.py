"""Explicit-state search over the protocols' own classes: every start, every order, every coin."""
