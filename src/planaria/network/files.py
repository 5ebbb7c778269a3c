"""Small files that a person reads: written whole or not at all, refused with one line."""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planaria.core.errors import UsageError


def write_atomically(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Put `content` at `path`; a reader sees the old file or the new one, never half of it.

    `durable`: it is on disk when this returns.
    """
    raw = content.encode() if isinstance(content, str) else content
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(raw)
            if durable:
                file.flush()
                os.fdatasync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; raises UsageError, with file and line, if there are none."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(
            f"cannot read {path}: {reason}; make it readable, or name another"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None


def toml_text(values: Mapping[str, str | int | float | bool | list[str]]) -> str:
    """Plain values as lines of TOML, which writes them as JSON does."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def path_from(kind: type, value: object) -> Path:
    """Paths as TOML has them; for `msgspec.convert`, which knows no paths."""
    if kind is not Path or not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
    return Path(value)
