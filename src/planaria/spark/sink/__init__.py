"""The sink of Spark: rows that are published as batches, each whole and once."""
