"""What can be seen in topics and traces: latency, hops, duplicates, gaps, overhead, health.

Each view takes a DataFrame and returns one. `rows` are those of the format `planaria`, of a table
or of a stream; `trace` those of `planaria trace` or `planaria sim --trace`, as Parquet or from
a topic whose values they are. Views over both work live: write them with the output mode `update`
or `complete`. What needs whole histories (hops, latency of messages) says so.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from planaria.core.errors import UsageError
from planaria.records.positions import Intervals

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import Column
    from pyspark.sql.streaming.state import GroupState

STREAM = ("topic", "publisher", "incarnation")
QUANTILES = (0.5, 0.9, 0.99)
_GAPS = "topic string, publisher long, incarnation binary, first long, last long"
_STATE = "numbers binary"
_HOPS = "run string, message_type string, hops int, messages long"


def streams(rows: DataFrame) -> DataFrame:
    """The same rows with the incarnation of their publisher, which numbers begin anew with."""
    return rows.withColumn("incarnation", F.expr("substring(id, 9, 12)"))


def latency(rows: DataFrame, by: Iterable[str] = ("topic",)) -> DataFrame:
    """How old publications are when this query sees them: milliseconds, their distribution.

    Live it is the latency of delivery, from the publisher's clock to Spark's.
    """
    age = (F.current_timestamp().cast("double") - F.col("timestamp").cast("double")) * 1000
    # Spark refuses the clock within an aggregate of a stream, so it is a column before. No other
    # has its name, in whatever case: it is longer.
    name = "age" + "_" * max(map(len, rows.columns))
    return rows.withColumn(name, age).groupBy(*by).agg(*_distribution(F.col(name)))


def message_latency(trace: DataFrame) -> DataFrame:
    """How long messages of each type were on their way, in ticks; of a trace that is complete."""
    _whole(trace, "message_latency")
    key = ["run", "message_id", "message_type"]
    sent = trace.where("kind = 'send'").groupBy(*key).agg(F.min("tick").alias("sent"))
    came = trace.where("kind = 'deliver'").select(*key, "tick")
    way = came.join(sent, key).withColumn("way", F.col("tick") - F.col("sent"))
    return way.groupBy("message_type").agg(*_distribution(F.col("way")))


def hops(trace: DataFrame) -> DataFrame:
    """How many messages stand one after the other before each that was delivered.

    By run and message type: `hops` 1 is what a timeout or a command led to. Of a trace that is
    complete; a cause that is not in it begins a chain.
    """
    _whole(trace, "hops")
    delivered = trace.where("kind = 'deliver'").select(
        "run", "message_id", "cause_id", "message_type"
    )
    sent = trace.where("kind = 'send'").select("run", "message_id", "cause_id", "message_type")
    marked = sent.withColumn("came", F.lit(0)).union(delivered.withColumn("came", F.lit(1)))
    return marked.groupBy("run").applyInArrow(_hops, _HOPS)


def _hops(table: pa.Table) -> pa.Table:
    causes: dict[int, int] = {}
    rows = table.to_pylist()
    for row in rows:
        if not row["came"]:
            causes.setdefault(row["message_id"], row["cause_id"])
    depths: dict[int, int] = {}
    counts: dict[tuple[str, str, int], int] = {}
    for row in rows:
        if row["came"]:
            name = (row["run"], row["message_type"], _depth(row["message_id"], causes, depths))
            counts[name] = counts.get(name, 0) + 1
    columns: list[list[Any]] = [[name[at] for name in counts] for at in range(3)]
    names = ["run", "message_type", "hops", "messages"]
    types = [pa.string(), pa.string(), pa.int32(), pa.int64()]
    arrays = [
        pa.array(it, type) for it, type in zip([*columns, [*counts.values()]], types, strict=True)
    ]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _depth(number: int, causes: dict[int, int], depths: dict[int, int]) -> int:
    """The length of the chain that led to a message; a damaged trace may have circles."""
    chain: list[int] = []
    while number in causes and number not in depths:
        depths[number] = 0
        chain.append(number)
        number = causes[number]
    depth = depths.get(number, 0)
    for one in reversed(chain):
        depth += 1
        depths[one] = depth
    return max(1, depth)


def duplicates(rows: DataFrame) -> DataFrame:
    """Positions that occur more than once: none, if readers keep their promise."""
    return rows.groupBy("topic", "id").count().where("count > 1")


def gaps(rows: DataFrame) -> DataFrame:
    """Numbers that are missing between others of the same publisher, from `first` to `last`.

    Live, what each batch adds: the state of a stream are the intervals of its numbers, so a gap
    that is told is not told again, and rows that are repeated make none.
    """
    named = streams(rows)
    if rows.isStreaming:
        grouped = named.select(*STREAM, "sequence").groupBy(*STREAM)
        return grouped.applyInPandasWithState(_new_gaps, _GAPS, _STATE, "append", "NoTimeout")
    each = named.select(*STREAM, "sequence").distinct()
    before = F.lag("sequence").over(Window.partitionBy(*STREAM).orderBy("sequence"))
    found = each.withColumn("before", before).where("sequence > before + 1")
    return found.select(
        *STREAM, (F.col("before") + 1).alias("first"), (F.col("sequence") - 1).alias("last")
    )


def _new_gaps(
    key: tuple[str, int, bytes], frames: Iterable["pd.DataFrame"], state: "GroupState"
) -> Iterator["pd.DataFrame"]:
    import pandas as pd

    known = Intervals.unpack(bytes(state.get[0])) if state.exists else Intervals()
    end = known.end
    for frame in frames:
        for number in sorted(frame["sequence"].tolist()):
            known.add(number, number + 1)
    first = next((lo for lo, _ in known), 0)
    found = [(lo, hi - 1) for lo, hi in known.missing(max(end, first), known.end)]
    state.update((known.pack(),))
    names = ["topic", "publisher", "incarnation", "first", "last"]
    yield pd.DataFrame([(*key, lo, hi) for lo, hi in found], columns=names)


def load(rows: DataFrame) -> DataFrame:
    """How much each publisher put into each topic: publications, bytes, first and last time."""
    return rows.groupBy("topic", "publisher").agg(
        F.count("*").alias("publications"),
        F.sum(F.octet_length("value")).alias("bytes"),
        F.min("timestamp").alias("since"),
        F.max("timestamp").alias("until"),
    )


def overhead(trace: DataFrame) -> DataFrame:
    """What each node sent about each topic, by message type: messages, bytes, and its share.

    `topic` is null for what is about none, or about several; the share is of the node's bytes.
    """
    sent = trace.where("kind = 'send'").groupBy("run", "node", "topic", "message_type")
    found = sent.agg(*_sent())
    if trace.isStreaming:
        return found
    of_node = Window.partitionBy("run", "node")
    return found.withColumn("share", F.col("bytes") / F.sum("bytes").over(of_node))


def _sent() -> list["Column"]:
    return [F.count("*").alias("messages"), F.sum(F.coalesce("bytes", F.lit(0))).alias("bytes")]


def since_legitimate(verdicts: DataFrame, by: Iterable[str] = ("topic",)) -> DataFrame:
    """How long ago a network was last legitimate, in seconds, by its last verdict.

    `verdicts` has a `timestamp` and a `legitimate`, as what `planaria doctor --json` says has, say
    published to a topic and read with `schema` = `legitimate BOOLEAN`.
    """
    good = F.max(F.when(F.col("legitimate"), F.col("timestamp")))
    last = F.max("timestamp")
    return verdicts.groupBy(*by).agg(
        last.alias("judged"),
        good.alias("legitimate"),
        (last.cast("double") - good.cast("double")).alias("seconds"),
    )


def _distribution(value: "Column") -> list["Column"]:
    middle = F.percentile_approx(value, list(QUANTILES), 10_000)
    named = [middle[at].alias(f"p{round(100 * q)}") for at, q in enumerate(QUANTILES)]
    return [F.count(value).alias("count"), *named, F.max(value).alias("max")]


def _whole(frame: DataFrame, name: str) -> None:
    if frame.isStreaming:
        raise UsageError(f"{name} needs a whole trace: read it from Parquet, not as a stream")
