"""From the rows of the sweeps to the tables of the study of the tree over a DHT."""

from collections.abc import Mapping, Sequence

import pyspark.sql.functions as sql
from pyspark.sql import Column, DataFrame, SparkSession

from planaria.spark.metrics import means, percentiles, shares
from planaria.studies.study import CHECKS, CLAIMS, LITERAL, Rows
from planaria.studies.verdicts import Check, Claim, checks, claims, literal, settle

HOSTS_MAX = 120  # of the paper's networks

CLAIMED = (
    Claim("2.2: lookup hops over log2 N + 1 ('order of the logarithm')", 1, "<=", "hops"),
    Claim("3: keysets are intervals that share out all keys: share of host sets", 1, "=", "owned"),
    Claim(
        "3.1: a host sits at exactly one node: share of host sets, key 0 in the DHT",
        *(1, "=", "set_trees", "printed_set_trees"),
    ),
    Claim(
        "3.2: the property of the tree structure bounds the degree (binary: 3)",
        *(3, "<=", "set_degree", "property_degree"),
    ),
    Claim(
        "3.3, Def. 2: share of networks in which two topmost keys are equally deep", 0, "=", "tied"
    ),
    Claim("3.4: one change at a time: cases that end wrong", 0, "=", "amended_1", "printed_1"),
    Claim("3.4: two changes at once: cases that end wrong", 0, "=", "amended_2", "printed_2"),
    Claim("3.5: links of Fig. 2(a) that are there, both ends counted", 8, "=", "drawn_start"),
    Claim("3.5: topmost key of h5 after h4 joined", 6, "=", "h5_topmost", "h5_printed"),
    Claim("3.5: links that h5 and h9 drop when h4 joins", 0, "=", "links_dropped"),
    Claim(
        "3.5: links of the six hosts after h4 joined (a tree has five)",
        *(5, "=", "links_joined", "links_kept"),
    ),
    Claim("3.5: of h11, h13, h15, how many the join of h4 affects", 0, "=", "affected"),
    Claim("3.5: topmost key of h15 after h13 failed", 12, "=", "h15_topmost"),
    Claim("3.5: links of Fig. 2(c) that are there, both ends counted", 8, "=", "drawn_failed"),
    Claim(
        "3.6: both ends agree, on a tree: share of networks after churn",
        *(1, "=", "churn_trees", "printed_trees"),
    ),
    Claim(
        "3.6: binary reference tree: most neighbours, all host sets",
        *(3, "<=", "set_degree", "printed_set_degree"),
    ),
    Claim(
        "3.6: degree four, hosts 5 to 10 on 12 keys: most neighbours",
        *(4, "<=", "wide_degree"),
    ),
    Claim(
        "3.6: larger degrees: share of hosts within it ('high probability', read as 0.95)",
        *(0.95, ">=", "wide_hosts"),
    ),
    Claim(
        "3.6: larger degrees: share of networks of 120 hosts within it (read as 0.95)",
        *(0.95, ">=", "wide_networks"),
    ),
    Claim(
        "4: over a live DHT, joins, leaves and crashes end in the tree: share of trials",
        *(1, "=", "live_trees"),
    ),
    Claim("Fig. 3: most neighbours of a host after churn", 3, "<=", "churn_degree"),
    Claim("Fig. 3: hosts with one or three neighbours, least share over N", 0.5, ">", "ends"),
    Claim(
        "Fig. 3: hosts with two neighbours at 120 hosts, as in an ideal balanced tree (2/N)",
        *("two_ideal", "<=", "two"),
    ),
    Claim(
        "Fig. 3: depth over that of an ideal balanced tree ('very close', read as 2)",
        *(2, "<=", "depth", "path_ratio"),
    ),
    Claim("Fig. 4: average area of a join, at least two", 2, ">=", "join", "join_with"),
    Claim("Fig. 4: average area of a join, at most three", 3, "<=", "join", "join_with"),
    Claim("Fig. 4: average area of a leave, at least two", 2, ">=", "leave", "leave_with"),
    Claim("Fig. 4: average area of a leave, at most three", 3, "<=", "leave", "leave_with"),
    Claim(
        "Fig. 4: area over the ideal one, host and neighbours ('very close', read as 1.25)",
        *(1.25, "<=", "over_ideal"),
    ),
    Claim(
        "Fig. 4: area with most hosts over area with fewest ('very low', read as 1.5)",
        *(1.5, "<=", "growth"),
    ),
)
CHECKED = (
    Check("most lookups of a search on small key spaces, all host sets", "set_lookups", "<=", 6),
    Check("most lookups of a search, any length of keys", "lookups", "<=", 6),
    Check("host sets on which search and definitions differ", "different", "=", 0),
    Check("two changes at once that end wrong, with the amendment", "amended_2", "=", 0),
    Check("share of networks that are trees at both ends after churn", "churn_trees", "=", 1),
    Check("share of live trials that heal within 200 intervals and stay so", "healed", "=", 1),
    Check("most neighbours of a host in live trials", "live_degree", "<=", 3),
    Check("most neighbours of a host among thousands, 160-bit keys", "large_degree", "<=", 3),
    Check("lookup hops over log2 N + 1 in live trials", "hops", "<=", 1),
)

