"""The skip ring's tables, from the rows of its sweeps."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import pyspark.sql.functions as sql
from pyspark.sql import Column, DataFrame, SparkSession, Window

from planaria.spark.metrics import means, shares
from planaria.studies.skipring.claims import CLAIMS, PROMISES, SMALLEST, Check, Claim
from planaria.studies.study import CHECKS, Rows

PROMISED: Mapping[str, Sequence[str]] = {
    "claims": ("claim", "n", "paper", "measured", "low", "high", "holds"),
    "literal": ("claim", "n", "literal", "holds"),
    "checks": CHECKS,
    "recovery": ("start", "n", "intervals", "low", "high", "max", "seeds"),
    "antientropy": ("stored", "differing", "method", "bytes", "messages", "bound"),
    "literal_recovery": ("start", "n", "intervals", "low", "high", "max", "seeds"),
    "load": ("start", "n", "requests", "configurations", "peak_in", "peak_out", "messages"),
    "requests": ("n", "rule", "expected"),
    "quiet": ("rules", "n", "requests", "answers", "messages"),
    "operations": ("operation", "n", "supervisor", "low", "high", "peers", "seeds"),
    "states": ("rules", "fault", "states", "healed", "intervals", "max"),
    "errata": ("left_out", "scheduler", "states", "not_healed", "intervals", "max"),
    "tries": ("tried", "rules", "pairs", "good", "messages"),
    "backlog": ("start", "rules", "n", "intervals", "low", "high", "rises"),
    "broadcast": ("n", "rule", "messages", "hops_max", "hops_mean", "hottest"),
    "congestion": ("n", "skip_ring", "chord", "least"),
}
ALL_GIVEN = "bool_and(value is not null)"
TINY = 1e-9  # figures that are equal may differ by rounding
RELATIONS = {
    "equals": f"abs(measured - paper) < {TINY}",
    "at most": f"measured <= paper + {TINY}",
    "below": "measured < paper",
    "at least": f"measured >= paper - {TINY}",
}


def tables(spark: SparkSession, rows: Rows) -> dict[str, DataFrame]:
    """All that is promised."""
    judged = _found(spark, measured_claims(spark, rows, CLAIMS))
    return {
        "claims": judged.where("rules = 'ours'").orderBy("number", "n"),
        "literal": judged.where("rules = literal_rules")
        .withColumn("literal", sql.col("measured"))
        .orderBy("number", "n"),
        "checks": checks(spark, rows),
        "recovery": recovery(rows["recovery"]),
        "antientropy": _averages(
            rows["antientropy"], ("stored", "differing", "method"), ("bytes", "messages", "bound")
        ),
        "literal_recovery": recovery(rows["literal_recovery"]),
        "load": load(rows["recovery"]),
        "requests": rows["requests"].orderBy("rule", "n"),
        "quiet": _averages(rows["quiet"], ("rules", "n"), ("requests", "answers", "messages")),
        "operations": operations(rows["operations"]),
        "states": states(rows["states"]),
        "errata": errata(rows["errata"]),
        "tries": tries(rows["tries"]),
        "backlog": backlog(rows["backlog"]),
        "broadcast": broadcast(rows["broadcast"]),
        "congestion": congestion(rows["shape"]),
    }


# Claims


def measured_claims(spark: SparkSession, rows: Rows, claims: Sequence[Claim]) -> DataFrame:
    """Every claim for every n and all rules: what the paper says, what was measured, `holds`.

    If a run gave no figure, because it never healed or its messages multiplied, nothing is measured
    there and the claim does not hold; so with a claim of which there are no runs at all.
    """
    numbered = dict(enumerate(claims))
    names = [(number, claim.text, claim.literal, claim.kind) for number, claim in numbered.items()]
    columns = "number int, claim string, literal_rules string, kind string"
    texts = sql.broadcast(spark.createDataFrame(names, columns))
    values = _found(spark, long(rows, claims))
    values = values.unionByName(_never_run(spark, values, numbered)).join(texts, "number")
    at_smallest = sql.when(sql.col("n") == SMALLEST, sql.col("measured"))
    alike = Window.partitionBy("number", "rules")
    verdict = _by_claim(numbered, lambda claim: RELATIONS[claim.relation])
    return (
        _summed(values, ["number", "claim", "literal_rules", "kind", "n", "rules"])
        .withColumn("smallest", sql.max(at_smallest).over(alike))
        .withColumn("paper", _by_claim(numbered, lambda claim: f"double({claim.paper})"))
        .withColumn("holds", sql.coalesce(verdict, sql.lit(False)))
    )


def _never_run(spark: SparkSession, values: DataFrame, claims: Mapping[int, Claim]) -> DataFrame:
    """A row without a value for each claim, and each literal reading, that no run is about."""
    asked = [(number, "ours") for number in claims]
    asked += [(number, it.literal) for number, it in claims.items() if it.rules != "'ours'"]
    missing = spark.createDataFrame(asked, "number int, rules string").join(
        values, ["number", "rules"], "left_anti"
    )
    return missing.selectExpr("cast(null as long) n", "number", "rules", "double(null) value")


def long(rows: Rows, items: Sequence[Claim | Check]) -> DataFrame:
    """Every run that an item is about: `n`, `number`, `rules`, `value`, null if it gave none.

    All items about one experiment are read at once.
    """
    together: dict[str, list[Column]] = {}
    for number, item in enumerate(items):
        about = sql.expr(item.where)
        it = {
            "number": sql.lit(number),
            "rules": sql.expr(item.rules),
            "about": about,
            "value": sql.when(about, sql.expr(item.value).cast("double")),
        }
        struct = sql.struct(*(column.alias(name) for name, column in it.items()))
        together.setdefault(item.source, []).append(struct)
    parts = [
        rows[source].select(sql.col("n").cast("long").alias("n"), sql.inline(sql.array(*structs)))
        for source, structs in together.items()
    ]
    return reduce(DataFrame.unionByName, parts).where("about").drop("about")


def _found(spark: SparkSession, table: DataFrame) -> DataFrame:
    """The rows of a table without the long way to them, which Spark would plan at every use."""
    return spark.createDataFrame(table.toArrow())


def _summed(values: DataFrame, by: Sequence[str]) -> DataFrame:
    """What was measured, by the claim's kind: a mean or a share with its interval, or the worst.

    Only what all runs gave is a figure: those that gave none are the worst, not nothing.
    """
    kind = sql.col("kind")
    mean = means(values.where("kind in ('mean', 'exact')"), by, "value").select(
        *by,
        sql.col("mean").alias("measured"),
        *(sql.when(kind == "mean", sql.col(side)).alias(side) for side in ("low", "high")),
    )
    true = values.where("kind = 'share'").withColumn("value", sql.col("value") == 1)
    share = shares(true, by, "value").select(*by, sql.col("share").alias("measured"), "low", "high")
    worst = values.where("kind = 'max'").groupBy(*by).agg(sql.max("value").alias("measured"))
    none = sql.lit(None).cast("double")  # a mean's interval says nothing of the worst
    known = mean.unionByName(share).unionByName(worst.withColumns({"low": none, "high": none}))
    given = values.groupBy(*by).agg(sql.expr(ALL_GIVEN).alias("given"))
    figures = [f"if(given, {name}, null) {name}" for name in ("measured", "low", "high")]
    return given.join(known, [*by], "left").selectExpr(*by, *figures)


def _by_claim(claims: Mapping[int, Claim], column: Callable[[Claim], str]) -> Column:
    """For each row what its claim says."""
    same: dict[str, list[int]] = {}
    for number, claim in claims.items():
        same.setdefault(column(claim), []).append(number)
    found = [sql.when(sql.col("number").isin(them), sql.expr(it)) for it, them in same.items()]
    return sql.coalesce(*found)


# Checks


def checks(spark: SparkSession, rows: Rows) -> DataFrame:
    """What Planaria promises of its ring; a check that does not hold is our failure."""
    names = [(number, check.text, check.bound) for number, check in enumerate(PROMISES)]
    texts = spark.createDataFrame(names, "number int, check string, bound double")
    return (
        long(rows, PROMISES)
        .groupBy("number")
        .agg(sql.when(sql.expr(ALL_GIVEN), sql.max("value")).alias("measured"))
        .join(sql.broadcast(texts), "number", "right")
        .withColumn("holds", sql.coalesce(sql.expr(f"measured <= bound + {TINY}"), sql.lit(False)))
        .orderBy("number")
    )


# Figures


def recovery(rows: DataFrame) -> DataFrame:
    """Intervals until legitimate of the `seeds` that healed: mean, its interval and the worst."""
    by = ["start", "n"]
    worst = rows.groupBy(*by).agg(sql.max("intervals").cast("long").alias("max"))
    healed = means(rows, by, "intervals").withColumnsRenamed({"mean": "intervals", "runs": "seeds"})
    return worst.join(healed, by, "left").fillna(0, ["seeds"]).orderBy(*by)


def load(rows: DataFrame) -> DataFrame:
    """What a recovery costs: per member, and of one interval in units of the supervisor's rate."""
    by = ["start", "n"]
    peaks = rows.groupBy(*by).agg(
        sql.max("peak_in").alias("peak_in"), sql.max("peak_out").alias("peak_out")
    )
    return (
        _averages(rows, by, ("requests", "configurations", "messages")).join(peaks, by).orderBy(*by)
    )


