"""Measures without Spark: the papers' experiments as arrays and runs, and the contest of overlays."""
