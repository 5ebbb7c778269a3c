"""Figures with their confidence intervals, from the rows of a sweep, as DataFrame code.

Intervals are at 95%. A mean is Student's; a share is Wilson's, which stays within 0 and 1 and does
not pretend to be sure when nothing was seen to fail.
"""

from collections.abc import Mapping, Sequence

import pyspark.sql.functions as sql
from pyspark.sql import Column, DataFrame

Z = 1.959963984540054  # the normal distribution's 97.5% point
# Student's t at 97.5% where the expansion below is not yet good to a part in a thousand.
T_FEW: Mapping[int, float] = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764}


def means(rows: DataFrame, by: Sequence[str], value: str) -> DataFrame:
    """`mean`, `low`, `high` and `runs` of `value` per group; no interval for a single run."""
    margin = _student(sql.col("runs") - 1) * sql.col("deviation") / sql.sqrt("runs")
    return (
        rows.where(sql.col(value).isNotNull())
        .groupBy(*by)
        .agg(
            sql.avg(value).alias("mean"),
            sql.stddev_samp(value).alias("deviation"),
            sql.count(value).alias("runs"),
        )
        .withColumn("low", sql.col("mean") - margin)
        .withColumn("high", sql.col("mean") + margin)
        .select(*by, "mean", "low", "high", "runs")
    )


def shares(rows: DataFrame, by: Sequence[str], value: str) -> DataFrame:
    """The share of runs in which the boolean `value` is true, with `low`, `high` and `runs`."""
    n, p, z2 = sql.col("runs"), sql.col("share"), Z * Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    margin = Z / (1 + z2 / n) * sql.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return (
        rows.where(sql.col(value).isNotNull())
        .groupBy(*by)
        .agg(sql.avg(sql.col(value).cast("double")).alias("share"), sql.count(value).alias("runs"))
        .withColumn("low", sql.greatest(sql.lit(0.0), centre - margin))
        .withColumn("high", sql.least(sql.lit(1.0), centre + margin))
        .select(*by, "share", "low", "high", "runs")
    )


def percentiles(rows: DataFrame, by: Sequence[str], value: str) -> DataFrame:
    """`p50`, `p99` and `max` of `value` per group, and of how many `runs`. Exact, no sketch."""
    return (
        rows.where(sql.col(value).isNotNull())
        .groupBy(*by)
        .agg(
            sql.percentile(value, sql.lit(0.5)).alias("p50"),
            sql.percentile(value, sql.lit(0.99)).alias("p99"),
            sql.max(value).alias("max"),
            sql.count(value).alias("runs"),
        )
    )


def _student(freedom: Column) -> Column:
    """Student's t at 97.5%: Cornish and Fisher's expansion, exact values where there are few."""
    z, v = Z, sql.nullif(freedom, sql.lit(0)).cast("double")
    far = (
        sql.lit(z)
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )
    for few, exact in T_FEW.items():
        far = sql.when(freedom == few, exact).otherwise(far)
    return far
