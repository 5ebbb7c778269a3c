"""Spark's readers without Spark: many topics with little in each."""

import asyncio
from typing import Any

import pytest

from gate_lab import Lab, run, until
from planaria.spark.source import fetch, overview
from source_lab import ALL, Empty, apart, batch, rows, stream

MANY = 20


async def publish_on_many(lab: Lab) -> None:
    """One publication on each of many topics."""
    writer = await lab.client(0)
    for number in range(MANY):
        writer.stream, writer.next = (writer.stream[0], number.to_bytes(12, "big")), 0
        await writer.publish(b"%d" % number, topic=f"many/{number}", copies=1)


def found(table: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
    return sorted((row["topic"], row["value"]) for row in table)


PUBLISHED = sorted((f"many/{number}", b"%d" % number) for number in range(MANY))


def test_each_node_is_asked_for_all_topics_over_one_connection() -> None:
    """One for each topic at each node: 1,000 topics at 4 nodes were 3,000 handshakes."""

    async def read(lab: Lab) -> None:
        await publish_on_many(lab)
        opened = [0] * 3
        for at, gate in enumerate(lab.gates):

            def counted(connection: Any, at: int = at, honest: Any = gate.opened) -> None:
                opened[at] += 1
                honest(connection)

            gate.opened = counted  # type: ignore[method-assign]
        reader = batch(lab, subscribe="many/#")
        tasks = await apart(reader.partitions)
        assert all(1 <= count <= 2 for count in opened), opened
        assert len(tasks) >= 1
        assert found(await apart(lambda: rows(reader))) == PUBLISHED

    run(read, 3, 1)


def test_others_are_waited_for_while_they_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "OTHERS_SECONDS", 0.2)
    told: list[dict[str, Any]] = [{}, {}]

    async def answer(into: dict[str, Any], count: int, *, ends: bool) -> None:
        for number in range(count):
            await asyncio.sleep(0.1)
            into[str(number)] = []
        if not ends:
            await asyncio.sleep(60)

    async def main() -> None:
        others = [
            asyncio.create_task(answer(told[0], 8, ends=True)),
            asyncio.create_task(answer(told[1], 2, ends=False)),
        ]
        await overview._as_they_answer(others, told)
        assert others[0].done()
        assert not others[1].done(), "it says nothing more"
        others[1].cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await overview._as_they_answer([], [])

    asyncio.run(main())
    assert [len(it) for it in told] == [8, 2]


@pytest.mark.parametrize(("rows_first", "at_once"), [(1024, MANY), (1, fetch.AHEAD)])
def test_many_small_questions_are_under_way_and_few_large_ones(
    monkeypatch: pytest.MonkeyPatch, rows_first: int, at_once: int
) -> None:
    """Before a row has come, so many are thought to fill an answer."""
    monkeypatch.setattr(fetch, "ROWS_FIRST", rows_first)
    held = list[tuple[Any, ...]]()

    async def read(lab: Lab) -> None:
        await publish_on_many(lab)
        reader = batch(lab, 0, subscribe="many/#", minPartitions=1)
        (task,) = await apart(reader.partitions)
        queries = lab.gates[0].queries
        honest = queries.read
        monkeypatch.setattr(queries, "read", lambda *given: held.append(given))
        reading = asyncio.ensure_future(apart(lambda: [*reader.read(task)]))
        await until(lambda: len(held) >= at_once)
        await asyncio.sleep(0.1)
        assert len(held) == at_once
        monkeypatch.setattr(queries, "read", honest)
        for given in held:
            honest(*given)
        table = [row for one in await reading for row in one.to_pylist()]
        assert found(table) == PUBLISHED

    run(read, 1, 1)


def test_questions_for_news_of_many_topics_wait_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "NEWS_TOPICS", 5)
    waits = list[int]()

    async def read(lab: Lab) -> None:
        await publish_on_many(lab)
        reader = await apart(lambda: stream(lab, 0, subscribe="many/#", startingOffsets="earliest"))
        end = await apart(lambda: reader.latestOffset(Empty.of(reader), ALL))
        queries = lab.gates[0].queries
        honest = queries.ask_extent

        def counted(session: Any, message: Any) -> None:
            waits.append(message.wait)
            honest(session, message)

        monkeypatch.setattr(queries, "ask_extent", counted)
        for _ in range(8):
            end = await apart(reader.latestOffset, end, ALL)
        assert max(waits) == 1000 * overview.NEWS_SECONDS * MANY / 5
        table = await apart(lambda: rows(reader, Empty.of(reader), end))
        assert found(table) == PUBLISHED
        await apart(reader.stop)

    run(read, 1, 1)
