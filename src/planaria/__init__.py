"""Planaria: publish/subscribe that heals itself, as pure state machines that run anywhere."""

__version__ = "0.1.0"
