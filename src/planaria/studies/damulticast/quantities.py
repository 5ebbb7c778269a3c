"""From the rows of the sweeps to quantities, as DataFrame code.

Everything that a claim or check speaks of is a quantity: a name, a value and its 95% interval.
"""

import re
from collections.abc import Sequence
from functools import reduce
from operator import add, and_

import pyspark.sql.functions as sql
from pyspark.sql import Column, DataFrame

from planaria.spark.metrics import means, shares
from planaria.studies.damulticast.claims import event
from planaria.studies.damulticast.formulas import DIALS
from planaria.studies.damulticast.runs import MEANS, NODE_EVENTS
from planaria.studies.study import Rows

MEANINGS = ("of_all", "of_alive", "p_all")
SLACK = 0.002  # relative, beside intervals that may be empty: agreement to within a five-hundredth
MESSAGES = event("messages", "all")


def by_group(rows: DataFrame, keep: Sequence[str]) -> DataFrame:
    """A row for each group of each cell: the column T1_sent becomes `sent` where `group` is T1."""
    found = _columns(rows)
    each = [
        sql.struct(
            sql.lit(group).alias("group"), *[sql.col(f"{group}_{it}").alias(it) for it in measures]
        )
        for group, measures in found.items()
    ]
    exploded = rows.select(*keep, sql.explode(sql.array(*each)).alias("it"))
    return exploded.select(*keep, "it.*")


def _columns(rows: DataFrame) -> dict[str, list[str]]:
    """The groups that the columns speak of, and what they say of each."""
    found: dict[str, list[str]] = {}
    for name in rows.columns:
        match = re.fullmatch(r"(T\d+)_(\w+)", name)
        if match:
            found.setdefault(match[1], []).append(match[2])
    return found


def together(rows: DataFrame) -> DataFrame:
    """Of all groups of a cell: messages, and whether everybody alive was reached."""
    groups = _columns(rows)
    sent = [sql.col(f"{group}_sent") + sql.col(f"{group}_up_sent") for group in groups]
    all_in = [sql.col(f"{group}_reached") == sql.col(f"{group}_alive") for group in groups]
    return rows.withColumns({"messages": reduce(add, sent), "p_all": reduce(and_, all_in)})


def reaches(rows: DataFrame, keep: Sequence[str]) -> DataFrame:
    """By group, with the three meanings of reliability; with nobody alive, all the live have it."""
    none = sql.col("alive") == 0
    return (
        by_group(rows, keep)
        .withColumn("of_all", sql.col("reached") / sql.col("members"))
        .withColumn(
            "of_alive",
            sql.when(none, 1.0).otherwise(sql.try_divide("reached", "alive")),
        )
        .withColumn("p_all", sql.col("reached") == sql.col("alive"))
        .withColumn("got", sql.col("reached") > 0)
        .withColumn("each", sql.try_divide("sent", "reached"))
        .withColumn("up_any", sql.col("up_sent") > 0)
    )


def named(rows: DataFrame, name: Column, values: Sequence[str], *, share: bool) -> DataFrame:
    """`quantity`, `share` and `value`: a row per cell and measure, called NAME MEASURE."""
    each = [
        sql.struct(sql.lit(it).alias("key"), sql.col(it).cast("double").alias("value"))
        for it in values
    ]
    exploded = rows.select(name.alias("name"), sql.explode(sql.array(*each)).alias("it"))
    quantity = sql.concat_ws(" ", "name", "it.key").alias("quantity")
    return exploded.select(quantity, sql.lit(share).alias("share"), "it.value")


def averaged(rows: DataFrame, name: Column, values: Sequence[str]) -> DataFrame:
    """Values of which means are wanted."""
    return named(rows, name, values, share=False)


def shared(rows: DataFrame, name: Column, values: Sequence[str]) -> DataFrame:
    """Truths of which the share is wanted."""
    return named(rows, name, values, share=True)


