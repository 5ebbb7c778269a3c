"""The source: topics of a live network as tables and streams of Spark."""
