"""Sizes and times in the few characters that a column has."""


def size_text(size: float | None) -> str:
    """`512 B`, `1.5 KiB`, ...; `-` if unknown."""
    if size is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def seconds_text(seconds: float) -> str:
    """`42s`, `3m`, `5h`, `12d`."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f}{unit}"
    return f"{seconds:.0f}s"
