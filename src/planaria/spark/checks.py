"""Is the data what it claims to be? Asked before any figure is drawn from it."""

from collections.abc import Sequence

import pyspark.sql.functions as sql
from pyspark.sql import DataFrame, SparkSession

from planaria.core.errors import UsageError


def complete(spark: SparkSession, rows: DataFrame, cells: Sequence[str]) -> DataFrame:
    """The rows of `cells`, or `UsageError` if one of them is missing or there twice."""
    asked = spark.createDataFrame([(cell,) for cell in cells], "cell string")
    counted = asked.join(rows.groupBy("cell").count(), "cell", "left").fillna(0, "count")
    wrong = (
        counted.where("count != 1")
        .groupBy((sql.col("count") == 0).alias("missing"))
        .agg(sql.count("*").alias("cells"), sql.min("cell").alias("first"))
        .orderBy("missing")
        .first()
    )
    if wrong is not None:
        what = "are missing: run it again" if wrong.missing else "are there more than once"
        raise UsageError(f"of {len(cells):,} cells {wrong.cells:,} {what} (one: {wrong.first})")
    return rows.join(asked, "cell", "left_semi")


def errors(rows: DataFrame) -> DataFrame:
    """How many cells of each kind of error, most first, each with one command that repeats it."""
    return (
        rows.where("error is not null")
        .groupBy("error")
        .agg(sql.count("*").alias("cells"), sql.min_by("replay", "seed").alias("replay"))
        .orderBy(sql.desc("cells"), "error")
    )
