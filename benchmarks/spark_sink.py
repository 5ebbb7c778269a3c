"""Spark's sink into a ring of 4 live nodes, beside the same rows through plain clients.

    python benchmarks/spark_sink.py [--json] [--quick]

All nodes are members of the topic; rows are 128 bytes, made by Spark on two cores, and count when
the query has committed: two members have each row on disk. `sink_rows_per_s`: rows per second of
the whole time of a batch, staging, commit and Spark's own share included, the median of the batches
after the first two. `noop_rows_per_s`: the same query into nowhere, in the same run.
`client_rows_per_s`: two plain clients that publish as many, with the same copies.
`sink_one_row_ms`: the whole time of a batch with one row, the median. `settled_s`: from the end of
the last batch until every node has all rows. `cpu_us_per_row`: of all nodes, staged to settled.
"""

import argparse
import asyncio
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from spark_stream import client, everybody_joins, held, network, whole

from planaria.network.context import Context
from planaria.spark import PlanariaDataSource, session

TOPIC = "bench/sink"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(directory: Path) -> float:
    """User and system time of all nodes so far."""
    spent = 0.0
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if str(directory).encode() in b" ".join(words) and b"node" in words:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                spent += (int(fields[11]) + int(fields[12])) / TICKS
        except (OSError, ValueError):
            continue
    return spent


def rows(spark: SparkSession, batch: int) -> DataFrame:
    made = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch)
    frame = made.option("numPartitions", 2).load()
    return frame.selectExpr("rpad(CAST(value AS STRING), 128, 'x') AS value")


def run(frame: DataFrame, batches: int, format: str, **options: str) -> list[Any]:
    """The progress of each batch of a query but the first two."""
    with tempfile.TemporaryDirectory() as checkpoint:
        written = frame.writeStream.format(format).options(**options)
        written = written.option("checkpointLocation", checkpoint)
        query = written.trigger(processingTime="0 seconds").start()
        try:
            while sum(it.numInputRows > 0 for it in query.recentProgress) < batches:
                if query.exception() is not None:
                    raise RuntimeError(query.exception())
                sleep(0.02)
        finally:
            query.stop()
        return [it for it in query.recentProgress if it.numInputRows > 0][2:batches]


def rate(progress: list[Any]) -> float:
    each: list[float] = [
        it.numInputRows / it.durationMs["triggerExecution"] * 1000 for it in progress
    ]
    return round(median(each))


def through_clients(context: Context, count: int) -> float:
    before = perf_counter()
    for _ in range(2):
        with client(context) as one:
            one.publish_many("bench/clients", [b"x" * 128] * (count // 2))
    return round(count / (perf_counter() - before))


def measure(*, quick: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory, session("local[2]") as spark:
        spark.dataSource.register(PlanariaDataSource)
        with network(4, Path(directory)) as context:
            return into_the_ring(spark, context, Path(directory), quick=quick)


def into_the_ring(
    spark: SparkSession, context: Context, home: Path, *, quick: bool
) -> dict[str, float]:
    batch, batches = (20_000, 5) if quick else (100_000, 8)
    access = {"servers": ",".join(context.servers), "credentials": str(context.credentials)}
    for topic in (TOPIC, "bench/clients", "bench/sink-one"):
        asyncio.run(everybody_joins(context, topic))
    nowhere = rate(run(rows(spark, batch), batches, "noop"))
    first, before = asyncio.run(held(context, TOPIC)), cpu_seconds(home)
    done = run(rows(spark, batch), batches, "planaria", topic=TOPIC, **access)
    ended, wanted = perf_counter(), first + batch * batches
    whole(context, TOPIC, wanted)
    found = {"sink_rows_per_s": rate(done), "noop_rows_per_s": nowhere}
    found["settled_s"] = round(perf_counter() - ended, 2)
    found["cpu_us_per_row"] = round(1e6 * (cpu_seconds(home) - before) / batch / batches, 1)
    found["client_rows_per_s"] = through_clients(context, batch * 2)
    one = run(rows(spark, 1), 8 if quick else 30, "planaria", topic="bench/sink-one", **access)
    found["sink_one_row_ms"] = median(it.durationMs["triggerExecution"] for it in one)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    found = measure(quick=arguments.quick)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:20} {value:>12,}")


if __name__ == "__main__":
    main()
