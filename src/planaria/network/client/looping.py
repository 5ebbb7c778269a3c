"""An event loop in a thread of its own, for code that waits."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

R = TypeVar("R")


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever, name="planaria", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R], timeout: float | None = None) -> R:
        """Run it there and wait for it; whatever interrupts the wait cancels it."""
        future: Future[R] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
