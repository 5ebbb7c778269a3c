"""The study of 'Data-Aware Multicast' (Baehni, Eugster, Guerraoui, 2003): section VI and VII."""

from collections.abc import Mapping, Sequence
from functools import reduce

import pyspark.sql.functions as sql
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from planaria.lab.gossip.baselines import APPROACHES
from planaria.spark.grid import Cell, Value, crossed
from planaria.spark.metrics import means, shares
from planaria.studies.damulticast import literal as letter
from planaria.studies.damulticast import runs as runs
from planaria.studies.damulticast.claims import (
    BROADCAST,
    HALF,
    OURS,
    SINGLE,
    TARGET,
    checks,
    claims,
)
from planaria.studies.damulticast.formulas import FORMULAS, OF_GROUP, formula
from planaria.studies.damulticast.page import page
from planaria.studies.damulticast.quantities import MEANINGS, quantities, reaches
from planaria.studies.damulticast.verdicts import checked, judged
from planaria.studies.study import CHECKS, CLAIMS, LITERAL, Experiment, Rows, Study

FAILED = [tenth / 10 for tenth in range(11)]
FAILURES = ["stillborn", "observer"]
RELIABILITY = ("failed", "group", "meaning", "value", "low", "high", "runs")


Axes = dict[str, Sequence[Value]]


class Extent(Struct, frozen=True):
    """How much is run: sizes of the groups, and seeds of each experiment."""

    sizes: str
    events: int  # at every share of failures
    surely: int  # where a probability near one is asked for: nobody failed
    nodes: int
    points: Sequence[tuple[str, float]]  # where real nodes are asked too
    letter: int
    few: int  # of what differs little from seed to seed
    largest: int
    targets: Sequence[float]


EXTENTS: Mapping[str, Extent] = {
    "quick": Extent(
        "10,100,1000", 60, 500, 5, [("stillborn", 0.0), ("stillborn", 0.5), ("observer", 0.3)],
        6, 5, 1000, [0.9, TARGET],
    ),
    "paper": Extent(
        "10,100,1000", 1000, 5000, 40,
        [*[("stillborn", share) for share in (0.0, 0.2, 0.5, 0.8)], ("observer", 0.3),
         ("observer", 0.6)],
        50, 60, 10_000, [0.9, TARGET, 0.999, 0.9999],
    ),
    "beyond": Extent(
        "10,100,1000,10000", 100, 1000, 6,
        [("stillborn", 0.0), ("stillborn", 0.5), ("observer", 0.3)],
        6, 30, 100_000, [0.9, TARGET, 0.999],
    ),
}  # fmt: skip


def experiments(scale: str) -> list[Experiment]:
    """The sweeps of the study."""
    return sweeps(EXTENTS[scale])


def sweeps(it: Extent) -> list[Experiment]:
    """The sweeps of an extent of any size."""
    counts = runs.columns_of(it.sizes, runs.COUNTS, "int64")
    means_of = runs.columns_of(it.sizes, runs.MEANS, "float64")
    chain = runs.columns_of(it.sizes, runs.PREDICTED, "float64")
    scaled = [size for size in (2, 3, 10, 100, 1000, 10_000, 100_000) if size <= it.largest]
    dialed = crossed({"sizes": [it.sizes], "target": list(it.targets)}, range(it.few))
    exact = crossed({"sizes": [it.sizes], "failures": FAILURES[1:], "failed": FAILED}, [0])
    supers = crossed({"supertopics": [1, 2]}, range(5 * it.few))
    healed = crossed({"sizes": ["3,8,20"], "start": ["corrupt"]}, range(it.few))
    return [
        Experiment("events", counts, runs.event, _events(it), 400),
        Experiment("literal", counts | letter.JOINED, letter.event, _letters(it), 10),
        Experiment("nodes", means_of, runs.nodes, _nodes(it), 2),
        Experiment("exact", chain, runs.exact, exact, 20),
        Experiment("baselines", runs.APPROACH, runs.approach, _baselines(it), 400),
        Experiment(
            "scaling", {"sent": "int64"}, runs.scaling, crossed({"size": scaled}, range(3)), 8
        ),
        Experiment("dials", runs.DIALED, runs.dials, dialed, 6),
        Experiment("healing", runs.HEALED, runs.healing, healed, 3),
        Experiment("links", letter.LINKED, letter.links, _links(it), 10),
        Experiment("inheritance", runs.INHERITED, runs.inheritance, supers, 30),
        Experiment(
            "formulas", {"printed": "float64", "corrected": "float64"}, formula, _formulas(it), 50
        ),
    ]


def _events(it: Extent) -> tuple[Cell, ...]:
    """Every share of failures; more events where nobody failed; the printed rules at two points."""
    grid: Axes = {
        "sizes": [it.sizes],
        "failures": FAILURES,
        "failed": FAILED,
        "reading": ["planaria"],
    }
    sure: Axes = grid | {"failures": ["stillborn"], "failed": [0.0]}
    printed: Axes = {"failures": ["stillborn"], "reading": ["printed"]}
    return (
        *crossed(grid, range(it.events)),
        *crossed(sure, range(it.events, it.surely)),
        *crossed(grid | printed | {"failed": [0.0]}, range(it.surely)),
        *crossed(grid | printed | {"failed": [HALF]}, range(max(200, it.events))),
    )


def _letters(it: Extent) -> tuple[Cell, ...]:
    return crossed({"sizes": [it.sizes], "topic": ["own", "event"]}, range(it.letter))


