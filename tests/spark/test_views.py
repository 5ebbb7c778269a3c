"""Views of topics and traces, against answers that are worked out by hand, as tables and live."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from planaria.core.errors import UsageError
from planaria.core.trace import Row
from planaria.protocols.publications.deliveries import position_id
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.trace import Recorder
from planaria.simulator.trial import Spec, Trial
from planaria.spark import views

pytest_plugins = ("spark_session",)

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ROWS = "topic string, publisher long, sequence long, timestamp timestamp, id binary, value binary"
GIVEN = {(1, 0): [0, 1, 4, 5, 9], (1, 1): [7, 8], (2, 0): [3, 3, 5]}


def rows() -> list[tuple[Any, ...]]:
    return [
        ("a", who, n, NOW - timedelta(seconds=n), position_id(who, bytes([life]) * 12, n), b"xyz")
        for (who, life), numbers in GIVEN.items()
        for n in numbers
    ]


def missing(found: DataFrame) -> list[tuple[int, int, int, int]]:
    return sorted(
        (row.publisher, row.incarnation[0], row.first, row["last"]) for row in found.collect()
    )


def test_a_topic_shows_its_gaps_duplicates_and_load(spark: SparkSession) -> None:
    frame = spark.createDataFrame(rows(), ROWS)
    assert missing(views.gaps(frame)) == [(1, 0, 2, 3), (1, 0, 6, 8), (2, 0, 4, 4)]
    twice = views.duplicates(frame).collect()
    assert [(bytes(row.id), row["count"]) for row in twice] == [(position_id(2, bytes(12), 3), 2)]
    load = {row.publisher: row for row in views.load(frame).collect()}
    assert (load[1].publications, load[1].bytes) == (7, 21)
    (age,) = views.latency(frame).collect()
    assert age["count"] == 10
    assert age.p50 <= age.p90 <= age.p99 <= age.max


def followed(spark: SparkSession, source: Path) -> DataFrame:
    """What is in the directories of `source`, as a stream of one file a batch."""
    stream = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1)
    return stream.option("recursiveFileLookup", "true").parquet(str(source))


def test_views_of_topics_work_live_as_they_do_of_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = spark.createDataFrame(rows(), ROWS).coalesce(1)
    table.write.parquet(str(tmp_path / "in" / "0"))
    live = followed(spark, tmp_path / "in").selectExpr("*", "true AS legitimate", "1 AS age")
    views_of = {
        "latency": views.latency(live, ["topic", "age"]),
        "duplicates": views.duplicates(live),
        "load": views.load(live),
        "since": views.since_legitimate(live),
    }
    for name, view in views_of.items():
        writing = view.writeStream.outputMode("complete").format("memory").queryName(name)
        query = writing.trigger(availableNow=True).start()
        assert query.awaitTermination(120), name
    (age,) = spark.table("latency").collect()
    assert (age.topic, age.age, age["count"]) == ("a", 1, 10)
    assert age.max - age.p50 == pytest.approx(5000), "they are 0 to 9 s apart"
    assert spark.table("duplicates").count() == 1
    assert {row.publisher for row in spark.table("load").collect()} == {1, 2}
    assert [row.seconds for row in spark.table("since").collect()] == [0]


def test_gaps_of_a_stream_are_told_once_whatever_the_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "at"
    whole = rows()
    for at, part in enumerate((whole[:2], whole[2:4], [*whole[4:8], whole[0]], whole[8:])):
        spark.createDataFrame(part, ROWS).coalesce(1).write.parquet(str(source / str(at)))
    found: list[list[Any]] = []
    query = (
        views.gaps(followed(spark, source))
        .writeStream.foreachBatch(lambda batch, _: found.append(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    gaps = [(it.publisher, it.incarnation[0], it.first, it["last"]) for b in found for it in b]
    assert sorted(gaps) == [(1, 0, 2, 3), (1, 0, 6, 8), (2, 0, 4, 4)]


def test_overhead_is_told_by_topic_and_of_what_is_about_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    with Recorder(tmp_path / "t.parquet", "messages", {}) as recorder:
        for topic, size in (("a", 10), ("b", 30), ("a", 10), (None, 50)):
            recorder.keep(Row(1, 7, "send", 7, 8, "ring.check", 1, 0, size, topic))
    found = views.overhead(spark.read.parquet(str(tmp_path / "t.parquet"))).collect()
    shares = {(it.topic, it.messages, it.bytes, it.share) for it in found}
    assert shares == {("a", 2, 20, 0.2), ("b", 1, 30, 0.3), (None, 1, 50, 0.5)}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "t.parquet"
    with Recorder(path, "everything", {"seed": "1"}) as recorder:
        Trial(RingOverlay(), Spec(5, 1, intervals=60), [recorder]).run()
    return path


def test_a_trace_shows_what_was_sent_how_long_it_took_and_how_far_it_went(
    spark: SparkSession, trace: Path
) -> None:
    frame = spark.read.parquet(str(trace))
    events = frame.collect()
    sent = Counter((it.node, it.topic, it.message_type) for it in events if it.kind == "send")
    found = views.overhead(frame).collect()
    assert {(it.node, it.topic, it.message_type): it.messages for it in found} == sent
    assert {it.topic for it in found} == {"news"}
    assert sum(it.bytes for it in found) == sum(it.bytes or 0 for it in events if it.kind == "send")
    shares = Counter[int]()
    for it in found:
        shares[it.node] += it.share
    assert all(share == pytest.approx(1) for share in shares.values())

    start = {it.message_id: it.tick for it in reversed(events) if it.kind == "send"}
    ways = [it.tick - start[it.message_id] for it in events if it.kind == "deliver"]
    latency = views.message_latency(frame).collect()
    assert sum(it["count"] for it in latency) == len(ways)
    assert max(it.max for it in latency) == max(ways)

    cause = {it.message_id: it.cause_id for it in events if it.kind == "send"}

    def depth(number: int) -> int:
        return 1 + depth(cause[number]) if cause.get(number) in cause else 1

    deep = Counter(depth(it.message_id) for it in events if it.kind == "deliver")
    shown = Counter[int]()
    for it in views.hops(frame).collect():
        shown[it.hops] += it.messages
    assert shown == deep
    assert len(deep) > 2


def test_a_network_says_since_when_it_is_not_legitimate(spark: SparkSession) -> None:
    verdicts = [
        ("v", NOW + timedelta(seconds=5 * at), good) for at, good in enumerate([1, 1, 0, 0])
    ]
    frame = spark.createDataFrame(verdicts, "topic string, timestamp timestamp, good int")
    (row,) = views.since_legitimate(frame.selectExpr("*", "good = 1 AS legitimate")).collect()
    assert row.seconds == 10


def test_views_that_need_whole_traces_say_so(spark: SparkSession, trace: Path) -> None:
    schema = spark.read.parquet(str(trace)).schema
    live = spark.readStream.schema(schema).parquet(str(trace.parent))
    for view in (views.hops, views.message_latency):
        with pytest.raises(UsageError, match="whole trace"):
            view(live)
