"""From the rows of the sweeps to the tables of the study of leased routing."""

from collections.abc import Mapping, Sequence

import pyspark.sql.functions as sql
from pyspark.sql import Column, DataFrame, SparkSession

from planaria.lab.routing.analysis import MUS, OMEGAS, PAPER, RHOS
from planaria.studies.leases.claims import CHECKED, CLAIMED
from planaria.studies.study import CHECKS, CLAIMS, LITERAL, Rows
from planaria.studies.verdicts import checks, claims, literal, settle

PI_STEPS = 12  # a leasing period in steps of a clock, for the life of one entry
FEWEST, MOST = 10_000, 500_000  # fewer give too few control messages, more leave b_s near 0
(RHO_1, RHO_2), (MU_1, MU_2) = RHOS, MUS

PROMISED: Mapping[str, Sequence[str]] = {
    "figure2": ("subscriptions", "omega", "rho", "mu", "saved", "control", "method"),
    "crossings": ("omega", "rho", "mu", "subscriptions", "method"),
    "stabilisation": ("strategy", "start", "bound", "worst", "runs"),
    "cases": ("case", "what", "printed", "ours"),
    "claims": CLAIMS,
    "literal": LITERAL,
    "checks": CHECKS,
}


def tables(spark: SparkSession, rows: Rows) -> dict[str, DataFrame]:
    """The promised tables."""
    curves = figure2(rows["closed"], rows["simulated"])
    meetings = crossings(rows["crossing"])
    facts = settle(spark, *_facts(rows, meetings))
    return {
        "figure2": curves,
        "crossings": meetings,
        "stabilisation": stabilisation(rows["stabilisation"]),
        "cases": rows["cases"].select(*PROMISED["cases"]).orderBy(sql.desc("printed"), "case"),
        "claims": claims(facts, CLAIMED),
        "literal": literal(facts, CLAIMED),
        "checks": checks(facts, CHECKED),
    }


def figure2(closed: DataFrame, simulated: DataFrame) -> DataFrame:
    """b_s and b_c of the eight combinations; both by number of subscriptions."""
    points = [
        _point(rows).withColumn("method", sql.lit(method))
        for rows, method in ((closed, "closed_form"), (simulated, "simulated"))
    ]
    omegas = sql.explode(sql.array(*(sql.lit(omega) for omega in OMEGAS)))
    return (
        points[0]
        .unionByName(points[1])
        .withColumn("omega", omegas)
        .withColumn("saved", sql.col("saved_1") * sql.col("omega"))
        .select(*PROMISED["figure2"])
        .orderBy("method", sql.desc("omega"), "rho", "mu", "subscriptions")
    )


def crossings(rows: DataFrame) -> DataFrame:
    """From so many subscriptions on flooding is cheaper; simulated: between two sizes tried."""
    by = ["omega", "rho", "mu"]
    closed = rows.where("at = 0").select(
        *by, sql.col("closed").alias("subscriptions"), sql.lit("closed_form").alias("method")
    )
    tried, gain = sql.col("tried"), sql.col("gain")
    ends = (
        rows.where("at > 0")
        .groupBy(*by, "seed")
        .agg(
            sql.min_by(tried, "at").alias("low"),
            sql.max_by(tried, "at").alias("high"),
            sql.min_by(gain, "at").alias("won"),
            sql.max_by(gain, "at").alias("lost"),
        )
    )
    low, high, won, lost = (sql.col(name) for name in ("low", "high", "won", "lost"))
    simulated = (
        ends.withColumn("subscriptions", low + (high - low) * sql.try_divide(won, won - lost))
        .groupBy(*by)
        .agg(sql.avg("subscriptions").alias("subscriptions"))
        .select(*by, "subscriptions", sql.lit("simulated").alias("method"))
    )
    return closed.unionByName(simulated).orderBy(sql.desc("omega"), "rho", "mu", "method")


