"""An event loop in a thread of its own, for code that waits."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Thread, current_thread
from typing import Any, TypeVar

from planaria.core.errors import UsageError

LAST_SECONDS = 1.0  # for what runs when a loop is ended

R = TypeVar("R")


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.ended = False
        self._thread = Thread(target=self.loop.run_forever, name="planaria", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run it there and wait for it; whatever interrupts the wait cancels it.

        Raises UsageError if the loop has ended, or if it would wait for itself.
        """
        if self.ended or current_thread() is self._thread:
            work.close()
            raise UsageError(
                "this client is closed: connect again"
                if self.ended
                else "a call from the client's own thread would wait for ever"
            )
        future: Future[R]
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except BaseException:  # Ctrl-C, before the loop had it
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and its thread; who still waits in another thread is let go first."""
        asyncio.run_coroutine_threadsafe(_last(), self.loop).result()
        self.ended = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _last() -> None:
    """Let all that others wait for come to its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, late = await asyncio.wait(others, timeout=LAST_SECONDS)
        for one in late:
            one.cancel()
        await asyncio.gather(*late, return_exceptions=True)
