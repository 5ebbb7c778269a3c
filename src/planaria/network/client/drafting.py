"""What applications hand in, as publications: checked, encoded, stamped with the time."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from time import time_ns

from planaria.core.errors import UsageError
from planaria.network.client.overlays import check_overlay
from planaria.network.client.publishing import Wish
from planaria.records.packing import PACKED_BYTES, PACKED_PUBLICATIONS
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
    pairs = tuple((name, _bytes(value)) for name, value in (headers or {}).items())
    return Draft(_bytes(payload), None if key is None else _bytes(key), pairs, microseconds)


def _bytes(value: bytes | str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytearray | memoryview):
        raise UsageError(f"a payload, key or header is bytes or text, not {type(value).__name__}")
    return bytes(value)


def wish_of(copies: int, strict: bool, durability: str, overlay: str | None = None) -> Wish:
    """How safe it is to be; raises UsageError for what cannot be meant."""
    if copies < 1:
        raise UsageError(f"{copies} copies: at least 1")
    if durability not in ("disk", "memory"):
        raise UsageError(f"durability {durability!r}: disk or memory")
    return Wish(copies, strict, durability == "disk", check_overlay(overlay))


async def packs(
    payloads: Iterable[bytes | str | Draft] | AsyncIterable[bytes | str | Draft],
) -> AsyncIterator[list[Draft]]:
    """What is to be published: about a record at a time, but what others bring when it comes."""
    if isinstance(payloads, AsyncIterable):
        async for payload in payloads:
            yield [_stamped(payload, time_ns() // 1000)]
        return
    drafts, size, now = list[Draft](), 0, time_ns() // 1000
    for payload in payloads:
        drafts.append(_stamped(payload, now))
        size += len(drafts[-1].payload)
        if len(drafts) >= PACKED_PUBLICATIONS or size >= PACKED_BYTES:
            yield drafts
            await asyncio.sleep(0)
            drafts, size, now = [], 0, time_ns() // 1000
    if drafts:
        yield drafts


def _stamped(payload: bytes | str | Draft, now: int) -> Draft:
    """A publication with a time."""
    if not isinstance(payload, Draft):
        return Draft(_bytes(payload), None, (), now)
    return payload if payload.timestamp is not None else payload._replace(timestamp=now)