def operations(rows: DataFrame) -> DataFrame:
    """Messages beyond the everyday for one subscribe or unsubscribe."""
    by = ["operation", "n"]
    peers = _averages(rows, by, ("peers",))
    return (
        means(rows, by, "supervisor")
        .withColumnsRenamed({"mean": "supervisor", "runs": "seeds"})
        .join(peers, by)
        .orderBy(*by)
    )


def states(rows: DataFrame) -> DataFrame:
    """How many arbitrary states heal, and when."""
    return (
        rows.groupBy("rules", "fault")
        .agg(
            sql.count("*").alias("states"),
            sql.count_if("healed").alias("healed"),
            sql.avg("intervals").alias("intervals"),
            sql.max("intervals").cast("long").alias("max"),
        )
        .orderBy("rules", "fault")
    )


def errata(rows: DataFrame) -> DataFrame:
    """What leaving one amendment out does to arbitrary states; 'none' leaves none out."""
    number = sql.expr("try_cast(substring(left_out, 2) as int)")
    return (
        rows.groupBy("left_out", "scheduler")
        .agg(
            sql.count("*").alias("states"),
            sql.count_if(~sql.col("healed")).alias("not_healed"),
            sql.avg("intervals").alias("intervals"),
            sql.max("intervals").cast("long").alias("max"),
        )
        .orderBy(sql.desc("scheduler"), number)
    )


