"""The flights as a table of Spark, where the same conditions are evaluated by somebody else."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import flights

TOGETHER = 50  # conditions of one query: a pass over the flights answers all of them


class SparkFlights:
    """Answers with the numbers of the flights that a condition selects."""

    def __init__(self, spark: SparkSession, some: list[flights.Row], place: Path) -> None:
        columns: dict[str, pa.Array] = {"number": pa.array(range(len(some)), pa.int64())}
        for name in (*flights.NUMBERS, *flights.TEXTS):
            kind = pa.float64() if name in flights.NUMBERS else pa.string()
            columns[name] = pa.array([row.get(name) for row in some], kind)
        hours = [flights.attributes(row)[flights.TIME].microseconds for row in some]
        columns[flights.TIME] = pa.array(hours, pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table(columns), place / "flights.parquet")
        self.spark = spark
        spark.read.parquet(str(place / "flights.parquet")).createOrReplaceTempView("flights")

    def select(self, conditions: Sequence[str]) -> dict[str, NDArray[np.int64]]:
        """For each condition the flights for which it is true; NULL is not."""
        found = {}
        for first in range(0, len(conditions), TOGETHER):
            some = conditions[first : first + TOGETHER]
            asked = [f"coalesce(({text}), false) AS c{place}" for place, text in enumerate(some)]
            answer = self.spark.sql(f"SELECT number, {', '.join(asked)} FROM flights").toArrow()
            number = answer["number"].to_numpy()
            for place, text in enumerate(some):
                chosen = answer[f"c{place}"].to_numpy(zero_copy_only=False)
                found[text] = np.sort(number[chosen])
        return found
