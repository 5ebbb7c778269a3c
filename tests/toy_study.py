"""A study of a paper that says: twice x is x + x, and twice x is x times x."""

from collections.abc import Mapping, Sequence

import pyspark.sql.functions as sql
from pyspark.sql import DataFrame, SparkSession

from planaria.spark.grid import Cell, crossed
from planaria.spark.sweep import Result
from planaria.studies.charts import Point, lines
from planaria.studies.study import (
    CHECKS,
    CLAIMS,
    LITERAL,
    Block,
    Experiment,
    Figure,
    Prose,
    Rows,
    Shown,
    Study,
    Table,
)

SIZES = {"quick": [1, 2, 3], "paper": [1, 2, 3, 4], "beyond": [1, 2, 3, 4, 5]}


def double(cell: Cell) -> Result:
    return Result({"twice": 2.0 * float(cell.parameters["x"])})


def fragile(cell: Cell) -> Result:
    if cell.parameters["x"] == 3:
        raise KeyError("three")
    return double(cell)


def experiments(scale: str) -> list[Experiment]:
    cells = crossed({"x": SIZES[scale]}, [0])
    return [Experiment("double", {"twice": "float64"}, double, cells, share=2)]


def fragile_experiments(scale: str) -> list[Experiment]:
    cells = crossed({"x": SIZES[scale]}, [0])
    return [Experiment("double", {"twice": "float64"}, fragile, cells, share=2)]


def tables(spark: SparkSession, rows: Rows) -> Mapping[str, DataFrame]:
    points = rows["double"].select("x", "twice").orderBy("x")
    three = points.where("x = 3")
    said = spark.createDataFrame([("sum <&>", 6.0), ("square", 9.0)], "claim string, paper double")
    claims = said.crossJoin(three).withColumn("measured", sql.col("twice"))
    checked = points.agg(sql.max("twice").alias("measured")).withColumn("bound", sql.lit(8.0))
    letter = claims.where("claim = 'square'").withColumn("literal", sql.lit(10.0))
    return {
        "points": points,
        "claims": claims.withColumn("holds", sql.col("paper") == sql.col("measured")),
        "literal": letter.withColumn("holds", sql.col("paper") == sql.col("literal")),
        "checks": checked.withColumn("check", sql.lit("small")).withColumn(
            "holds", sql.col("measured") <= sql.col("bound")
        ),
    }


def page(read: Mapping[str, Table]) -> Sequence[Block]:
    points = [Point(row["x"], row["twice"]) for row in read["points"]]
    return [
        Prose(f"<p>There are {len(points)} points.</p>"),
        Figure("line", "A line", lines({"twice": points}, x="x", y="y")),
        Shown("points", "All points"),
    ]


PROMISED = {"points": ("x", "twice"), "claims": CLAIMS, "literal": LITERAL, "checks": CHECKS}
STUDY = Study("toy", "A toy", "Nobody: Nothing. 2026.", PROMISED, experiments, tables, page)
FRAGILE = Study("toy", "A toy", "Nobody.", PROMISED, fragile_experiments, tables, page)