PROMISED: Mapping[str, Sequence[str]] = {
    "figure3": ("hosts", "degree", "fraction", "low", "high"),
    "figure4": ("hosts", "change", "counting", "area", "low", "high"),
    "ideal": ("hosts", "change", "area", "ideal"),
    "example": ("step", "host", "topmost", "parent", "neighbours"),
    "lookups": ("bits", "ours", "ours_max", "printed", "printed_max"),
    "wide": ("degree", "bits", "within", "networks", "low", "high", "runs"),
    "recovery": ("start", "nemesis", "n", "p50", "p99", "max", "runs"),
    "claims": CLAIMS,
    "literal": LITERAL,
    "checks": CHECKS,
}


def tables(spark: SparkSession, rows: Rows) -> dict[str, DataFrame]:
    """The promised tables."""
    facts = settle(spark, *_facts(rows))
    churn, lookups, wide = rows["churn"], rows["lookups"], rows["wide"]
    kept = shares(wide, ["degree", "bits"], "kept").withColumnRenamed("share", "networks")
    within = means(wide, ["degree", "bits"], "within").select(
        "degree", "bits", sql.col("mean").alias("within")
    )
    return {
        "figure3": figure3(churn),
        "figure4": figure4(churn),
        "ideal": ideal(churn),
        "example": rows["example"].select(*PROMISED["example"]).orderBy(sql.desc("step"), "host"),
        "lookups": lookups.groupBy("bits")
        .agg(
            sql.avg("ours").alias("ours"),
            sql.max("ours_max").alias("ours_max"),
            sql.avg("printed").alias("printed"),
            sql.max("printed_max").alias("printed_max"),
        )
        .orderBy("bits"),
        "wide": within.join(kept, ["degree", "bits"])
        .select(*PROMISED["wide"])
        .orderBy("degree", "bits"),
        "recovery": percentiles(rows["live"], ["start", "nemesis", "n"], "intervals")
        .select(*PROMISED["recovery"])
        .orderBy("start", "nemesis", "n"),
        "claims": claims(facts, CLAIMED),
        "literal": literal(facts, CLAIMED),
        "checks": checks(facts, CHECKED),
    }


def figure3(churn: DataFrame) -> DataFrame:
    """The share of hosts with each number of neighbours."""
    each = churn.select(
        "hosts",
        sql.explode(
            sql.create_map(*(sql.lit(1), "one"), *(sql.lit(2), "two"), *(sql.lit(3), "three"))
        ).alias("degree", "share"),
    )
    return (
        means(each, ["hosts", "degree"], "share")
        .select(
            sql.col("hosts").cast("long"),
            sql.col("degree").cast("long"),
            sql.col("mean").alias("fraction"),
            "low",
            "high",
        )
        .orderBy("hosts", "degree")
    )


def figure4(churn: DataFrame) -> DataFrame:
    """Hosts in the reconfiguration area of a change, with and without the host itself."""
    each = _areas(churn).select(
        "hosts",
        "change",
        sql.explode(
            sql.create_map(
                *(sql.lit("with_host"), sql.col("area") + 1),
                *(sql.lit("without_host"), "area"),
            )
        ).alias("counting", "size"),
    )
    return (
        means(each, ["hosts", "change", "counting"], "size")
        .select("hosts", "change", "counting", sql.col("mean").alias("area"), "low", "high")
        .orderBy("hosts", "change", "counting")
    )


def ideal(churn: DataFrame) -> DataFrame:
    """The area beside the ideal one, which is the host's neighbours; both without the host."""
    return (
        _areas(churn)
        .groupBy("hosts", "change")
        .agg(sql.avg("area").alias("area"), sql.avg("ideal").alias("ideal"))
        .orderBy("hosts", "change")
    )


def _areas(churn: DataFrame) -> DataFrame:
    """A row for each network and kind of change."""
    kinds = [
        churn.select(
            "hosts",
            sql.lit(kind).alias("change"),
            sql.col(kind).alias("area"),
            sql.col(f"{kind}_ideal").alias("ideal"),
        )
        for kind in ("join", "leave")
    ]
    return kinds[0].union(kinds[1])