def stabilisation(rows: DataFrame) -> DataFrame:
    """Intervals until legitimate, the worst of all runs, peer-to-peer and hierarchical.

    There is no worst where a run never became legitimate, or did not stay so.
    """
    return (
        rows.groupBy("strategy", "start")
        .agg(
            sql.max("bound").alias("bound"),
            sql.when(sql.bool_and("healed"), sql.max("intervals")).alias("worst"),
            sql.count("*").alias("runs"),
        )
        .orderBy("strategy", "start")
    )


def _point(rows: DataFrame) -> DataFrame:
    return rows.groupBy("subscriptions", "rho", "mu").agg(
        sql.avg("saved_1").alias("saved_1"), sql.avg("control").alias("control")
    )


def _facts(rows: Rows, meetings: DataFrame) -> list[DataFrame]:
    lease, times = rows["lease"], rows["times"]
    renewed = sql.col("renewed")
    return [
        *_figure_facts(rows["closed"], rows["simulated"]),
        _setting_facts(rows["setting"]),
        *_crossing_facts(meetings, rows["crossing"]),
        _case_facts(rows["cases"]),
        lease.agg(
            sql.max(sql.when(renewed == 0, sql.col("longest"))).alias("unrenewed"),
            sql.min(
                sql.when((renewed > 0) & (renewed <= sql.col("pi")), sql.col("shortest"))
            ).alias("renewed"),
        ),
        times.select(
            (1000 * sql.col("lease")).alias("example_pi"),
            sql.col("delta").alias("example_delta"),
            sql.col("printed_delta").alias("example_printed"),
            "ours_rho",
            "ours_delta",
        ),
        rows["renewals"].agg(sql.max("gap").alias("gap")),
        healing_facts(rows["stabilisation"]),
        _delivery_facts(rows["deliveries"]),
    ]


def _figure_facts(closed: DataFrame, simulated: DataFrame) -> list[DataFrame]:
    """How far the simulation is from the closed form, and both where nobody subscribes."""
    known = _point(closed).toDF("subscriptions", "rho", "mu", "saved_closed", "control_closed")
    both = _point(simulated.where(sql.col("subscriptions") >= FEWEST)).join(
        known, ["subscriptions", "rho", "mu"]
    )
    off = {
        "control_off": sql.abs(sql.col("control") / sql.col("control_closed") - 1),
        "saved_off": sql.when(
            sql.col("subscriptions") <= MOST,
            sql.abs(sql.col("saved_1") / sql.col("saved_closed") - 1),
        ),
        "crossed_off": sql.abs(sql.col("saved_1") - sql.col("saved_closed")) / PAPER.links,
    }
    empty = sql.col("subscriptions") == 0
    saved_at_0 = sql.avg(sql.when(empty, sql.col("saved_1")))
    early = closed.where("subscriptions between 1 and 200000").groupBy("subscriptions", "rho")
    by_mu = [sql.max(sql.when(sql.col("mu") == mu, sql.col("control"))) for mu in (MU_2, MU_1)]
    return [
        early.agg((by_mu[0] / by_mu[1]).alias("ratio")).agg(sql.max("ratio").alias("mu_early")),
        both.agg(*(sql.max(it).alias(name) for name, it in off.items())),
        simulated.agg(
            sql.avg(sql.col("alive") / sql.nullif("subscriptions", sql.lit(0))).alias("alive"),
            *(
                (saved_at_0 * omega).alias(f"saved_at_0_{place}")
                for place, omega in enumerate(OMEGAS, 1)
            ),
            ((sql.lit(PAPER.links) - saved_at_0) * OMEGAS[0]).alias("less_than_flooded"),
            ((1 - saved_at_0) * OMEGAS[0]).alias("less_than_published"),
        ),
    ]


