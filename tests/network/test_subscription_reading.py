"""How an application that embeds a node reads: one task, which may stop and begin again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from live_lab import TOPIC, config, run, running
from planaria.core.errors import UsageError
from planaria.core.node import Delivery
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
            await asyncio.wait_for(one.__anext__(), 5)  # to wait would be for ever
        one.take("a", [Slice(record(), 0, 1)])
        one.take("a", [Slice(record(first=1), 1, 2)])
        assert [event.sequence for event in await first] == [0, 1]

    asyncio.run(main())


def test_who_gave_up_waiting_may_read_again_and_misses_nothing() -> None:
    async def main() -> None:
        one = subscription()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(one.__anext__(), 0.001)
        for number in (0, 1):
            waiting = asyncio.ensure_future(one.__anext__())
            await asyncio.sleep(0)
            one.take("a", [Slice(record(first=number), number, number + 1)])
            assert [event.sequence for event in await waiting] == [number]
        waiting = asyncio.ensure_future(one.__anext__())
        await asyncio.sleep(0)
        one.take("a", [Slice(record(first=2), 2, 3)])
        waiting.cancel()  # woken and cancelled in one turn
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [event.sequence for event in await one.__anext__()] == [2]

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


def test_what_a_node_delivers_is_told_to_its_reader_its_monitor_and_its_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(config(tmp_path / "n")) as live:
            subscription, told = live.subscribe(TOPIC), list[Sequence[Delivery]]()
            await subscription.ready()
            assert live.gate is not None
            monkeypatch.setattr(
                live.gate.tails, "on_deliver", lambda effect: told.append(effect.publications)
            )
            await live.publish(TOPIC, b"one")
            assert [event.payload for event in await subscription.__anext__()] == [b"one"]
            assert [[it.payload for it in some] for some in told] == [[b"one"]]
            assert live.monitor.deliveries == 1

    run(main)


def test_a_topic_that_nobody_can_publish_on_is_refused_each_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(config(tmp_path / "n")) as live:
            for topic in ("a/#", "a/#", "", "a/+"):
                with pytest.raises(UsageError):
                    await live.publish(topic, b"one")
            await live.publish(TOPIC, b"two")
            with pytest.raises(UsageError, match="wildcard"):
                await live.publish("a/#", b"three")

    run(main)
