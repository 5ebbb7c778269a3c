"""Claims and checks beside what was measured: does it hold? As DataFrame code.

What nothing is known of, because its simulations raised, is null, and does not hold.
"""

from collections.abc import Sequence

import pyspark.sql.functions as sql
from pyspark.sql import DataFrame, SparkSession

from planaria.studies.damulticast.claims import Check, Claim

VALUES = ("value", "low", "high")
# A claim holds unless the 95% interval of what is measured excludes it.
RELATIONS = {
    "at most": "low <= paper_high + tiny",
    "at least": "high >= paper_low - tiny",
    "equal": "low <= paper_high + tiny and high >= paper_low - tiny",
    "less than": "high < paper_low",
    "more than": "low > paper_high",
    "within a tenth": "abs(value - paper) <= 0.1 * abs(paper)",
}


def judged(
    spark: SparkSession, stated: Sequence[Claim], found: DataFrame, *, literal: bool = False
) -> DataFrame:
    """The claims with what is measured, or what the text gives; a claim within the error holds."""
    data = []
    for place, it in enumerate(stated):
        number, other = (None, it.paper) if isinstance(it.paper, str) else (it.paper, None)
        what = it.literal if literal else it.measured
        if what:
            data.append((place, it.claim, it.relation, number, other, what))
    schema = "place int, claim string, relation string, number double, other string, what string"
    asked = spark.createDataFrame(data, schema)
    paper = found.select(
        sql.col("quantity").alias("other"),
        *[sql.col(name).alias(f"paper_{name}") for name in VALUES],
    )
    joined = asked.join(sql.broadcast(paper), "other", "left").join(
        found.withColumnRenamed("quantity", "what"), "what", "left"
    )
    for name in VALUES:
        joined = joined.withColumn(f"paper_{name}", sql.coalesce(f"paper_{name}", "number"))
    joined = joined.withColumn("paper", sql.col("paper_value"))
    joined = joined.withColumn("tiny", sql.expr("1e-9 * greatest(1, abs(paper))"))
    verdict = sql.lit(None).cast("boolean")
    for relation, condition in RELATIONS.items():
        verdict = sql.when(sql.col("relation") == relation, sql.expr(condition)).otherwise(verdict)
    holds = sql.coalesce(verdict, sql.lit(False))
    return joined.withColumn("holds", holds).orderBy("place")


def checked(spark: SparkSession, promised: Sequence[Check], found: DataFrame) -> DataFrame:
    """The checks with what was measured."""
    data = [(place, it.check, it.measured, it.bound) for place, it in enumerate(promised)]
    asked = spark.createDataFrame(data, "place int, check string, what string, bound double")
    joined = asked.join(found.withColumnRenamed("quantity", "what"), "what", "left")
    joined = joined.withColumn("measured", sql.col("value"))
    kept = sql.coalesce(sql.expr("measured <= bound"), sql.lit(False))
    return joined.withColumn("holds", kept).orderBy("place")
