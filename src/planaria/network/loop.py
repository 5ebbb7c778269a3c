"""The event loop of nodes and of what is measured: uvloop's where it is installed."""

import asyncio
import ctypes
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

MMAP_THRESHOLD = -3  # the name of the option in `mallopt` of glibc
BUFFER_BYTES = 1 << 18  # of one connection with TLS, in uvloop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end, as `asyncio.run` does."""
    give_buffers_back()
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(main)


def give_buffers_back() -> None:
    """Have the buffers of connections returned to the system when these are closed.

    glibc stops doing so after the first one: freed in any order they leave a heap of holes, which
    grows with every crowd of clients. Other libraries have no such option, and need none.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, BUFFER_BYTES)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    found: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
    return found
