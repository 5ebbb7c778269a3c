"""Filters that are pushed down change what travels, never what a query finds."""

import random
from datetime import UTC, datetime, timedelta
from time import time
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from gate_lab import Lab, run
from planaria.network.client.messages import Put, Stored
from planaria.spark.source.fetch import Condition
from planaria.spark.source.push import literal
from source_lab import Row, apart, batch, rows

SCHEMA = "n BIGINT, x DOUBLE, s STRING, b BOOLEAN"
COLUMNS = "topic,publisher,sequence,timestamp,n,x,s,b"
COMPARED = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
EVENTS = 60


def holds(filter: Filter, row: Row) -> bool:
    """Does a row pass, as SQL understands it?"""
    if isinstance(filter, Not):
        child = filter.child
        return row[child.attribute[0]] is not None and not holds(child, row)  # type: ignore[attr-defined]
    value = row[filter.attribute[0]]  # type: ignore[attr-defined]
    if value is None or isinstance(filter, IsNotNull):
        return value is not None
    wanted: Any = filter.value  # type: ignore[attr-defined]
    judged = {
        EqualTo: lambda: value == wanted,
        EqualNullSafe: lambda: value == wanted,
        GreaterThan: lambda: value > wanted,
        GreaterThanOrEqual: lambda: value >= wanted,
        LessThan: lambda: value < wanted,
        LessThanOrEqual: lambda: value <= wanted,
        In: lambda: value in wanted,
        StringStartsWith: lambda: value.startswith(wanted),
        StringContains: lambda: wanted in value,
    }
    return bool(judged[type(filter)]())  # type: ignore[no-untyped-call]


def drawn(chance: random.Random, found: list[Row]) -> Filter:
    """A filter on a column, mostly about a value that occurs in it."""
    name = chance.choice(COLUMNS.split(","))
    values = [row[name] for row in found if row[name] is not None]
    value = chance.choice(values)
    if chance.random() < 0.3 and isinstance(value, int | float) and not isinstance(value, bool):
        value += chance.choice([-1, 1])
    if isinstance(value, datetime) and chance.random() < 0.5:
        value += timedelta(microseconds=chance.choice([-1, 1]))
    kind = chance.choice(COMPARED)
    if isinstance(value, str) and chance.random() < 0.3:
        return chance.choice([StringStartsWith, StringContains])((name,), value[:2])
    if chance.random() < 0.2 and not isinstance(value, bool):
        return In((name,), (value, *chance.sample(values, min(2, len(values)))))
    if isinstance(value, bool):
        kind = EqualTo
    made: Filter = kind((name,), value)
    return Not(made) if chance.random() < 0.1 else made


async def published(lab: Lab) -> None:
    """Values of all kinds on two topics by two publishers."""
    writers, now = [await lab.client(0), await lab.client(0)], int(time())
    nexts: dict[tuple[int, bytes], int] = {}
    for number in range(EVENTS):
        writer, topic = writers[number % 2], ("news", "more/news")[number % 3 % 2]
        n: Any = (number % 7, -number, 2**53 + number, "7", number + 0.5)[number % 5]
        x: Any = (number / 4, number, 2**53 + 1, True, None)[number % 5]
        s = ("a", "ab'c", "Ω", 5)[number % 4]
        body = (
            f'{{"n": {_json(n)}, "x": {_json(x)}, "s": {_json(s)}, "b": {_json(number % 2 == 0)}}}'
        )
        stamp = {"timestamp": (now + number) * 1_000_000 + number} if number % 3 else {}
        writer.stream = (writer.stream[0], (topic == "news").to_bytes(12, "big"))
        writer.next = nexts.get(writer.stream, 0)
        nexts[writer.stream] = writer.next + 1
        record = writer.seal(body.encode(), at=now + number // 10, **stamp)
        await writer.ask(Put, Stored, topic, record.data, copies=1)


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


def test_results_with_and_without_push_down_are_equal_for_random_filters(seeds: Any) -> None:
    count = seeds(60, 2000)

    async def read(lab: Lab) -> None:
        await published(lab)
        given = {"subscribe": "news,more/#", "schema": SCHEMA, "columns": COLUMNS}
        ends = {"failOnDataLoss": "false"}

        whole = await apart(rows, await apart(batch, lab, **given, **ends))
        less = 0
        for seed in range(count):
            chance = random.Random(seed)
            filters = [drawn(chance, whole) for _ in range(chance.choice([1, 1, 2, 3]))]
            reader = await apart(batch, lab, **given, **ends)
            assert list(reader.pushFilters(filters)) == filters, "Spark judges all of them again"
            found = await apart(rows, reader)
            left = [row for row in found if all(holds(it, row) for it in filters)]
            wanted = [row for row in whole if all(holds(it, row) for it in filters)]
            assert left == wanted, f"seed {seed}: {filters}"
            less += len(found) < len(whole)
        assert len(whole) == EVENTS
        assert less > count // 2, "they are pushed at all"

    run(read, 1, 1, seconds=600)


def test_only_what_nodes_compare_as_spark_does_is_written_as_a_condition() -> None:
    assert literal("double", 2.5, GreaterThan) == "2.5"
    assert literal("double", float(2**53), EqualTo) is None
    assert literal("double", float("nan"), EqualTo) is None
    assert literal("double", 1e-300, EqualTo) is None
    assert literal("bigint", -7, LessThan) == "-7"
    assert literal("bigint", True, EqualTo) is None
    assert literal("string", "it's", EqualTo) is None
    assert literal("string", "b", GreaterThan) is None
    assert literal("float", 2.5, EqualTo) is None
    assert literal("boolean", True, EqualTo) == "TRUE"


def test_a_condition_of_filters_stands_beside_that_of_the_query() -> None:
    async def read(lab: Lab) -> None:
        reader = await apart(lambda: batch(lab, schema=SCHEMA, filter="n = 1 OR n = 2"))
        reader.pushFilters(
            [EqualTo(("s",), "a"), LessThan(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC))]
        )
        end = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
        assert reader.pushed.condition(reader.options.filter) == Condition(
            "(n = 1 OR n = 2) AND `s` = 'a'", (-(1 << 63), end)
        )
        reader.pushFilters([EqualTo(("n",), 5)])  # together never true: nodes judge the query's own
        assert reader.pushed.condition("n = 1").where == "n = 1"

    run(read, 1, 1)
