"""The tables of the link reversal paper's study, from the rows of its runs."""

from collections.abc import Mapping

import pyspark.sql.functions as sql
from pyspark.sql import DataFrame, SparkSession

from planaria.studies import verdicts
from planaria.studies.mobile.claims import PROMISES, STATED
from planaria.studies.mobile.facts import figures
from planaria.studies.study import CHECKS, CLAIMS, LITERAL, Rows

PROMISED: Mapping[str, tuple[str, ...]] = {
    "claims": CLAIMS,
    "literal": LITERAL,
    "checks": CHECKS,
    "fairness": (
        "graph",
        "executions",
        "ratio",
        "longest_wait",
        "sends",
        "rounds_mean",
        "rounds_max",
    ),
    "cases": ("question", "reading", "n", "failing", "cases"),
    "cost": ("graph", "orientation", "links", "rounds", "sends", "flooding", "table_4"),
    "healing": ("orientation", "graph", "start", "intervals", "max", "missed", "longest_wait"),
    "connections": ("f", "gone", "sets", "cutting"),
    "anonymity": ("graph", "observers", "walk", "blind", "first_sender", "best_guess", "bound"),
}


def tables(spark: SparkSession, rows: Rows) -> dict[str, DataFrame]:
    """All tables of the study."""
    facts = figures(spark, rows)
    return {
        "claims": verdicts.claims(facts, STATED),
        "literal": verdicts.literal(facts, STATED),
        "checks": verdicts.checks(facts, PROMISES),
        "fairness": fairness(rows),
        "cases": _cases(rows["questions"]),
        "cost": _cost(rows["spread"]),
        "healing": _healing(rows["healing"]),
        "connections": _connections(rows["connections"]),
        "anonymity": _anonymity(rows["anonymity"]),
    }


def fairness(rows: Rows) -> DataFrame:
    """Per graph, with heights: turns, waits, and what one publication costs."""
    heights = rows["fairness"].where("orientation = 'heights'").groupBy("graph")
    turns = heights.agg(
        sql.avg("executions").alias("executions"),
        sql.avg("ratio").alias("ratio"),
        sql.max("longest_wait").alias("longest_wait"),
    )
    news = rows["spread"].where("orientation = 'heights' and not echo").groupBy("graph")
    cost = news.agg(
        sql.avg("sends").alias("sends"),
        sql.avg("rounds").alias("rounds_mean"),
        sql.max("rounds_max").alias("rounds_max"),
    )
    return turns.join(cost, "graph", "left").select(*PROMISED["fairness"]).orderBy("graph")


def _cases(questions: DataFrame) -> DataFrame:
    counted = questions.groupBy("question", "reading", "n").agg(
        sql.sum("failing").alias("failing"), sql.sum("cases").alias("cases")
    )
    return counted.orderBy("question", "reading", "n")


def _cost(spread: DataFrame) -> DataFrame:
    names = ("links", "rounds", "sends", "flooding", "table_4")
    grouped = spread.where("not echo").groupBy("graph", "orientation")
    return grouped.agg(*(sql.avg(name).alias(name) for name in names)).orderBy(
        "graph", "orientation"
    )


def _healing(healing: DataFrame) -> DataFrame:
    return (
        healing.groupBy("orientation", "graph", "start")
        .agg(
            sql.avg("intervals").alias("intervals"),
            sql.max("intervals").alias("max"),
            sql.sum("missed").alias("missed"),
            sql.max("longest_wait").alias("longest_wait"),
        )
        .orderBy("orientation", "graph", "start")
    )


def _connections(connections: DataFrame) -> DataFrame:
    counted = connections.groupBy("f", "gone").agg(
        sql.sum("sets").alias("sets"), sql.sum("cutting").alias("cutting")
    )
    return counted.orderBy("f", "gone")


def _anonymity(anonymity: DataFrame) -> DataFrame:
    names = ("blind", "first_sender", "best_guess", "bound")
    grouped = anonymity.groupBy("graph", "observers", "walk")
    return grouped.agg(*(sql.avg(name).alias(name) for name in names)).orderBy(
        "graph", "observers", "walk"
    )
