"""Spark's readers without Spark: many streams, slow nodes, reads that are left early."""

import asyncio
from pathlib import Path
from time import monotonic, time
from typing import Any

import pytest

from gate_lab import TOPIC, Lab, numbered, publish, run, until
from planaria.network.client.errors import Unreachable
from planaria.network.client.messages import Put
from planaria.network.context import Context
from planaria.network.identity import found_cluster, issue
from planaria.spark.datasource import PlanariaDataSource
from planaria.spark.source import overview
from planaria.spark.source.fetch import Condition
from planaria.spark.source.rows import batches
from source_lab import ALL, Empty, Row, apart, follow, rows, stream, values


def test_a_thousand_streams_are_asked_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        who, count = writer.stream[0], 1500
        for number in range(count):
            writer.stream, writer.next = (who, number.to_bytes(12, "big")), 0
            writer.say(Put, TOPIC, writer.seal(b"a", b"b", at=int(time())).data, copies=1)
            if number % 100 == 0:
                await asyncio.sleep(0)
        await until(lambda: len(lab.store(0)) == 2 * count)
        reader = await apart(lambda: stream(lab))
        end = await apart(lambda: reader.latestOffset(Empty.of(reader), ALL))
        asked = 0
        honest = lab.gates[0].queries._range

        def counted(*rest: Any) -> Any:
            nonlocal asked
            asked += 1
            return honest(*rest)

        monkeypatch.setattr(lab.gates[0].queries, "_range", counted)
        found = await apart(lambda: rows(reader, Empty.of(reader), end))
        assert values(found) == [b"a", b"b"] * count
        assert asked < 20
        await apart(reader.stop)

    run(read, 1, 1)


def test_a_node_that_answers_slowly_is_heard_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "NEWS_SECONDS", 0.02)

    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 3)
        reader = await apart(lambda: stream(lab))
        queries = lab.gates[0].queries
        honest = queries.ask_extent

        def slow(*given: Any) -> None:
            asyncio.get_running_loop().call_later(0.5, honest, *given)

        monkeypatch.setattr(queries, "ask_extent", slow)
        found = list[Row]()
        for _ in range(40):
            found, _ = await apart(follow, reader, Empty.of(reader))
            if found:
                break
        assert values(found) == numbered(3)
        await apart(reader.stop)

    run(read, 1, 1)


def test_a_read_that_is_left_early_hangs_up() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 3)
        reader = await apart(lambda: stream(lab))
        end = await apart(lambda: reader.latestOffset(Empty.of(reader), ALL))
        (task,) = reader.partitions(Empty.of(reader), end)
        sessions = len(lab.gates[0].sessions)
        context = Context((lab.hosts[0].hello.addresses[0],), insecure=True)
        arguments = (context, reader.schema, task.value, Condition())
        left = batches(*arguments, fail_on_data_loss=True)
        await apart(lambda: next(left))
        await apart(left.close)
        await until(lambda: len(lab.gates[0].sessions) == sessions)
        await apart(reader.stop)
        await until(lambda: len(lab.gates[0].sessions) == sessions - 1)

    run(read, 1, 1)


def test_a_query_that_has_read_all_waits_for_news_at_its_node() -> None:
    """Spark asks again as soon as it is answered: at once would be 77 times a second."""

    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 3)
        reader = await apart(lambda: stream(lab))
        _, end = await apart(follow, reader, Empty.of(reader))
        before = monotonic()
        for _ in range(4):
            assert await apart(lambda: reader.latestOffset(end, ALL)) == end
        assert monotonic() - before > 3 * overview.NEWS_SECONDS, "the first may have been under way"
        await publish(writer, 1)
        for _ in range(100):
            if (later := await apart(lambda: reader.latestOffset(end, ALL))) != end:
                break
        assert values(await apart(lambda: rows(reader, end, later))) == numbered(1)
        await apart(reader.stop)

    run(read, 1, 1)


@pytest.mark.parametrize("insecure", ["true", "false"])
def test_who_reaches_no_node_is_told_of_the_options_that_spark_has(
    insecure: str, tmp_path: Path
) -> None:
    found_cluster(tmp_path, "demo")
    keys = {} if insecure == "true" else {"credentials": issue(tmp_path, "carol", ("client",))}
    options = {"servers": "127.0.0.1:1", "subscribe": "a", "insecure": insecure, **keys}
    found = PlanariaDataSource({name: str(value) for name, value in options.items()})
    reader = found.reader(found.schema())
    with pytest.raises(Unreachable, match=r"refused.*in Python and Spark `servers` or `context`"):
        reader.partitions()


@pytest.mark.parametrize("why", ["no TLS there", "until somebody can issue it", "closed"])
def test_all_advice_to_name_other_nodes_is_for_spark_too(why: str) -> None:
    assert "in Python and Spark `servers`" in str(Unreachable({"a:1": why}))