def summed_up(values: Sequence[DataFrame]) -> DataFrame:
    """The quantities of named values: all in two passes, however many there are."""
    every = reduce(DataFrame.unionByName, values)
    mean = means(every.where("not share"), ["quantity"], "value")
    truths = every.where("share").withColumn("value", sql.col("value") == 1.0)
    share = shares(truths, ["quantity"], "value")
    return _quantities(mean, "mean").unionByName(_quantities(share, "share"))


def _quantities(found: DataFrame, value: str) -> DataFrame:
    """A single run has no interval: it is taken as it is."""
    low, high = (sql.coalesce(sql.col(name), sql.col(value)) for name in ("low", "high"))
    return found.select(
        "quantity", sql.col(value).alias("value"), low.alias("low"), high.alias("high"), "runs"
    )


def certain(rows: DataFrame, name: Column, value: Column) -> DataFrame:
    """Quantities without error."""
    value = value.cast("double")
    columns = {"quantity": name, "value": value, "low": value, "high": value}
    return rows.select(
        *[it.alias(key) for key, it in columns.items()], sql.lit(1).cast("bigint").alias("runs")
    )


def single(rows: DataFrame, name: str, value: Column) -> DataFrame:
    """One quantity of all rows together, by an aggregate."""
    return certain(rows.agg(value.alias("value")), sql.lit(name), sql.col("value"))


def of_events(rows: DataFrame) -> list[DataFrame]:
    """Of each group and of all together, for each reading, kind and share of failures."""
    keep = ["reading", "failures", "failed"]
    groups, every = reaches(rows, keep), together(rows)
    name = sql.concat_ws(" ", *keep, "group")
    all_groups = sql.concat_ws(" ", *keep, sql.lit("all"))
    return [
        averaged(groups, name, ["sent", "up_sent", "up_received", "of_all", "of_alive"]),
        shared(groups, name, ["p_all", "got", "up_any"]),
        averaged(every, all_groups, ["messages"]),
        shared(every, all_groups, ["p_all"]),
    ]


def of_literal(rows: DataFrame) -> list[DataFrame]:
    """The same of Figures 5 and 7 to the letter."""
    groups = reaches(rows, ["topic"])
    name = sql.concat_ws(" ", sql.lit("letter"), "topic", "group")
    all_groups = sql.concat_ws(" ", sql.lit("letter"), "topic", sql.lit("all"))
    return [
        averaged(groups, name, ["sent", "each", "up_sent", "up_received"]),
        shared(groups, name, ["got"]),
        averaged(together(rows), all_groups, ["messages", "joined"]),
    ]


def of_nodes(rows: DataFrame) -> list[DataFrame]:
    """Of events over real nodes."""
    keep = ["event_group", "failures", "failed"]
    prefix = sql.concat_ws(" ", sql.lit("nodes on"), *keep)
    wasted = reduce(add, [sql.col(f"{group}_parasites") for group in _columns(rows)])
    every = rows.withColumn("parasites", wasted)
    return [
        averaged(by_group(rows, keep), sql.concat_ws(" ", prefix, "group"), MEANS),
        averaged(every, sql.concat_ws(" ", prefix, sql.lit("all")), ["parasites"]),
    ]


def of_rest(rows: Rows) -> list[DataFrame]:
    """Of approaches, dials, searches, supertopics and sizes."""
    losing = sql.concat_ws(" ", sql.lit("of"), "sizes", sql.lit("losing"), "loss")
    approach = sql.concat_ws(" ", "algorithm", "event_group", losing)
    target = sql.concat_ws(" ", sql.lit("dials"), "target")
    link = sql.concat_ws(" ", sql.lit("links"), "reading", "start")
    supers = sql.concat_ws(" ", sql.lit("inheritance"), "supertopics")
    return [
        averaged(rows["baselines"], approach, ["sent", "parasites", "memory"]),
        shared(rows["baselines"], approach, ["everybody"]),
        averaged(rows["dials"], target, ["everybody"]),
        averaged(rows["links"], link, ["right", "stopped"]),
        averaged(rows["inheritance"], supers, ["lowest", "sent"]),
    ]


