"""Spark's source on a live network, beside Spark's own `rate-micro-batch` in the same run.

    python benchmarks/spark_stream.py [--json] [--quick]

All of a network of 4 processes hold publications of 128 bytes of two publishers before anything is
measured; Spark runs on two cores and writes to nowhere (`noop`). All rates are rows per second of a
batch's whole time, the median of the batches after the first two of a query; queries take turns,
and their first three rounds do not count: Java compiles in them, and has twice the speed after.
`source_rows_per_s`: all 8 columns; `value_rows_per_s`: `value` alone; `believing_rows_per_s`: all
columns without verifying signatures, `source_over_believing` the first by that; `rate_rows_per_s`:
`rate-micro-batch` with 8 columns of about the same sizes; `source_over_rate`: the first by that.
`*_java_us`, `*_python_us`, `*_nodes_us`: CPU microseconds a row of Java, of the driver and its
workers, of all nodes, which say more than rates on a machine that does other things too; what a
node does for `rate-micro-batch` is its upkeep. `source_over_rate_cpu`: Spark's own by ours.
`one_row_ms`: the whole time of a batch with one row, published while the query waits, the median;
`news_ms`: from its publication to the end of that batch.
`plan_10k_s`: offsets and tasks for 10,000 publishers, from a first question to the node on, and
`plan_10k_cpu_s`, what all processes used meanwhile;
`read_10k_s`: reading their rows without Spark, `read_10k_rows` of them.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep, time
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

import planaria
import planaria.sync
from planaria.network.client.access import Access, shown
from planaria.network.client.messages import Put, Stored
from planaria.network.client.requests import Requests
from planaria.network.client.servers import Servers
from planaria.network.context import Context, read_context
from planaria.network.identity import handle_of
from planaria.records.evidence import PUBLISHED
from planaria.records.record import Draft, seal
from planaria.spark import PlanariaDataSource, session

PAYLOAD = bytes(range(128))
PUBLISHERS = 10_000
BATCHES = 6  # of a query: four are measured
WARM = 3  # rounds in which Java compiles
RATE = [
    "CAST(value AS STRING) AS key",
    "rpad(CAST(value AS STRING), 128, 'x') AS value",
    "'bench/rows' AS topic",
    "value AS publisher",
    "value AS sequence",
    "timestamp",
    "array(named_struct('key', '', 'value', '')) AS headers",
    "rpad(CAST(value AS STRING), 28, 'y') AS id",
]


@contextmanager
def network(nodes: int, directory: Path) -> Iterator[Context]:
    """A network of processes, until the block ends."""
    words = ["up", "--nodes", str(nodes), "--port", "0", "--json", "--dir", str(directory)]
    process = subprocess.Popen(
        [sys.executable, "-m", "planaria", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "XDG_STATE_HOME": str(directory / "state")},
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        yield read_context(Path(ready["context"]))
    finally:
        process.terminate()
        process.wait(60)


def publish(context: Context, topic: str, rows: int) -> None:
    for _ in range(2):
        with client(context) as one:
            one.publish_many(topic, [PAYLOAD] * (rows // 2))


async def everybody_joins(context: Context, topic: str) -> None:
    """Make every node a member of a topic.

    A subscription to a node that has just come up may go on at another: then it is made again.
    """

    async def follow(server: str) -> None:
        while True:
            one = planaria.connect([server], credentials=context.credentials)
            async with one as reader, reader.subscribe(topic, since="all") as events:
                await anext(events)
                await asyncio.sleep(0.5)
                if (await reader.status())["topics"].get(topic, {}).get("member"):
                    return

    async with planaria.connect(list(context.servers), credentials=context.credentials) as writer:
        followers = [asyncio.create_task(follow(server)) for server in context.servers]
        while not all(it.done() for it in followers):
            await writer.publish(topic, b"")
            await asyncio.sleep(0.2)
        await asyncio.gather(*followers)


async def held(context: Context, topic: str) -> int:
    """How many publications of a topic the node has that has fewest."""
    counts = []
    for server in context.servers:
        async with planaria.connect([server], credentials=context.credentials) as one:
            its = (await one.status())["topics"].get(topic, {})
            counts.append(int(its.get("publications", 0)))
    return min(counts)


def whole(context: Context, topic: str, rows: int) -> None:
    """Wait until every node has all of a topic: until then nodes do more than they are asked."""
    while asyncio.run(held(context, topic)) < rows:
        sleep(0.5)


def client(context: Context) -> planaria.sync.Client:
    return planaria.sync.connect(list(context.servers), credentials=context.credentials)


def options(context: Context, topic: str, **given: Any) -> dict[str, str]:
    access = {"servers": ",".join(context.servers), "credentials": str(context.credentials)}
    return access | {"subscribe": topic} | {name: str(value) for name, value in given.items()}


def stream(spark: SparkSession, context: Context, topic: str, **given: Any) -> DataFrame:
    wanted = options(context, topic, **{"startingOffsets": "earliest", **given})
    return spark.readStream.format("planaria").options(**wanted).load()


class Rates(NamedTuple):
    """Rows per second of each batch but the first two, and CPU microseconds per row of these."""

    rows: list[float]
    cpu: dict[str, float]


def rates(frame: DataFrame) -> Rates:
    with tempfile.TemporaryDirectory() as checkpoint:
        written = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = written.trigger(processingTime="0 seconds").start()
        try:
            first = _after(query, 2)
            before = cpu_seconds()
            done = _after(query, BATCHES)[len(first) :]
            after = cpu_seconds()
        finally:
            query.stop()
    rows = sum(it.numInputRows for it in done)
    took = [it.numInputRows / it.durationMs["triggerExecution"] * 1000 for it in done]
    return Rates(took, {kind: 1e6 * (after[kind] - before[kind]) / rows for kind in after})


def _after(query: Any, batches: int) -> list[Any]:
    """The batches with rows, when there are so many."""
    while True:
        done = [it for it in query.recentProgress if it.numInputRows > 0]
        if len(done) >= batches:
            return done
        if query.exception() is not None:
            raise RuntimeError(query.exception())
        sleep(0.1)


def cpu_seconds() -> dict[str, float]:
    """What this process and all that it started have used: Java, driver and workers, nodes."""
    parents, used, kinds = dict[int, int](), dict[int, float](), dict[int, str]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(path.parent.name)] = int(fields[1])
        used[int(path.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        node = {b"node", b"up"} & {*words}
        kind = "java" if b"java" in words[0] else "nodes" if node else "python"
        kinds[int(path.parent.name)] = kind

    def ours(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    found = dict.fromkeys(("java", "python", "nodes"), 0.0)
    for pid in filter(ours, used):
        found[kinds[pid]] += used[pid]
    return found


def throughput(spark: SparkSession, context: Context, rows: int, rounds: int) -> dict[str, float]:
    batch = rows // BATCHES
    asyncio.run(everybody_joins(context, "bench/rows"))
    publish(context, "bench/rows", rows)
    whole(context, "bench/rows", rows)
    topic, limit = "bench/rows", {"maxRowsPerTrigger": batch}
    spark_own = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch)
    queries = {
        "source": stream(spark, context, topic, **limit),
        "value": stream(spark, context, topic, **limit, columns="value"),
        "believing": stream(spark, context, topic, **limit, verify=False),
        "rate": spark_own.option("numPartitions", 2).load().selectExpr(*RATE),
    }
    found: dict[str, list[Rates]] = {name: [] for name in queries}
    for number in range(WARM + rounds):
        for name in sorted(queries, reverse=bool(number % 2)):  # nobody is always the first
            found[name].append(rates(queries[name]))
    figures: dict[str, float] = {}
    for name, them in found.items():
        del them[:WARM]
        figures[f"{name}_rows_per_s"] = round(median(rate for one in them for rate in one.rows))
        for kind in them[0].cpu:
            figures[f"{name}_{kind}_us"] = round(median(one.cpu[kind] for one in them), 2)
    cpu = {name: median(sum(one.cpu.values()) for one in them) for name, them in found.items()}
    figures["source_over_rate_cpu"] = round(cpu["rate"] / cpu["source"], 2)
    for other in ("rate", "believing"):
        ratio = figures["source_rows_per_s"] / figures[f"{other}_rows_per_s"]
        figures[f"source_over_{other}"] = round(ratio, 2)
    return figures


def one_row(spark: SparkSession, context: Context, batches: int) -> dict[str, float]:
    frame = stream(spark, context, "bench/one", startingOffsets="latest")
    durations, waits = [], []
    with tempfile.TemporaryDirectory() as checkpoint, client(context) as publisher:
        publisher.publish("bench/one", PAYLOAD)
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            while query.lastProgress is None:
                sleep(0.05)
            for number in range(batches):
                before = perf_counter()
                publisher.publish("bench/one", PAYLOAD)
                while sum(it.numInputRows for it in query.recentProgress) <= number:
                    sleep(0.005)
                waits.append(1000 * (perf_counter() - before))
        finally:
            query.stop()
        done = [it for it in query.recentProgress if it.numInputRows > 0]
        durations = [it.durationMs["triggerExecution"] for it in done]
    return {"one_row_ms": round(median(durations[2:])), "news_ms": round(median(waits[2:]))}


async def many_streams(context: Context, topic: str, rows: int) -> None:
    """Publish on so many streams, as so many clients would."""
    access = Access(*shown(context, None))
    requests = Requests(Servers(context.servers), access)
    await requests.channel.open()
    publisher = handle_of(access.hello.id)
    drafts, sign = [Draft(PAYLOAD)] * rows, access.sealer(PUBLISHED, topic)
    for at in range(0, PUBLISHERS, 500):
        asked = []
        for number in range(at, at + 500):
            stream = (publisher, number.to_bytes(12, "big"))
            record = seal(stream, 0, drafts, time=int(time()), sign=sign)
            asked.append(requests.ask(Put, Stored, topic, record.data, 1, False, False))
        await asyncio.gather(*asked)
    await requests.channel.close()


def many_publishers(context: Context, rows: int) -> dict[str, float]:
    asyncio.run(everybody_joins(context, "bench/many"))
    wanted = asyncio.run(held(context, "bench/many")) + PUBLISHERS * rows
    asyncio.run(many_streams(context, "bench/many", rows))
    whole(context, "bench/many", wanted)
    source = PlanariaDataSource(options(context, "bench/many"))
    reader: Any = source.streamReader(source.schema())
    start = {"s": {}, "sub": reader.options.fingerprint, "v": 1}
    used, before = sum(cpu_seconds().values()), perf_counter()
    end = start
    while end == start:  # a node that is busy is asked again
        end = reader.latestOffset(start, ReadAllAvailable())
    tasks = reader.partitions(start, end)
    planned, cpu = perf_counter() - before, sum(cpu_seconds().values()) - used
    before = perf_counter()
    count = sum(batch.num_rows for task in tasks for batch in reader.read(task))
    read = perf_counter() - before
    reader.stop()
    assert count >= wanted, count
    return {
        "plan_10k_s": round(planned, 2),
        "plan_10k_cpu_s": round(cpu, 2),
        "read_10k_s": round(read, 2),
        "read_10k_rows": count,
    }


def measure(*, quick: bool) -> Iterator[dict[str, float]]:
    with tempfile.TemporaryDirectory() as directory, session("local[2]") as spark:
        spark.dataSource.register(PlanariaDataSource)
        with network(4, Path(directory)) as context:
            yield throughput(spark, context, 1_200_000, 1 if quick else 4)
            yield one_row(spark, context, 8 if quick else 30)
            yield many_publishers(context, 1 if quick else 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    for part in measure(quick=arguments.quick):
        found |= part
        if not arguments.json:
            for name, value in part.items():
                print(f"{name:20} {value:>12,}", flush=True)
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
