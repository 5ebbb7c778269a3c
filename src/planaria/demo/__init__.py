"""The first five minutes: a real network, a real stream, Spark, and everything broken in turn."""
