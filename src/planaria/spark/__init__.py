"""The laboratory on Spark: many seeded simulations as tasks, their results as tables."""
