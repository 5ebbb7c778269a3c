"""Records on disk: one SQLite file per node, one writer, a start from whatever is left of it."""
