"""What Spark writes is published whole and once: real nodes, killed with their workers."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from planaria.network.live import STORE
from planaria.network.store.opening import FILE
from planaria.spark import PlanariaDataSource
from process_lab import HEAL_SECONDS, ROOT, Processes, UpNetwork, until
from sink_lab import GO_ON, Faulty, read_back

pytest_plugins = ("spark_session",)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpNetwork]:
    with Processes(tmp_path_factory.mktemp("sink")) as processes:
        yield UpNetwork(processes, nodes=8, supervisors=2)


@pytest.fixture
def writing(spark: SparkSession, network: UpNetwork) -> dict[str, str]:
    """The options that name this network."""
    spark.dataSource.register(PlanariaDataSource)
    spark.dataSource.register(Faulty)
    return {
        "servers": ",".join(network.servers("n1")),
        "credentials": str(network.context.credentials),
    }


def numbers(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    return spark.range(0, count, 1, partitions).selectExpr("cast(id as string) AS value")


def expected(count: int) -> Counter[bytes]:
    return Counter(b"%d" % number for number in range(count))


def write(rows: DataFrame, options: dict[str, str], topic: str, **more: str) -> None:
    format = "faulty" if "fault" in more else "planaria"
    given = {**options, "topic": topic, **more}
    rows.write.format(format).options(**given).mode("append").save()


def join(network: UpNetwork, topic: str) -> None:
    """Make all nodes members of a topic."""

    async def follow(name: str) -> None:
        async with network.connect(name) as client, client.subscribe(topic, since="all") as events:
            await anext(events)

    async def all_nodes() -> None:
        async with network.connect("n1") as client:
            followers = [asyncio.create_task(follow(name)) for name in network.nodes]
            while not all(it.done() for it in followers):
                await client.publish(topic, b"0")
                await asyncio.sleep(0.2)
            await asyncio.gather(*followers)

    asyncio.run(all_nodes())


def test_a_batch_query_publishes_every_row_once(
    spark: SparkSession, network: UpNetwork, writing: dict[str, str]
) -> None:
    write(numbers(spark, 5000, 3), writing, "numbers")
    assert read_back(network, "numbers", 5000) == expected(5000)


def test_columns_become_keys_topics_and_headers(
    spark: SparkSession, network: UpNetwork, writing: dict[str, str]
) -> None:
    rows = spark.range(0, 60, 1, 2).selectExpr(
        "cast(id as string) AS value",
        "if(id % 3 = 0, null, concat('k', id)) AS key",
        "concat('columns/', id % 2) AS topic",
        "if(id % 5 = 0, map('unit', 'mm', 'n', cast(id as string)), null) AS headers",
    )
    rows.write.format("planaria").options(**writing).mode("append").save()

    async def read() -> list[tuple[int, str, bytes | None, dict[str, str]]]:
        async with network.connect("n2") as client:
            return [
                (int(event.payload), event.topic, event.key, dict(event.headers))
                for topic in ("columns/0", "columns/1")
                for event in (await client.read(topic)).events
            ]

    assert sum(read_back(network, f"columns/{at}", 30, "n2").total() for at in (0, 1)) == 60
    assert sorted(asyncio.run(read())) == [
        (
            id,
            f"columns/{id % 2}",
            None if id % 3 == 0 else b"k%d" % id,
            {"unit": "mm", "n": str(id)} if id % 5 == 0 else {},
        )
        for id in range(60)
    ]


class Query:
    """A streaming query over files of lines: one batch a file."""

    def __init__(self, spark: SparkSession, home: Path, options: dict[str, str], topic: str):
        self.spark, self.home, self.topic = spark, home, topic
        self.options = {**options, "topic": topic, "checkpointLocation": str(home / "checkpoint")}
        (home / "lines").mkdir()
        self.count = self.files = 0

    def add(self, count: int) -> None:
        lines = [str(number) for number in range(self.count, self.count + count)]
        (self.home / "new").write_text("\n".join(lines) + "\n")
        (self.home / "new").rename(self.home / "lines" / f"{self.files:03}.txt")
        self.count, self.files = self.count + count, self.files + 1

    def run(self, partitions: int) -> None:
        """Publish all that is there."""
        lines = self.spark.readStream.option("maxFilesPerTrigger", 1).text(str(self.home / "lines"))
        writing = lines.repartition(partitions).writeStream.format("planaria")
        query = writing.options(**self.options).trigger(availableNow=True).start()
        query.awaitTermination()

    def uncommit(self) -> int:
        """Make Spark forget that it committed its last batch; returns which."""
        commits = self.home / "checkpoint" / "commits"
        last = max(int(it.name) for it in commits.iterdir() if it.name.isdecimal())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)
        return last


def test_a_streaming_query_goes_on_from_its_checkpoint_and_replays_nothing_twice(
    spark: SparkSession, network: UpNetwork, writing: dict[str, str], tmp_path: Path
) -> None:
    query = Query(spark, tmp_path, writing, "stream")
    query.add(700)
    query.add(300)
    query.run(partitions=2)
    query.add(500)
    query.run(partitions=1)
    assert query.uncommit() == 2
    query.run(partitions=3)  # the last batch again, in other partitions
    query.add(100)
    assert query.uncommit() == 2
    query.run(partitions=2)
    assert read_back(network, "stream", 1600) == expected(1600)


def test_a_worker_killed_after_it_staged_rows_adds_none(
    spark: SparkSession,
    network: UpNetwork,
    writing: dict[str, str],
    tmp_path: Path,
) -> None:
    rows = numbers(spark, 24_000)
    write(rows, writing, "worker", fault="DyingWorker", marker=str(tmp_path / "died"))
    assert (tmp_path / "died").exists()
    assert read_back(network, "worker", 24_000) == expected(24_000)


def test_a_node_killed_while_rows_are_staged_costs_none(
    spark: SparkSession,
    network: UpNetwork,
    writing: dict[str, str],
    tmp_path: Path,
) -> None:
    join(network, "node")
    marker, rows = tmp_path / "paused", numbers(spark, 24_000)

    def kill() -> None:
        try:
            until(marker.exists)
            network.kill("n1")  # the first that every client knows, and a supervisor
        finally:
            marker.with_suffix(GO_ON).touch()

    try:
        with ThreadPoolExecutor() as beside:
            killing = beside.submit(kill)
            write(rows, writing, "node", fault="PausingWorker", marker=str(marker))
            killing.result()
        found = read_back(network, "node", 24_001, first="n2")
    finally:
        network.start("n1")
    assert found - Counter({b"0": found[b"0"] - 1}) == expected(24_000)


def test_rows_come_back_by_the_source_while_nodes_crash_and_a_store_is_damaged(
    spark: SparkSession, network: UpNetwork, writing: dict[str, str], tmp_path: Path
) -> None:
    join(network, "round")
    query = Query(spark, tmp_path, writing, "round")
    query.add(4000)
    query.run(partitions=2)
    for name, count in (("n3", 2000), ("n4", 1000)):
        network.kill(name)
        query.add(count)
        query.run(partitions=1)
        if name == "n3":
            damage(network.directory(name) / STORE)
        network.start(name)
    network.heal()
    given = {**writing, "subscribe": "round", "columns": "value", "startingOffsets": "earliest"}

    def read() -> Counter[bytes]:
        rows = spark.read.format("planaria").options(**given).load().collect()
        return Counter(bytes(row.value) for row in rows)

    until(lambda: read().total() >= 7000, "all rows", HEAL_SECONDS)
    found = read()
    assert found - Counter({b"0": found[b"0"] - 1}) == expected(7000)


def damage(store: Path) -> None:
    """Write zeros over a part of what a node has on disk."""
    path = max(store.glob(f"{FILE}*"), key=lambda it: it.stat().st_size)
    size = path.stat().st_size
    assert size > 100_000, "there is something to lose"
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(bytes(size // 10))


def test_a_missing_stage_fails_the_commit_and_publishes_nothing(
    spark: SparkSession,
    network: UpNetwork,
    writing: dict[str, str],
    seeds: Callable[[int, int], int],
) -> None:
    seeds(0, 1)  # it waits half a minute; `test_batches_live` does the same without Spark
    with pytest.raises(PySparkException, match=r"batch 0 of query .*: 2 of 4 stages .* missing"):
        write(numbers(spark, 10), writing, "missing", fault="ForgettingWriter")
    assert read_back(network, "missing", 0).total() == 0


@pytest.mark.parametrize(
    ("columns", "topic", "said"),
    [
        (["if(id = 7, null, 'a') AS value"], "errors", r"batch 0 of query .*: row \d has no value"),
        (["'a' AS value", "id AS unit"], "errors", r"a column 'unit': a sink takes value, key"),
        (["id AS value"], "errors", "column value is bigint: it is string or binary"),
        (["'a' AS key"], "errors", "no column value"),
        (["'a' AS value"], None, "no topic: give a column topic"),
    ],
)
def test_mistakes_are_named(
    spark: SparkSession,
    writing: dict[str, str],
    columns: list[str],
    topic: str | None,
    said: str,
) -> None:
    rows = spark.range(0, 10, 1, 1).selectExpr(*columns)
    options = {**writing, **({} if topic is None else {"topic": topic})}
    with pytest.raises(PySparkException, match=said):
        rows.write.format("planaria").options(**options).mode("append").save()


def test_an_unknown_option_and_another_mode_are_refused(
    spark: SparkSession, writing: dict[str, str]
) -> None:
    rows = numbers(spark, 1)
    with pytest.raises(PySparkException, match="option 'topics'"):
        rows.write.format("planaria").options(**writing, topics="a").mode("append").save()
    with pytest.raises(PySparkException, match="use mode"):
        rows.write.format("planaria").options(**writing, topic="a").mode("overwrite").save()


DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from planaria.spark.sessions import LABORATORY, session
from sink_lab import Faulty
home, servers, credentials = Path(sys.argv[2]), sys.argv[3], sys.argv[4]
with session("local[2]", {**LABORATORY, "spark.driver.memory": "512m"}) as spark:
    spark.dataSource.register(Faulty)
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(home / "lines"))
    writing = lines.repartition(3).writeStream.format("faulty").option("topic", "killed")
    writing = writing.option("servers", servers).option("credentials", credentials)
    writing = writing.option("checkpointLocation", str(home / "checkpoint"))
    writing = writing.option("marker", str(home / "killed"))
    writing.trigger(availableNow=True).start().awaitTermination()
"""


