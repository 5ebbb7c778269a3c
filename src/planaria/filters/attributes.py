"""The attributes of a publication: the members of the JSON object that its payload is."""

from typing import Any

from msgspec import DecodeError, json


def object_of(payload: bytes) -> dict[str, Any]:
    """The JSON object in a payload; empty if it is none."""
    try:
        found = json.decode(payload) if payload[:1] in b"{ \t\r\n" else None
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
