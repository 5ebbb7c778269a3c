"""The contract between a protocol and whatever runs it. Imports nothing of the rest."""
