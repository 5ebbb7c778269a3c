"""The format `planaria` in Spark itself, on a network of real processes, one of which is killed."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import sleep, time
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import planaria.sync
from planaria.cli.main import main
from planaria.spark import PlanariaDataSource
from process_lab import PATIENCE, Processes, UpNetwork, until

pytest_plugins = ("spark_session",)

FIRST, SECOND = "n2", "n3"  # n1 supervises


class Lab:
    """A network, and Spark that reads from it."""

    def __init__(self, network: UpNetwork, spark: SparkSession) -> None:
        self.network, self.spark = network, spark

    def client(self, at: str = "n1") -> planaria.sync.Client:
        servers = self.network.servers(at)
        return planaria.sync.connect(servers, credentials=self.network.context.credentials)

    def publish(self, topic: str, payloads: list[bytes], at: str = "n1") -> None:
        with self.client(at) as client:
            client.publish_many(topic, payloads)

    def options(self, **given: Any) -> dict[str, str]:
        options = {"servers": ",".join(self.network.servers(FIRST)), "subscribe": "flights/#"}
        options["credentials"] = str(self.network.context.credentials)
        return options | {name: str(value) for name, value in given.items()}

    def batch(self, **given: Any) -> DataFrame:
        return self.spark.read.format("planaria").options(**self.options(**given)).load()

    def stream(self, name: str, checkpoint: Path, **given: Any) -> Any:
        """A query that appends what comes to a directory, to be triggered."""
        options = self.options(**{"startingOffsets": "earliest", **given})
        found = self.spark.readStream.format("planaria").options(**options).load()
        written = found.writeStream.format("parquet").option("path", str(checkpoint / "out"))
        return written.queryName(name).option("checkpointLocation", str(checkpoint / "at"))

    def run(self, query: StreamingQuery) -> list[int]:
        """Wait for its end; how many rows its batches had."""
        try:
            assert query.awaitTermination(int(PATIENCE))
            return [it.numInputRows for it in query.recentProgress]
        finally:
            query.stop()

    def written(self, checkpoint: Path) -> list[Any]:
        return self.spark.read.parquet(str(checkpoint / "out")).collect()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lab]:
    with Processes(tmp_path_factory.mktemp("source")) as processes:
        spark.dataSource.register(PlanariaDataSource)
        yield Lab(UpNetwork(processes, 3, 1), spark)


def numbered(lo: int, hi: int) -> list[bytes]:
    return [b'{"n": %d, "carrier": "%s"}' % (n, (b"UA", b"AA")[n % 2]) for n in range(lo, hi)]


def values(rows: list[Any]) -> list[bytes]:
    return sorted(bytes(row["value"]) for row in rows)


def test_a_query_reads_each_publication_once_across_restarts_options_and_new_topics(
    lab: Lab, tmp_path: Path
) -> None:
    first = numbered(0, 5000)
    lab.publish("flights/delays", first)
    assert values(lab.batch().collect()) == sorted(first)

    query = lab.stream("once", tmp_path, maxRowsPerTrigger=2000)
    rows = lab.run(query.trigger(availableNow=True).start())
    assert rows == [2000, 2000, 1000]
    assert values(lab.written(tmp_path)) == sorted(first)

    typed = {"columns": "n,topic", "schema": "n INT, carrier STRING"}
    begin = 1000 * (int(time()) - 3600)
    hour = lab.stream("hour", tmp_path / "hour", startingOffsets=begin, **typed)
    assert lab.run(hour.trigger(availableNow=True).start()) == [0, 5000]

    rest = numbered(5000, 6000)
    lab.publish("flights/arrivals", rest[:300], at=SECOND)  # a topic that was not there
    lab.publish("flights/delays", rest[300:])
    elsewhere = {"servers": ",".join(lab.network.servers(SECOND)), "minPartitions": 3}
    query = lab.stream("once", tmp_path, **elsewhere)
    assert sum(lab.run(query.trigger(availableNow=True).start())) == 1000
    found = lab.written(tmp_path)
    assert values(found) == sorted(first + rest)
    assert len({bytes(row["id"]) for row in found}) == 6000
    assert Counter(row["topic"] for row in found)["flights/arrivals"] == 300

    assert sum(lab.run(query.trigger(availableNow=True).start())) == 0

    ending = lab.stream("ending", tmp_path / "ending", endingOffsets="latest")
    with pytest.raises(StreamingQueryException, match="a stream has no end") as error:
        lab.run(ending.trigger(availableNow=True).start())
    assert "UnboundLocalError" not in str(error.value)

    other = lab.stream("other", tmp_path, subscribe="flights/delays")
    with pytest.raises(StreamingQueryException, match="another subscription"):
        lab.run(other.trigger(availableNow=True).start())


def test_latest_means_latest_and_news_come_by_themselves(lab: Lab, tmp_path: Path) -> None:
    lab.publish("flights/delays", numbered(0, 10))
    query = lab.stream("live", tmp_path, startingOffsets="latest", subscribe="flights/delays")
    running = query.start()
    try:
        until(lambda: running.lastProgress is not None, "its beginning is pinned")
        lab.publish("flights/delays", numbered(10, 20))
        until(lambda: len(lab.written(tmp_path)) >= 10, "news")
        assert values(lab.written(tmp_path)) == sorted(numbered(10, 20))
    finally:
        running.stop()


def test_filters_of_a_query_find_the_same_whether_pushed_or_not(lab: Lab) -> None:
    lab.publish("pushed", numbered(0, 100))
    for pushed in ("false", "true"):
        lab.spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
        found = lab.batch(subscribe="pushed,flights/#", schema="n INT, carrier STRING")
        part = found.where("n > 90 AND carrier = 'UA' AND topic = 'pushed' AND n <> 94")
        assert sorted(row.n for row in part.collect()) == [92, 96, 98]
        first = found.where((F.col("sequence") < 5) & F.col("topic").startswith("push"))
        assert first.count() == 5


def test_a_topic_that_is_empty_is_a_table_without_rows(lab: Lab) -> None:
    assert lab.batch(subscribe="nobody,none/#").count() == 0


def test_a_gap_of_retention_fails_a_query_or_is_skipped_by_it(lab: Lab, tmp_path: Path) -> None:
    def read(**given: Any) -> int:
        query = lab.stream("kept", tmp_path, subscribe="kept", **given)
        return sum(lab.run(query.trigger(availableNow=True).start()))

    with lab.client() as client:  # one publisher: what a query has not seen is no loss to it
        client.publish_many("kept", numbered(0, 4))
        assert read() == 4
        words = ["topic", "set", "kept", "--count", "4", "--context", lab.network.context.name]
        assert main(words) == 0
        for at in (4, 8, 12):
            sleep(1.1)  # retention is by seconds
            client.publish_many("kept", numbered(at, at + 4))
    until(lambda: lab.batch(subscribe="kept").count() == 4, "retention")
    with pytest.raises(StreamingQueryException, match=r"data loss: numbers 4 to 11 of .* in kept"):
        read()
    assert read(failOnDataLoss="false") == 4
    assert values(lab.written(tmp_path)) == sorted([*numbered(0, 4), *numbered(12, 16)])


def test_a_serving_node_that_is_killed_costs_no_row_and_repeats_none(
    lab: Lab, tmp_path: Path
) -> None:
    """Kill -9 between two batches of many: what is under way goes on at another node."""
    whole = [b"%06d" % number + bytes(122) for number in range(40_000)]
    lab.publish("big", whole)
    assert lab.batch(subscribe="big", columns="value").count() == len(whole)  # so n2 has a copy
    query = lab.stream("killed", tmp_path, subscribe="big", maxRowsPerTrigger=4000)
    running = query.start()
    try:
        until(lambda: len(running.recentProgress) >= 2, "a batch is done")
        lab.network.kill(FIRST)
        last = [b"%06d" % number for number in range(40_000, 40_100)]
        lab.publish("big", last)
        until(lambda: sum(it.numInputRows for it in running.recentProgress) >= 40_100, "all came")
        assert running.exception() is None
    finally:
        running.stop()
    assert values(lab.written(tmp_path)) == sorted(whole + last)
