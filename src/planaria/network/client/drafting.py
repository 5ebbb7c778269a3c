"""What applications hand in, as publications: checked, encoded, stamped with the time."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from operator import index
from time import time_ns

from planaria.core.errors import UsageError
from planaria.network.client.messages import COPIES, COPIES_MAX
from planaria.network.client.overlays import check_overlay
from planaria.network.client.publishing import RESERVED, Wish
from planaria.records import packing
from planaria.records.record import Draft


def draft_of(
    payload: bytes | str,
    key: bytes | str | None,
    headers: Mapping[str, str | bytes] | None,
    timestamp: int | None,
) -> Draft:
    """A publication as it was given, text as UTF-8, with the present if it has no time."""
    if timestamp is not None and not isinstance(timestamp, int):
        raise UsageError(f"timestamp {timestamp!r}: whole milliseconds since 1970")
    microseconds = time_ns() // 1000 if timestamp is None else timestamp * 1000
    pairs = tuple((_name(name), _bytes(value)) for name, value in (headers or {}).items())
    return Draft(_bytes(payload), None if key is None else _bytes(key), pairs, microseconds)


def _name(name: str) -> str:
    """The name of a header; raises UsageError if no application may give it."""
    if not isinstance(name, str):
        raise UsageError(f"header {name!r}: its name is text, not {type(name).__name__}")
    if name.startswith(RESERVED):
        raise UsageError(f"header {name!r}: names that begin with {RESERVED} are Planaria's own")
    _bytes(name)
    return name


def _bytes(value: bytes | str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"{value!r} is no text: {error.reason}; give bytes") from None
    if not isinstance(value, bytearray | memoryview):
        raise UsageError(f"a payload, key or header is bytes or text, not {type(value).__name__}")
    return bytes(value)


def wish_of(
    copies: int = COPIES,
    strict: bool = False,
    durability: str = "disk",
    overlay: str | None = None,
) -> Wish:
    """How safe it is to be; raises UsageError for what cannot be meant."""
    try:
        wanted = index(copies)
    except TypeError:
        raise UsageError(f"{copies!r} copies: a whole number") from None
    if not 1 <= wanted <= COPIES_MAX:
        raise UsageError(f"{wanted} copies: 1 to {COPIES_MAX}")
    if durability not in ("disk", "memory"):
        raise UsageError(f"durability {durability!r}: disk or memory")
    return Wish(wanted, bool(strict), durability == "disk", check_overlay(overlay))


async def packs(
    payloads: Iterable[bytes | str | Draft] | AsyncIterable[bytes | str | Draft],
) -> AsyncIterator[list[Draft]]:
    """What is to be published: about a record at a time, but what others bring when it comes."""
    if isinstance(payloads, AsyncIterable):
        async for payload in payloads:
            yield [_stamped(payload)]
        return
    for drafts in packed(payloads):
        yield drafts
        await asyncio.sleep(0)


def packed(payloads: Iterable[bytes | str | Draft]) -> Iterator[list[Draft]]:
    """What is to be published, a record at a time. Should one be bad, those before come first."""
    return packing.packed(map(_stamped, payloads))


def _stamped(payload: bytes | str | Draft) -> Draft:
    """A publication with a time."""
    now = time_ns() // 1000
    if not isinstance(payload, Draft):
        return Draft(_bytes(payload), None, (), now)
    for name, _ in payload.headers:
        _name(name)
    return payload if payload.timestamp is not None else payload._replace(timestamp=now)