def _nodes(it: Extent) -> tuple[Cell, ...]:
    """The points to compare, and events on inner topics."""
    groups = runs.groups_of(it.sizes)
    cells: list[Cell] = []
    for failures, failed in it.points:
        point: Axes = {"sizes": [it.sizes], "failures": [failures], "failed": [failed]}
        cells += crossed(point | {"event_group": [groups[-1]]}, range(it.nodes))
    inner: Axes = {"sizes": [it.sizes], "failures": ["stillborn"], "failed": [0.0]}
    cells += crossed(inner | {"event_group": groups[:-1]}, range(2))
    return tuple(cells)


def _baselines(it: Extent) -> tuple[Cell, ...]:
    """All approaches on all topics; often at the bottom, with and without losses; one topic."""
    groups = runs.groups_of(it.sizes)
    grid: Axes = {
        "sizes": [it.sizes],
        "algorithm": list(APPROACHES),
        "event_group": groups[:-1],
        "loss": [runs.LOSS],
    }
    bottom: Axes = grid | {"event_group": groups[-1:], "loss": [runs.LOSS, 0.0]}
    alone: Axes = {"sizes": [SINGLE], "algorithm": [OURS, BROADCAST], "event_group": ["T0"]}
    return (
        *crossed(grid, range(max(20, it.events // 3))),
        *crossed(bottom, range(it.surely // 2)),
        *crossed(grid | alone | {"loss": [runs.LOSS, 0.0]}, range(it.surely // 2)),
    )


def _links(it: Extent) -> tuple[Cell, ...]:
    grid = {"reading": ["planaria", "printed"], "start": ["nothing", "dead"]}
    only_start = {"reading": ["start"], "start": ["nothing"]}
    return (*crossed(grid, range(it.few)), *crossed(only_start, range(it.few)))


def _formulas(it: Extent) -> tuple[Cell, ...]:
    of_groups = [f"{name} {group}" for name in OF_GROUP for group in runs.groups_of(it.sizes)]
    return crossed({"sizes": [it.sizes], "formula": [*FORMULAS, *of_groups]}, [0])


def tables(spark: SparkSession, rows: Rows) -> dict[str, DataFrame]:
    """The promised tables."""
    sizes = str(rows["events"].select("sizes").limit(1).collect()[0]["sizes"])
    found = quantities(rows, runs.groups_of(sizes)[-1])
    stated = claims(sizes)
    ours = rows["events"].where("reading = 'planaria'")
    events = reaches(ours, ["failures", "failed"])
    still, observed = (events.where(sql.col("failures") == it) for it in FAILURES)
    said = judged(spark, stated, found).withColumn("measured", sql.col("value"))
    literal = judged(spark, stated, found, literal=True).withColumn("literal", sql.col("value"))
    return {
        "figure8": figure8(still),
        "figure9": figure9(still),
        "figure10": reliability(still),
        "figure11": reliability(observed),
        "baselines": approaches(rows["baselines"].where(sql.col("sizes") == sizes)),
        "claims": said,
        "literal": literal,
        "checks": checked(spark, checks(), found),
    }


def figure8(events: DataFrame) -> DataFrame:
    """Events sent within each group."""
    found = means(events, ["failed", "group"], "sent").withColumnRenamed("mean", "sent")
    return found.orderBy("failed", sql.desc("group"))


def figure9(events: DataFrame) -> DataFrame:
    """Events sent between groups, with the interval of that, and those of them received."""
    level = sql.substring("group", 2, 2).cast("int")
    link = sql.concat("group", sql.lit("->T"), (level - 1).cast("string"))
    below = events.where("group != 'T0'").withColumn("link", link)
    sent = means(below, ["failed", "link"], "up_sent").withColumnRenamed("mean", "sent")
    received = below.groupBy("failed", "link").agg(sql.avg("up_received").alias("received"))
    return sent.join(received, ["failed", "link"]).orderBy("failed", sql.desc("link"))


def reliability(events: DataFrame) -> DataFrame:
    """The three meanings that Figures 10 and 11 may have."""
    by = ["failed", "group"]
    parts = [
        means(events, by, name).withColumns({"value": sql.col("mean"), "meaning": sql.lit(name)})
        for name in MEANINGS[:2]
    ]
    p_all = shares(events, by, "p_all")
    parts.append(p_all.withColumns({"value": sql.col("share"), "meaning": sql.lit("p_all")}))
    found = reduce(DataFrame.union, [part.select(*RELIABILITY) for part in parts])
    return found.orderBy("failed", sql.desc("group"), "meaning")


def approaches(rows: DataFrame) -> DataFrame:
    """The alternatives of section VI-E, over links that lose as in section VII."""
    found = (
        rows.where(sql.col("loss") == runs.LOSS)
        .groupBy("algorithm", "event_group")
        .agg(
            sql.avg("sent").alias("sent"),
            sql.avg("parasites").alias("parasites"),
            sql.max("memory").alias("memory"),
        )
    )
    return found.orderBy(sql.desc("event_group"), "algorithm")


STUDY = Study(
    name="damulticast",
    title="daMulticast: hierarchical topics by gossip",
    paper="S. Baehni, P. Th. Eugster, R. Guerraoui: Data-Aware Multicast. "
    "Technical Report IC/2003/73, EPFL, 2003",
    promised={
        "figure8": ("failed", "group", "sent", "low", "high", "runs"),
        "figure9": ("failed", "link", "sent", "received", "low", "high", "runs"),
        "figure10": RELIABILITY,
        "figure11": RELIABILITY,
        "baselines": ("algorithm", "event_group", "sent", "parasites", "memory"),
        "claims": CLAIMS,
        "literal": LITERAL,
        "checks": CHECKS,
    },
    experiments=experiments,
    tables=tables,
    page=page,
)