def _setting_facts(setting: DataFrame) -> DataFrame:
    def at(rho: float, mu: float, name: str) -> Column:
        here = (sql.col("rho") == rho) & (sql.col("mu") == mu)
        return sql.max(sql.when(here, sql.col(name)))

    return setting.agg(
        *(sql.max(name).alias(name) for name in ("brokers", "leaves", "links", "depth")),
        (2 * sql.max("depth")).alias("path"),
        at(RHO_1, MU_1, "refreshed").alias("refreshed_1"),
        at(RHO_2, MU_1, "refreshed").alias("refreshed_2"),
        at(RHO_1, MU_1, "limit").alias("limit_1"),
        at(RHO_1, MU_2, "limit").alias("limit_1_fast"),
        at(RHO_2, MU_1, "limit").alias("limit_2"),
        at(RHO_2, MU_2, "limit").alias("limit_2_fast"),
        at(RHO_1, MU_1, "flag_limit").alias("flag_limit_1"),
        at(RHO_2, MU_1, "flag_limit").alias("flag_limit_2"),
        at(RHO_1, MU_2, "peak").alias("peak_1_fast"),
        at(RHO_2, MU_2, "peak").alias("peak_2_fast"),
        at(RHO_1, MU_1, "peak").alias("peak_1"),
        at(RHO_2, MU_1, "peak").alias("peak_2"),
        *(at(rho, MU_1, "pi").alias(f"pi_{place}") for place, rho in enumerate(RHOS, 1)),
    )


def _crossing_facts(meetings: DataFrame, rows: DataFrame) -> list[DataFrame]:
    first = (sql.col("omega") == OMEGAS[0]) & (sql.col("rho") == RHO_1) & (sql.col("mu") == MU_1)
    by = ["omega", "rho", "mu"]
    closed = meetings.where("method = 'closed_form'")
    simulated = meetings.where("method = 'simulated'").select(
        *by, sql.col("subscriptions").alias("found")
    )
    off = sql.abs(sql.col("found") / sql.col("subscriptions") - 1)
    right = (sql.col("gain") > 0) == (sql.col("at") < 1)
    return [
        closed.join(simulated, by, "left").agg(
            sql.count("subscriptions").alias("crossings"),
            sql.max(sql.when(first, sql.col("subscriptions"))).alias("crossing"),
            sql.max(sql.when(first, sql.col("found"))).alias("crossing_simulated"),
            sql.max(off).alias("crossing_off"),
        ),
        rows.where("at > 0").agg(sql.avg(right.cast("int")).alias("sides")),
    ]


def _case_facts(cases: DataFrame) -> DataFrame:
    names = ("phases", "clock", "unsubscription", "cover", "merge", "ids", "filter", "flag")
    return cases.agg(
        *(
            sql.max(sql.when(sql.col("case") == name, sql.col(rule))).alias(f"{name}_{rule}")
            for name in names
            for rule in ("ours", "printed")
        ),
        sql.sum("ours").alias("cases_ours"),
    )


def healing_facts(rows: DataFrame) -> DataFrame:
    """The worst stabilization over its bound, by strategy, and the share that stabilizes."""
    never = sql.lit(float("inf"))  # also what became legitimate and did not stay so
    over = sql.when(sql.col("healed"), sql.col("intervals") / sql.col("bound")).otherwise(never)
    return rows.agg(
        *(
            sql.max(sql.when(sql.col("strategy") == name, over)).alias(f"worst_{name}")
            for name in ("flooding", "simple", "identity", "covering", "merging")
        ),
        sql.max(over).alias("worst"),
        sql.avg(sql.col("healed").cast("int")).alias("healed"),
    )


def _delivery_facts(rows: DataFrame) -> DataFrame:
    safety = sql.col("duplicated") + sql.col("unpublished") + sql.col("unwanted")

    def after(start: str, value: Column) -> Column:
        return sql.sum(sql.when(sql.col("start") == start, value))

    return rows.agg(
        *(
            after("legitimate", sql.col(name)).alias(name)
            for name in ("duplicated", "unpublished", "unwanted", "missed")
        ),
        after("corrupt", safety).alias("unsafe_later"),
        after("corrupt", sql.col("missed")).alias("missed_later"),
        sql.min("delivered").alias("delivered"),
    )
