"""The event loop of nodes and of what is measured: uvloop's where it is installed."""

import asyncio
import ctypes
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(main)


def give_memory_back() -> None:
    """Return to the system what lies free in the heap: buffers of closed connections above all.

    Each has 256 KiB with TLS in uvloop. Freed in any order they leave a heap of holes, which glibc
    keeps, and which grows with every crowd of clients. Other libraries need no such call. To have
    each buffer returned as it is freed cost up to a fifth of a delivery: frames are as large.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    found: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
    return found
