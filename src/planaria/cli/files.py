"""Files that a command writes: whole or not at all."""

import os
from pathlib import Path

from planaria.core.errors import UsageError


def write_atomically(path: Path, content: str | bytes) -> None:
    """Put `content` at `path`; a reader sees the old file or the new one, never half of it."""
    raw = content.encode() if isinstance(content, str) else content
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(raw)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