def test_a_driver_killed_between_the_sinks_commit_and_sparks_own_repeats_nothing(
    spark: SparkSession,
    network: UpNetwork,
    writing: dict[str, str],
    tmp_path: Path,
    seeds: Callable[[int, int], int],
) -> None:
    seeds(0, 1)  # a second Java; by day `uncommit` makes the checkpoint that it leaves
    query = Query(spark, tmp_path, writing, "killed")
    for _ in range(3):
        query.add(200)
    words = [DRIVER, str(ROOT / "tests"), str(tmp_path), writing["servers"]]
    driver = subprocess.Popen(
        [sys.executable, "-c", *words, writing["credentials"]],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"},
        start_new_session=True,
    )
    try:
        said = tmp_path / "killed"
        until(lambda: said.exists() and said.read_text().endswith("\n"), "killed", 200)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert said.read_text() == "batch 1 is committed\n"
    checkpoint = tmp_path / "checkpoint"
    assert (checkpoint / "offsets" / "1").exists()  # Spark had begun it,
    assert not (checkpoint / "commits" / "1").exists()  # and did not know that it was committed
    found = read_back(network, "killed", 400)
    assert (found.total(), {*found.values()}) == (400, {1}), "two files, in whatever order"
    query.run(partitions=1)
    assert read_back(network, "killed", 600) == expected(600)