def of_formulas(formulas: DataFrame) -> list[DataFrame]:
    """What is worked out has no error."""
    return [
        certain(formulas, sql.concat(sql.lit(before), "formula"), value)
        for before, value in {
            "printed ": sql.col("printed"),
            "corrected ": sql.col("corrected"),
            "half of printed ": sql.col("printed") / 2,
        }.items()
    ]


def of_scaling(rows: DataFrame) -> list[DataFrame]:
    """Messages over S ln S, and over the bound of section VI-B."""
    groups = 3
    order = sql.col("size") * sql.log(sql.col("size"))
    sent = rows.groupBy("size").agg(sql.avg("sent").alias("sent"))
    each = sent.select(
        "size",
        (sql.col("sent") / order).alias("slope"),
        (sql.col("sent") / (groups * order * (1 + DIALS.c + DIALS.z))).alias("share"),
    )
    growth = sql.max_by("slope", "size") / sql.min_by("slope", "size")
    return [
        single(each, "scaling share of the bound", sql.max("share")),
        single(each.where("size >= 10"), "scaling growth", growth),
    ]


def of_faults(rows: Rows) -> list[DataFrame]:
    """What must not happen at all, counted."""
    nodes = by_group(rows["nodes"], [])
    ours = rows["links"].where("reading = 'planaria'")
    solved = rows["formulas"].where(sql.col("formula").isin("(16)", "(23)", "(28)"))
    return [
        single(nodes, "nodes parasites", sql.sum("parasites")),
        single(nodes, "nodes repeated", sql.sum("repeated")),
        single(ours, "links wrong", sql.sum(1 - sql.col("right"))),
        single(rows["healing"], "healing failed", sql.count_if(~sql.col("healed"))),
        single(solved, "tuning off", sql.max("corrected")),
    ]


def of_figure10(found: DataFrame, bottom: str) -> list[DataFrame]:
    """How the shares of Figure 10 run: the largest rise, and the largest excess of upper groups."""
    pattern = r"^planaria stillborn (\S+) T(\d+) of_all$"
    each = found.select(
        sql.regexp_extract("quantity", pattern, 1).try_cast("double").alias("failed"),
        sql.regexp_extract("quantity", pattern, 2).try_cast("int").alias("level"),
        "value",
        sql.expr("high - value").alias("margin"),
    ).where("level is not null")
    rise = "abs(a.failed - b.failed - 0.1) < 0.01"
    excess = "a.failed = b.failed and b.level = a.level + 1"
    last = each.where(sql.concat(sql.lit("T"), "level") == bottom)
    return [
        _largest(last, sql.expr(rise), "figure10 rise"),
        _largest(each, sql.expr(excess), "figure10 excess"),
    ]


def _largest(each: DataFrame, condition: Column, name: str) -> DataFrame:
    """Of all pairs the difference that is farthest above its own error."""
    pairs = each.alias("a").join(each.alias("b"), condition)
    apart = pairs.select(
        sql.expr("a.value - b.value").alias("value"),
        sql.expr("sqrt(a.margin * a.margin + b.margin * b.margin)").alias("margin"),
    )
    order = sql.expr("value - margin")
    found = apart.agg(
        sql.max_by("value", order).alias("value"), sql.max_by("margin", order).alias("margin")
    )
    return found.select(
        sql.lit(name).alias("quantity"),
        "value",
        sql.expr("value - margin").alias("low"),
        sql.expr("value + margin").alias("high"),
        sql.lit(1).cast("bigint").alias("runs"),
    )


