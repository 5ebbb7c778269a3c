"""Breaks running networks by schedule, watches them heal, and judges what became of it all."""
