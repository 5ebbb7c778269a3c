"""An event loop in a thread of its own, for code that waits."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from threading import Lock, Thread, current_thread
from typing import Any, Generic, TypeVar

from planaria.core.errors import UsageError

LAST_SECONDS = 1.0  # for what runs when a loop is ended
SIGNAL_SECONDS = 0.5  # after which a wait looks for Ctrl-C, which may come just before it begins

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
        return self._call(work)

    def stop(self) -> None:
        """End the loop and its thread; who still waits in another thread is let go first."""
        self._call(_last())
        self.ended = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _call(self, work: Coroutine[Any, Any, R]) -> R:
        call = _Call(work)
        try:
            self.loop.call_soon_threadsafe(call.begin)
            while not call.done.acquire(timeout=SIGNAL_SECONDS):
                pass
        except BaseException:
            self.loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()


class _Call(Generic[R]):
    """Work that a thread waits for; the loop's thread does all but that.

    Not a `concurrent.futures.Future`: Ctrl-C may strike where the waiting thread has just taken the
    lock inside it, which is then never released, and the loop would wait for that lock for ever.
    """

    def __init__(self, work: Coroutine[Any, Any, R]) -> None:
        self._work = work
        self._task: asyncio.Task[R] | None = None
        self.done = Lock()  # free when it is; the loop never takes it
        self.done.acquire()

    def begin(self) -> None:
        """Start the work."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """End it, whether it began or not: nobody waits any more."""
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def result(self) -> R:
        """What came of it; raises what it raised."""
        assert self._task is not None
        if self._task.cancelled():
            raise CancelledError
        return self._task.result()

    def _ended(self, task: asyncio.Task[R]) -> None:
        if not task.cancelled():
            task.exception()  # it has been looked at, also where nobody waits any more
        self.done.release()


async def _last() -> None:
    """Let all that others wait for come to its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, late = await asyncio.wait(others, timeout=LAST_SECONDS)
        for one in late:
            one.cancel()
        await asyncio.gather(*late, return_exceptions=True)
