"""Delays of real flights by carrier and day, as a stream, while nodes that bring it are killed.

    pip install 'planaria[demo]'
    python examples/flight_delays.py 20000  # of the 336,776 flights; without a number, all

Made to be read from top to bottom; editors that know `# %%` run it cell by cell.
"""

# %% What it needs

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import planaria.sync
from planaria.demo.flights import ABSENT, flights
from planaria.spark import PlanariaDataSource, session

NODES, SUPERVISORS = 4, 2
SCHEMA = "carrier STRING, origin STRING, scheduled TIMESTAMP, delay DOUBLE"
PATIENCE_SECONDS = 300.0
PARTS = 9  # a node is killed, or comes back, between two of them
PLAN = {2: ("kill", "n1"), 5: ("bring back", "n1"), 7: ("kill", "n4")}


# %% The data: what left New York in 2013, each flight as a JSON object on the topic of its airport


def bodies(rows: int | None) -> Iterator[tuple[str, str]]:
    """Topics and bodies, in the order of the file."""
    for row in islice(flights(), rows):
        flight: dict[str, Any] = {"carrier": row["carrier"], "origin": row["origin"]}
        flight["scheduled"] = row["time_hour"]
        if row["dep_delay"] not in ABSENT:  # it was cancelled
            flight["delay"] = float(row["dep_delay"])
        yield f"flights/{row['origin']}", json.dumps(flight)


# %% A network of its own: processes on this machine, and how to kill them


class Network:
    """What `planaria up` has started."""

    def __init__(self, home: Path, closing: ExitStack) -> None:
        self.home, self._closing = home, closing
        size = ("--nodes", NODES, "--supervisors", SUPERVISORS, "--port", 0)
        ready = self._run("up", *size, "--json", "--dir", home)
        self.context = ready["context"]
        self.nodes = {node["name"]: node for node in ready["nodes"]}

    def _run(self, *words: object) -> dict[str, Any]:
        """Start `planaria WORDS`; returns what it says when it serves."""
        command = [sys.executable, "-m", "planaria", *map(str, words)]
        with (self.home.parent / "log").open("a") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603
        self._closing.callback(_end, process)
        assert process.stdout is not None
        found: dict[str, Any] = json.loads(process.stdout.readline())
        return found

    def kill(self, name: str) -> None:
        """kill -9: it has no time to say goodbye."""
        os.kill(self.nodes[name]["pid"], signal.SIGKILL)

    def bring_back(self, name: str) -> None:
        """Start a killed node again, with what it has on disk."""
        self._run("node", "--dir", self.nodes[name]["dir"])


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


# %% The question: how late did flights leave, by carrier and day? The same for a stream and a table


def delays(rows: DataFrame) -> DataFrame:
    """Flights, those that left, and their delays, by carrier and day of their schedule."""
    days = rows.groupBy("carrier", F.window("scheduled", "1 day").start.alias("day"))
    return days.agg(
        F.count("*").alias("flights"), F.count("delay").alias("left"), F.sum("delay").alias("late")
    )


@contextmanager
def streamed(spark: SparkSession, context: str) -> Iterator[Any]:
    """The answer from the topics, up to date in the table `delays` while the block runs."""
    rows = (
        spark.readStream.format("planaria")
        .option("context", context)
        .option("subscribe", "flights/+")
        .option("startingOffsets", "earliest")
        .option("schema", SCHEMA)
        .load()
    )
    table = delays(rows).writeStream.outputMode("complete").format("memory").queryName("delays")
    query = table.start()
    try:
        yield query
    finally:
        query.stop()


def answer(table: DataFrame) -> dict[tuple[str, str], tuple[int, int, float | None]]:
    """The rows of an answer, comparable; delays are whole minutes, so that their sums are exact."""
    return {(row[0], str(row[1])): (row[2], row[3], row[4]) for row in table.collect()}


# %% Publish, and kill a node now and then: first the one that everybody was told of, a supervisor


def publish(context: str, network: Network, rows: list[tuple[str, str]]) -> None:
    """Publish all, while nodes die and return as planned."""
    with planaria.sync.connect(context=context) as client:
        for number in range(PARTS):
            if number in PLAN:
                what, name = PLAN[number]
                print(f"{what} {name}")
                (network.kill if what == "kill" else network.bring_back)(name)
            part = rows[number * len(rows) // PARTS : (number + 1) * len(rows) // PARTS]
            for topic in sorted({topic for topic, _ in part}):
                client.publish_many(topic, [body for its, body in part if its == topic])


# %% All of it


def main(rows: int | None = None) -> bool:
    """Is the stream's answer that of a plain batch query over the same flights?"""
    published = list(bodies(rows))
    with ExitStack() as closing:
        home = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="flights-")))
        network = Network(home / "net", closing)
        spark = closing.enter_context(session())
        spark.dataSource.register(PlanariaDataSource)
        query = closing.enter_context(streamed(spark, network.context))
        publish(network.context, network, published)
        end = time.monotonic() + PATIENCE_SECONDS
        while sum(row.flights for row in spark.table("delays").collect()) < len(published):
            if (error := query.exception()) is not None:
                raise error
            if time.monotonic() > end:
                break
            time.sleep(0.5)
        (home / "flights.json").write_text("\n".join(body for _, body in published))
        plain = delays(spark.read.schema(SCHEMA).json(str(home / "flights.json")))
        found, expected = answer(spark.table("delays")), answer(plain)
        worst = spark.table("delays").orderBy(F.desc(F.col("late") / F.col("left"))).limit(5)
        worst.show()
    same = found == expected
    print(f"{len(published)} flights, {len(expected)} carriers and days; the same answer: {same}")
    return same


# %%
if __name__ == "__main__":
    sys.exit(not main(int(sys.argv[1]) if len(sys.argv) > 1 else None))
