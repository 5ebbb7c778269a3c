"""Spark beside it all: reads the topic as a stream and keeps the mean delay of each carrier."""

from collections.abc import Iterable
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from msgspec import DecodeError, json

from planaria.demo.flights import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "delays"
LOOK_SECONDS = 0.5
TRIES = 4  # Spark gives a worker 10 s to start, which a busy machine may not have
Row = tuple[str, int, float | None]  # carrier, flights, mean delay


class Answer(NamedTuple):
    """The aggregate so far: a row for each carrier, the largest first."""

    rows: list[Row]

    @property
    def flights(self) -> int:
        """How many were counted."""
        return sum(row[1] for row in self.rows)


def plain(bodies: Iterable[bytes]) -> Answer:
    """The same question answered by a loop: what Spark's answer must be equal to."""
    counts: dict[str, int] = {}
    delays: dict[str, list[float]] = {}
    for body in bodies:
        try:
            flight = json.decode(body)
            carrier = flight["carrier"]
        except (DecodeError, TypeError, KeyError):
            continue  # what a fault in memory made up is no flight, to Spark neither
        counts[carrier] = counts.get(carrier, 0) + 1
        delays.setdefault(carrier, []).extend([flight["delay"]] if "delay" in flight else [])
    rows = [
        (name, count, sum(delays[name]) / len(delays[name]) if delays[name] else None)
        for name, count in counts.items()
    ]
    return Answer(sorted(rows, key=lambda row: (-row[1], row[0])))


def same(one: Answer, other: Answer) -> bool:
    """Equal but for the order in which delays were added up."""
    if [row[:2] for row in one.rows] != [row[:2] for row in other.rows]:
        return False
    pairs = ((a[2], b[2]) for a, b in zip(one.rows, other.rows, strict=True))
    return all(a == b or (a and b and abs(a - b) <= 1e-9 * abs(a)) for a, b in pairs)


class Aggregate:
    """A streaming query in a thread of its own: Spark's driver waits a lot.

    Spark takes seconds to start: begin early, then say where the network is.
    """

    def __init__(self, topic: str, master: str | None) -> None:
        self.topic, self.master = topic, master
        self.answer = Answer([])
        self.failure: str | None = None
        self._context: Path | None = None
        self._known, self._end = Event(), Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start Spark."""
        self._thread.start()

    def read(self, context: Path) -> None:
        """Read the topic of this network."""
        self._context = context
        self._known.set()

    def stop(self) -> None:
        """End the query and Spark; returns when both are gone."""
        self._end.set()
        self._known.set()
        self._thread.join()

    def _run(self) -> None:
        from planaria.spark import PlanariaDataSource, session

        try:
            with session(self.master) as spark:
                spark.conf.set("spark.sql.shuffle.partitions", "2")
                spark.dataSource.register(PlanariaDataSource)
                self._known.wait()
                self._answer_until_the_end(spark)
        except Exception as error:  # told to whoever looks at the screen
            self.failure = str(error).strip().splitlines()[0]

    def _answer_until_the_end(self, spark: "SparkSession") -> None:
        """Run the query; one that failed is asked again, from the beginning of the topic."""
        for left in reversed(range(TRIES)):
            try:
                if not self._end.is_set():
                    self._query(spark)
                return
            except Exception:
                if not left:
                    raise

    def _query(self, spark: "SparkSession") -> None:
        flights = (
            spark.readStream.format("planaria")
            .option("context", str(self._context))
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("schema", SCHEMA)
            .load()
        )
        delays = (
            flights.where("carrier IS NOT NULL")
            .groupBy("carrier")
            .agg({"*": "count", "delay": "avg"})
        )
        query = delays.writeStream.outputMode("complete").format("memory").queryName(TABLE).start()
        while not self._end.wait(LOOK_SECONDS):
            rows = spark.table(TABLE).collect()
            found = [(row["carrier"], row["count(1)"], row["avg(delay)"]) for row in rows]
            self.answer = Answer(sorted(found, key=lambda row: (-row[1], row[0])))
            failure = query.exception()
            if failure is not None:
                raise failure
        query.stop()
