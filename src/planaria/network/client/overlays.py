"""The overlays that a client can name."""

from planaria.core.errors import unknown

RING = "ring"
OVERLAYS = (RING, "gossip", "content", "mobile")


def check_overlay(name: str | None) -> str:
    """An overlay as it travels, empty for none; raises UsageError that names them all."""
    if name is not None and name not in OVERLAYS:
        raise unknown("overlay", name, OVERLAYS)
    return name or ""
