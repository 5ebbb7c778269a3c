"""Measures without Spark: the papers' experiments, and the contest of the overlays."""