def tries(rows: DataFrame) -> DataFrame:
    """Pairs of tries by what was asked of them."""
    return (
        rows.groupBy("tried", "rules")
        .agg(
            sql.sum("pairs").alias("pairs"),
            sql.sum("good").alias("good"),
            sql.avg("messages").alias("messages"),
        )
        .orderBy("tried", "rules")
    )


def backlog(rows: DataFrame) -> DataFrame:
    """Intervals until everybody holds everything, of the runs in which that came."""
    by = ["start", "rules", "n"]
    rises = rows.groupBy(*by).agg(sql.max("rises").cast("long").alias("rises"))
    ended = means(rows, by, "intervals").withColumnRenamed("mean", "intervals")
    return rises.join(ended, by, "left").orderBy(*by)


def broadcast(rows: DataFrame) -> DataFrame:
    """One publication: the worst of all origins, and the mean of hops."""
    worst = [sql.max(name).cast("long").alias(name) for name in ("messages", "hops_max", "hottest")]
    return (
        rows.groupBy("n", "rule")
        .agg(*worst, sql.avg("hops_mean").alias("hops_mean"))
        .orderBy("rule", "n")
    )


def congestion(rows: DataFrame) -> DataFrame:
    """Packets through the busiest node; `least` is what no routing over SR(n) can avoid.

    Half of SR(n) reaches the other half by label 0 or label 1 alone, so one of the two passes on
    half of what (n / 2 - 1) senders on either side send to n / 2 - 1 of n - 1 others.
    """
    return (
        rows.where("rules = 'ours'")
        .groupBy("n")
        .agg(sql.avg("congestion").alias("skip_ring"), sql.avg("chord").alias("chord"))
        .withColumn("least", sql.expr("(n / 2 - 1) * (n / 2 - 1) / (n - 1)"))
        .orderBy("n")
    )


def _averages(rows: DataFrame, by: Sequence[str], values: Sequence[str]) -> DataFrame:
    averages = [sql.avg(name).alias(name) for name in values]
    return rows.groupBy(*by).agg(*averages).orderBy(*by)
