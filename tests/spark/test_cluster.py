"""A standalone cluster gives byte for byte what a laptop gives, with nothing set up by hand."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import planaria.sync
from planaria.spark.cluster import standalone
from process_lab import Processes, UpNetwork
from spark_lab import contents, small_hunt
from toys import ROOT

pytest_plugins = ("spark_session",)

# In a process of its own: one process can have one session only, and the tests have one.
SWEEP = """
import sys
from planaria.spark.sessions import session
from spark_lab import small_hunt

def place(_):
    import planaria
    return planaria.__file__

master, out = sys.argv[1:]
with session(master) as spark:
    assert small_hunt(out).sweep.run(spark) == 12
    print(*set(spark.sparkContext.parallelize(range(4), 4).map(place).collect()))
"""


COPY = """
import sys
from planaria.spark import PlanariaDataSource, session

master, servers, credentials, checkpoint = sys.argv[1:]
with session(master) as spark:
    spark.dataSource.register(PlanariaDataSource)
    options = {"servers": servers, "credentials": credentials}
    rows = spark.readStream.format("planaria").option("startingOffsets", "earliest")
    rows = rows.options(**options, subscribe="a", minPartitions="4", columns="value").load()
    writing = rows.writeStream.format("planaria").options(**options, topic="b")
    query = writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    for topic in ("a", "b"):
        read = spark.read.format("planaria").options(**options, subscribe=topic, minPartitions="4")
        print(read.load().select("value").distinct().count(), read.load().count())
"""


def sweep(master: str, out: Path) -> str:
    """Run the hunt on that master; says where its workers found the package."""
    return run(SWEEP, master, out)


def run(script: str, *words: object) -> str:
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_standalone_cluster_gives_the_bytes_of_a_local_one(
    spark: SparkSession, tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    seeds(0, 1)
    with standalone(workers=1) as master:
        where = sweep(master, tmp_path / "cluster")
    assert "planaria.zip" in where  # the package travelled; it was not found by chance
    assert small_hunt(str(tmp_path / "local")).sweep.run(spark) == 12
    here = contents(tmp_path / "local")
    assert len(here) > 2
    assert contents(tmp_path / "cluster") == here


def test_a_standalone_cluster_reads_and_writes_topics(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    seeds(0, 1)
    with Processes(tmp_path) as processes, standalone(workers=2) as master:
        context = UpNetwork(processes, 2, 1).context
        servers = ",".join(context.servers)
        with planaria.sync.connect(servers, credentials=context.credentials) as client:
            client.publish_many("a", [b"%d" % number for number in range(20_000)])
        said = run(COPY, master, servers, context.credentials, tmp_path / "checkpoint")
        assert said.split() == ["20000"] * 4
