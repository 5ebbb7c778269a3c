"""An event loop in a thread of its own, for tests of what is not `async`."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread


@contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Run a loop until the block ends, also by a failure: its thread would keep pytest waiting."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
