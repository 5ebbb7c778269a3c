"""How an application that embeds a node reads: one task, which may stop and begin again."""

import asyncio

import pytest

from planaria.core.errors import UsageError
from planaria.network.embedded import Subscription
from planaria.records.batches import Slice
from records_lab import record


def subscription() -> Subscription:
    return Subscription("a", lambda _: None)


def test_a_second_task_that_reads_is_refused_and_the_first_gets_what_comes() -> None:
    async def main() -> None:
        one = subscription()
        first = asyncio.ensure_future(one.__anext__())
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="another task reads it already"):
            await one.__anext__()
        one.take("a", [Slice(record(), 0, 1)])
        one.take("a", [Slice(record(first=1), 1, 2)])
        assert [event.sequence for event in await first] == [0, 1]

    asyncio.run(main())


def test_who_gave_up_waiting_may_read_again_and_misses_nothing() -> None:
    async def main() -> None:
        one = subscription()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(one.__anext__(), 0)
        one.take("a", [Slice(record(), 0, 1)])
        assert [event.sequence for event in await one.__anext__()] == [0]
        waiting = asyncio.ensure_future(one.__anext__())
        await asyncio.sleep(0)
        one.take("a", [Slice(record(first=1), 1, 2)])
        waiting.cancel()  # woken and cancelled in one turn
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [event.sequence for event in await one.__anext__()] == [1]

    asyncio.run(main())


def test_a_reader_is_told_that_the_subscription_was_closed_under_it() -> None:
    async def main() -> None:
        one = subscription()
        waiting = asyncio.ensure_future(one.__anext__())
        await asyncio.sleep(0)
        one.close()
        with pytest.raises(StopAsyncIteration):
            await waiting

    asyncio.run(main())