def of_dials(found: DataFrame) -> DataFrame:
    """By how much the dials miss their targets at worst, beyond the error."""
    each = found.where("startswith(quantity, 'dials ')")
    target = sql.split_part("quantity", sql.lit(" "), sql.lit(2)).cast("double")
    short = sql.max(sql.greatest(sql.lit(0.0), target - sql.col("high")))
    return single(each, "dials short", short)


def agreement(found: DataFrame, exact: DataFrame, bottom: str) -> list[DataFrame]:
    """How far arrays are from nodes and from the exact chain, at worst; 1 is as far as allowed."""
    arrays = _called(found, r"^planaria (\S+ \S+ T\d+ \S+)$")
    nodes = _called(found, rf"^nodes on {bottom} (\S+ \S+ T\d+ \S+)$")
    pair = found.where(sql.col("quantity").isin(MESSAGES, "corrected messages"))
    apart = sql.max("value") / sql.min("value") - 1
    # Twice both 95% intervals together: some hundred comparisons are made. The nodes' is at least
    # what the arrays' would be of as few events: when all went well by luck, their own is empty.
    as_few = f"(a.high - a.low) * sqrt(a.runs / (b.runs * {NODE_EVENTS}))"
    width = f"greatest(b.high - b.low, {as_few})"
    widths = sql.expr(f"sqrt(pow(a.high - a.low, 2) + pow({width}, 2))")
    around = widths + SLACK * sql.expr("greatest(1, abs(b.value))")
    # Four standard errors; rare losses of a whole group are not normal yet with few runs.
    errors = sql.expr("4 * b.deviation / sqrt(a.runs) + 3 / a.runs")
    return [
        single(_off(arrays, nodes, around), "nodes off", sql.max("off")),
        single(_off(arrays, _chain(exact), errors), "exact off", sql.max("off")),
        single(pair, "messages off", apart),
    ]


def _called(found: DataFrame, pattern: str) -> DataFrame:
    what = sql.regexp_extract("quantity", pattern, 1).alias("what")
    return found.select(what, "value", "low", "high", "runs").where("what != ''")


def _chain(exact: DataFrame) -> DataFrame:
    """The exact chain: what is measured, its expectation and its deviation in one run."""
    groups = by_group(exact, ["failures", "failed"])
    coin = "sqrt({0} * (1 - {0}))"
    known = {
        "of_all": ("of_all", "deviation"),
        "p_all": ("p_all", coin.format("p_all")),
        "got": ("p_reached", coin.format("p_reached")),
    }
    each = [
        sql.struct(
            sql.lit(key).alias("key"),
            sql.expr(value).alias("value"),
            sql.expr(deviation).alias("deviation"),
        )
        for key, (value, deviation) in known.items()
    ]
    name = sql.concat_ws(" ", "failures", "failed", "group").alias("name")
    exploded = groups.select(name, sql.explode(sql.array(*each)).alias("it"))
    what = sql.concat_ws(" ", "name", "it.key").alias("what")
    return exploded.select(what, "it.value", "it.deviation")


def _off(one: DataFrame, other: DataFrame, allowed: Column) -> DataFrame:
    joined = one.alias("a").join(other.alias("b"), "what")
    return joined.select((sql.expr("abs(a.value - b.value)") / allowed).alias("off"))


def quantities(rows: Rows, bottom: str) -> DataFrame:
    """Everything that was measured or worked out, by name; events are published on `bottom`."""
    values = [
        *of_events(rows["events"]),
        *of_literal(rows["literal"]),
        *of_nodes(rows["nodes"]),
        *of_rest(rows),
    ]
    parts = [summed_up(values), *of_formulas(rows["formulas"]), *of_scaling(rows["scaling"])]
    first = reduce(DataFrame.unionByName, [*parts, *of_faults(rows)]).localCheckpoint()
    more = [*of_figure10(first, bottom), of_dials(first), *agreement(first, rows["exact"], bottom)]
    return reduce(DataFrame.unionByName, [first, *more]).localCheckpoint()
