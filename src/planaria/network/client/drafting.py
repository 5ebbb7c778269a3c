"""What applications hand in, as publications: checked, encoded, stamped with the time."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from operator import index
from time import time_ns
from typing import TypeVar

from planaria.core.errors import UsageError
from planaria.network.client.messages import COPIES, COPIES_MAX
from planaria.network.client.overlays import check_overlay
from planaria.network.client.publishing import RESERVED, Wish
from planaria.network.context import flag_of
from planaria.records import packing
from planaria.records.record import Draft
from planaria.records.tables import Headers

P = TypeVar("P")


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
    if not isinstance(headers, Mapping | None):
        raise UsageError(f"headers of type {type(headers).__name__}: a mapping of names to values")
    pairs = _pairs(headers.items()) if headers else ()
    return Draft(bytes_of(payload), None if key is None else bytes_of(key), pairs, microseconds)


def _pairs(headers: Iterable[tuple[str, str | bytes]]) -> Headers:
    try:
        pairs = [(name, value) for name, value in headers]
    except (TypeError, ValueError):
        raise UsageError(f"headers {headers!r:.40}: pairs of a name and a value") from None
    return tuple((_name(name), bytes_of(value)) for name, value in pairs)


def _name(name: str) -> str:
    """The name of a header; raises UsageError if no application may give it."""
    if not isinstance(name, str):
        raise UsageError(f"header {name!r}: its name is text, not {type(name).__name__}")
    if name.startswith(RESERVED):
        raise UsageError(f"header {name!r}: names that begin with {RESERVED} are Planaria's own")
    bytes_of(name)
    return name


def bytes_of(value: bytes | str) -> bytes:
    """Bytes, or text as UTF-8; raises UsageError if it is neither."""
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
    return Wish(wanted, flag_of("strict", strict), durability == "disk", check_overlay(overlay))


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
    return packing.packed(map(_stamped, each_of(payloads)))


def each_of(payloads: Iterable[P]) -> Iterator[P]:
    """One after the other; raises UsageError for what is no list, and for one that is a payload."""
    try:
        if not isinstance(payloads, str | bytes | bytearray | memoryview | Draft):
            return iter(payloads)
    except TypeError:
        pass
    kind = type(payloads).__name__
    raise UsageError(f"payloads of type {kind}: give a list or another iterable of bytes or text")


def _stamped(payload: bytes | str | Draft) -> Draft:
    """A publication with a time."""
    now = time_ns() // 1000
    if not isinstance(payload, Draft):
        return Draft(bytes_of(payload), None, (), now)
    body, key, headers, timestamp = payload
    at = now if timestamp is None else timestamp
    return Draft(bytes_of(body), None if key is None else bytes_of(key), _pairs(headers), at)