def _facts(rows: Rows) -> list[DataFrame]:
    sets, wide, depths, live = rows["sets"], rows["wide"], rows["depths"], rows["live"]
    return [
        *_churn_facts(rows["churn"]),
        _example_facts(rows["example"]),
        sets.agg(
            (sql.sum("owned") / sql.sum("sets")).alias("owned"),
            (sql.sum("trees") / sql.sum("sets")).alias("set_trees"),
            (sql.sum("printed_trees") / sql.sum("sets")).alias("printed_set_trees"),
            sql.sum("different").alias("different"),
            sql.max("degree_max").alias("set_degree"),
            sql.max("printed_degree_max").alias("printed_set_degree"),
            sql.max("lookups_max").alias("set_lookups"),
        ),
        _together_facts(rows["together"]),
        rows["cases"].select(
            "property_degree",
            "wide_degree",
            "links_dropped",
            "links_kept",
            (sql.col("path_depth") / sql.col("path_ideal")).alias("path_ratio"),
        ),
        wide.groupBy("degree", "bits")
        .agg(sql.avg("within").alias("of_hosts"), sql.avg(sql.col("kept").cast("int")).alias("all"))
        .agg(sql.min("of_hosts").alias("wide_hosts"), sql.min("all").alias("wide_networks")),
        rows["lookups"].agg(sql.max("ours_max").alias("lookups")),
        depths.agg(
            sql.avg(sql.col("depth") / sql.col("ideal")).alias("depth"),
            sql.max("degree_max").alias("large_degree"),
        ),
        live.agg(
            sql.avg(sql.col("tree").cast("int")).alias("live_trees"),
            sql.avg(sql.col("healed").cast("int")).alias("healed"),
            sql.max("degree_max").alias("live_degree"),
            sql.max("hops").alias("hops"),
        ),
    ]


def _together_facts(changes: DataFrame) -> DataFrame:
    """Cases that end wrong, of one change at a time and of two."""
    return changes.agg(
        *(
            sql.sum(sql.when(sql.col("together") == number, sql.col(rule))).alias(
                f"{rule}_{number}"
            )
            for rule in ("amended", "printed")
            for number in (1, 2)
        )
    )


def _churn_facts(churn: DataFrame) -> list[DataFrame]:
    area = sql.col("join") + sql.col("leave")
    ideal = sql.col("join_ideal") + sql.col("leave_ideal")
    by_hosts = churn.groupBy("hosts").agg(
        sql.avg(sql.col("one") + sql.col("three")).alias("ends"),
        sql.avg("two").alias("two"),
        sql.avg(area).alias("area"),
    )
    return [
        churn.agg(
            sql.avg(sql.col("tree").cast("int")).alias("churn_trees"),
            sql.avg(sql.col("printed_tree").cast("int")).alias("printed_trees"),
            sql.avg(sql.col("tied").cast("int")).alias("tied"),
            sql.max("degree_max").alias("churn_degree"),
            sql.avg("join").alias("join"),
            sql.avg("leave").alias("leave"),
            (sql.avg("join") + 1).alias("join_with"),
            (sql.avg("leave") + 1).alias("leave_with"),
            (sql.sum(area + 2) / sql.sum(ideal + 2)).alias("over_ideal"),  # with the host itself
        ),
        by_hosts.agg(
            sql.min("ends").alias("ends"),
            sql.min(sql.when(sql.col("hosts") == HOSTS_MAX, sql.col("two"))).alias("two"),
            sql.lit(2 / HOSTS_MAX).alias("two_ideal"),
            (sql.max_by("area", "hosts") / sql.min_by("area", "hosts")).alias("growth"),
        ),
    ]


def _example_facts(example: DataFrame) -> DataFrame:
    """The steps of section 3.5 beside each other."""

    def at(step: str, host: int, column: str) -> Column:
        here = (sql.col("step") == step) & (sql.col("host") == host)
        return sql.max(sql.when(here, sql.col(column)))

    def over(step: str, column: str) -> Column:
        return sql.sum(sql.when(sql.col("step") == step, sql.col(column)))

    changed = [
        (at("start", host, "neighbours") != at("h4 joined", host, "neighbours")).cast("int")
        for host in (11, 13, 15)
    ]
    return example.agg(
        over("start", "drawn").alias("drawn_start"),
        over("h13 failed", "drawn").alias("drawn_failed"),
        at("h4 joined", 5, "topmost").alias("h5_topmost"),
        at("h4 joined", 5, "printed_topmost").alias("h5_printed"),
        at("h13 failed", 15, "topmost").alias("h15_topmost"),
        (over("h4 joined", "links") / 2).alias("links_joined"),
        (changed[0] + changed[1] + changed[2]).alias("affected"),
    )
