"""The study of daMulticast: its tables from rows made by hand, and all of it once, in small."""

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from planaria.core.chance import stream
from planaria.studies.damulticast.claims import Check, Claim
from planaria.studies.damulticast.literal import Network
from planaria.studies.damulticast.quantities import (
    agreement,
    averaged,
    of_figure10,
    of_scaling,
    reaches,
    shared,
    summed_up,
)
from planaria.studies.damulticast.study import (
    STUDY,
    Extent,
    approaches,
    experiments,
    figure8,
    figure9,
    reliability,
    sweeps,
)
from planaria.studies.damulticast.verdicts import checked, judged
from planaria.studies.reproduce import promised
from planaria.studies.study import SCALES, Figure
from study_lab import ran

pytest_plugins = ("spark_session",)

SMALL = Extent("10,11,20", 3, 6, 2, [("stillborn", 0.0), ("observer", 0.3)], 2, 1, 10, [0.9, 0.99])
FOUND = "quantity string, value double, low double, high double, runs bigint"


def test_tables_have_the_names_and_columns_that_other_programs_read() -> None:
    assert {name: list(columns) for name, columns in STUDY.promised.items()} == {
        "figure8": ["failed", "group", "sent", "low", "high", "runs"],
        "figure9": ["failed", "link", "sent", "received", "low", "high", "runs"],
        "figure10": ["failed", "group", "meaning", "value", "low", "high", "runs"],
        "figure11": ["failed", "group", "meaning", "value", "low", "high", "runs"],
        "baselines": ["algorithm", "event_group", "sent", "parasites", "memory"],
        "claims": ["claim", "paper", "measured", "holds"],
        "literal": ["claim", "literal", "holds"],
        "checks": ["check", "measured", "bound", "holds"],
    }


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_fails_from_none_to_all(scale: str) -> None:
    [events] = [it for it in experiments(scale) if it.name == "events"]
    shares = {cell.parameters["failed"] for cell in events.cells}
    assert sorted(map(float, shares)) == [tenth / 10 for tenth in range(11)]


def test_the_paper_scale_has_the_setting_of_section_vii() -> None:
    for it in experiments("paper"):
        sizes = {cell.parameters.get("sizes", "10,100,1000") for cell in it.cells}
        assert sizes <= {"10,100,1000", "1000", "3,8,20"}


def hand_made(spark: SparkSession) -> DataFrame:
    """Four events over two groups: members, alive, sent, sent up, received there, reached."""
    top, bottom = ["members", "alive", "sent", "up_sent", "up_received", "reached"], []
    names = [f"T{level}_{name}" for level in range(2) for name in top]
    bottom = [
        (0.0, "stillborn", 2, 2, 2, 0, 0, 2, 10, 10, 40, 3, 2, 10),
        (0.0, "stillborn", 2, 2, 0, 0, 0, 0, 10, 10, 36, 1, 0, 9),
        (1.0, "stillborn", 2, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0),
        (1.0, "stillborn", 2, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0),
    ]
    columns = ", ".join(f"{name} bigint" for name in names)
    return spark.createDataFrame(bottom, f"failed double, failures string, {columns}")


def test_figures_8_to_10_of_events_counted_by_hand(spark: SparkSession) -> None:
    events = reaches(hand_made(spark), ["failures", "failed"])
    half = 12.7062 * 2.0  # Student's t for two runs, times their standard error
    expected = [
        (0.0, "T1", 38.0, 38 - half, 38 + half, 2),
        (0.0, "T0", 1.0, 1 - half / 2, 1 + half / 2, 2),
        (1.0, "T1", 0.0, 0.0, 0.0, 2),
        (1.0, "T0", 0.0, 0.0, 0.0, 2),
    ]
    schema = "failed double, group string, sent double, low double, high double, runs bigint"
    wanted = spark.createDataFrame(expected, schema)
    found = promised(STUDY, "figure8", figure8(events))
    assertDataFrameEqual(found, wanted, checkRowOrder=True, ignoreNullable=True, rtol=1e-3)
    links = [(0.0, "T1->T0", 2.0, 1.0), (1.0, "T1->T0", 0.0, 0.0)]
    wanted = spark.createDataFrame(
        links, "failed double, link string, sent double, received double"
    )
    found = figure9(events).select("failed", "link", "sent", "received")
    assertDataFrameEqual(found, wanted, checkRowOrder=True, ignoreNullable=True)
    values = {
        (row.failed, row.group, row.meaning): row.value for row in reliability(events).collect()
    }
    assert values == {
        (0.0, "T1", "of_all"): 0.95, (0.0, "T1", "of_alive"): 0.95, (0.0, "T1", "p_all"): 0.5,
        (0.0, "T0", "of_all"): 0.5, (0.0, "T0", "of_alive"): 0.5, (0.0, "T0", "p_all"): 0.5,
        (1.0, "T1", "of_all"): 0.0, (1.0, "T1", "of_alive"): 1.0, (1.0, "T1", "p_all"): 1.0,
        (1.0, "T0", "of_all"): 0.0, (1.0, "T0", "of_alive"): 1.0, (1.0, "T0", "p_all"): 1.0,
    }  # fmt: skip


def test_approaches_are_averaged_over_lossy_runs_only(spark: SparkSession) -> None:
    data = [("x", "T1", 0.15, 10.0, 2.0, 7), ("x", "T1", 0.15, 20.0, 4.0, 7),
            ("x", "T1", 0.0, 99.0, 99.0, 7)]  # fmt: skip
    schema = "algorithm string, event_group string, loss double, sent double, parasites double, "
    rows = spark.createDataFrame(data, schema + "memory bigint")
    schema = "algorithm string, event_group string, sent double, parasites double, memory bigint"
    wanted = spark.createDataFrame([("x", "T1", 15.0, 3.0, 7)], schema)
    assertDataFrameEqual(approaches(rows), wanted, ignoreNullable=True)


RELATIONS: Sequence[tuple[str, float, bool]] = [
    ("at most", 1.9, False), ("at most", 2.1, True),
    ("at least", 4.1, False), ("at least", 3.9, True),
    ("equal", 1.9, False), ("equal", 3.9, True), ("equal", 4.1, False),
    ("less than", 3.9, False), ("less than", 4.1, True),
    ("more than", 2.1, False), ("more than", 1.9, True),
    ("within a tenth", 3.4, False), ("within a tenth", 3.2, True),
]  # fmt: skip


def test_a_claim_fails_when_the_interval_excludes_it(spark: SparkSession) -> None:
    """Measured is 3, between 2 and 4; the literal text gives 9 without error."""
    data = [("ours", 3.0, 2.0, 4.0, 5), ("text", 9.0, 9.0, 9.0, 1)]
    found = spark.createDataFrame(data, FOUND)
    stated = [Claim(f"{n}", it, paper, "ours") for n, (it, paper, _) in enumerate(RELATIONS)]
    stated.append(Claim("text", "equal", "text", "ours", "text"))
    rows = judged(spark, stated, found).collect()
    assert [row.claim for row in rows] == [it.claim for it in stated]
    assert [row.holds for row in rows] == [*[holds for _, _, holds in RELATIONS], False]
    assert (rows[-1].paper, rows[-1].value) == (9.0, 3.0)
    [row] = judged(spark, stated, found, literal=True).collect()
    assert (row.claim, row.value, row.holds) == ("text", 9.0, True)


def test_what_nobody_measured_does_not_hold(spark: SparkSession) -> None:
    found = spark.createDataFrame([("ours", 3.0, 2.0, 4.0, 5)], FOUND)
    stated = [Claim("a", "equal", "lost", "ours"), Claim("b", "at most", 3.0, "lost", "lost")]
    rows = judged(spark, stated, found).collect()
    assert [(row.paper, row.value, row.holds) for row in rows] == [
        (None, 3.0, False),
        (3.0, None, False),
    ]
    [row] = judged(spark, stated, found, literal=True).collect()
    assert (row.claim, row.value, row.holds) == ("b", None, False)
    [row] = checked(spark, [Check("c", "lost", 3.0)], found).collect()
    assert (row.measured, row.holds) == (None, False)


def test_a_check_fails_beyond_its_bound(spark: SparkSession) -> None:
    found = spark.createDataFrame([("ours", 3.0, 2.0, 4.0, 5)], FOUND)
    promises = [Check("kept", "ours", 3.0), Check("broken", "ours", 2.9)]
    rows = checked(spark, promises, found).collect()
    assert [(row.check, row.measured, row.holds) for row in rows] == [
        ("kept", 3.0, True),
        ("broken", 3.0, False),
    ]


def test_means_and_shares_are_told_apart(spark: SparkSession) -> None:
    data = [("a", 1, True), ("a", 3, False)]
    rows = spark.createDataFrame(data, "name string, count bigint, truth boolean")
    parts = [averaged(rows, rows.name, ["count"]), shared(rows, rows.name, ["truth"])]
    found = {row.quantity: row for row in summed_up(parts).collect()}
    assert (found["a count"].value, found["a truth"].value) == (2.0, 0.5)
    assert found["a count"].low < 0 < found["a truth"].low
    assert found["a truth"].runs == 2


def worst(frames: Sequence[DataFrame]) -> dict[str, float]:
    return {row.quantity: row.value for frame in frames for row in frame.collect()}


def test_nodes_and_chain_that_differ_from_the_arrays_are_seen(spark: SparkSession) -> None:
    """Arrays say .5 within .01; nodes .5 and .6; the chain .5 and, a standard error of .02, .6."""
    exact = "failures string, failed double, T1_of_all double, T1_deviation double, "
    exact += "T1_p_all double, T1_p_reached double"
    for other, far in ((0.5, False), (0.6, True)):
        data = [(f"{who} T1 of_all", 0.5, 0.49, 0.51, 400) for who in ["planaria observer 0.3"]]
        data.append(("nodes on T1 observer 0.3 T1 of_all", other, other - 0.01, other + 0.01, 4))
        data.append(("nodes on T0 observer 0.3 T1 of_all", 0.9, 0.9, 0.9, 4))  # another event
        data += [("corrected messages", 100.0, 100.0, 100.0, 1)]
        data += [("planaria stillborn 0.0 all messages", 101.0, 100.0, 102.0, 5)]
        chain = spark.createDataFrame([("observer", 0.3, other, 0.4, 0.5, 1.0)], exact)
        found = worst(agreement(spark.createDataFrame(data, FOUND), chain, "T1"))
        assert (found["nodes off"] > 1) == far
        assert (found["exact off"] > 1) == far
        assert found["messages off"] == pytest.approx(0.01)


@pytest.mark.parametrize(("tables", "far"), [(6, False), (400, True)])
def test_a_few_events_that_all_went_well_by_luck_are_no_disagreement(
    spark: SparkSession, tables: int, far: bool
) -> None:
    """At 0.973, as arrays found, 36 events all reach everybody in a third of all cases."""
    data = [
        ("planaria stillborn 0.0 T1 p_all", 0.973, 0.961, 0.981, 1000),
        ("nodes on T1 stillborn 0.0 T1 p_all", 1.0, 1.0, 1.0, tables),
    ]
    exact = "failures string, failed double, T1_of_all double, T1_deviation double, "
    chain = spark.createDataFrame([], exact + "T1_p_all double, T1_p_reached double")
    found = worst(agreement(spark.createDataFrame(data, FOUND), chain, "T1")[:1])
    assert (found["nodes off"] > 1) == far


def test_rises_and_upper_groups_that_are_better_off_are_seen(spark: SparkSession) -> None:
    shares = {(0.0, 1): 0.9, (0.1, 1): 0.8, (0.2, 1): 0.85, (0.0, 0): 0.7, (0.1, 0): 0.81}
    data = [
        (f"planaria stillborn {failed} T{level} of_all", value, value - 0.001, value + 0.001, 9)
        for (failed, level), value in shares.items()
    ]
    found = worst(of_figure10(spark.createDataFrame(data, FOUND), "T1"))
    assert found["figure10 rise"] == pytest.approx(0.05)
    assert found["figure10 excess"] == pytest.approx(0.01)


def test_growth_is_of_the_mean_at_the_largest_size_over_that_at_the_smallest(
    spark: SparkSession,
) -> None:
    """Two events each: 10 ln 10 and 3 times that; 100 ln 100 times 3 and times 5; S = 2 is out."""
    data = [(10, 23.02585), (10, 69.07755), (100, 1381.55106), (100, 2302.58509), (2, 1.0)]
    rows = spark.createDataFrame(data, "size bigint, sent double")
    found = worst(of_scaling(rows))
    assert found["scaling growth"] == pytest.approx(2.0)
    assert found["scaling share of the bound"] == pytest.approx(4 / (3 * 9))


def test_the_letter_elects_nearly_everybody_and_never_reaches_the_root_with_the_events_topic() -> (
    None
):
    root, middle, bottom = Network((10, 20, 60), stream(1, "a")).publish(own=True)
    assert bottom.intergroup_sent > 40  # 55 of 60 elect themselves, each sends to one on average
    assert (root.reached, middle.reached) == (10, 20)
    network = Network((10, 20, 60), stream(1, "a"))
    root, middle, bottom = network.publish(own=False)
    assert root.reached == middle.sent == 0 < middle.reached
    assert network.joined() == {"joined": 2}


@pytest.fixture(scope="module")
def small_rows(spark: SparkSession) -> dict[str, DataFrame]:
    """All of the study, in small."""
    small = {it.name: ran(it, STUDY, it.cells) for it in sweeps(SMALL)}
    return {name: spark.createDataFrame(table).cache() for name, table in small.items()}


def test_cells_that_all_raised_leave_claims_that_do_not_hold_and_a_page(
    spark: SparkSession, small_rows: dict[str, DataFrame]
) -> None:
    """No search as printed came to its end, and no run without loss."""
    links = small_rows["links"].where("reading != 'printed'")
    rows = {**small_rows, "links": links, "baselines": small_rows["baselines"].where("loss > 0")}
    tables = {
        name: promised(STUDY, name, table).toArrow().to_pylist()
        for name, table in STUDY.tables(spark, rows).items()
    }
    lost = [row["claim"] for row in tables["claims"] if row["measured"] is None]
    assert "VI-D: so it is if nothing is lost" in lost
    unread = [row["claim"] for row in tables["literal"] if row["literal"] is None]
    assert sum(claim.startswith("V-A, Fig.") for claim in unread) == 2
    assert not any(row["holds"] for row in tables["claims"] if row["claim"] in lost)
    assert not any(row["holds"] for row in tables["literal"] if row["claim"] in unread)
    assert STUDY.page(tables)


def test_a_small_study_fills_every_table_and_figure(
    spark: SparkSession, small_rows: dict[str, DataFrame]
) -> None:
    made = STUDY.tables(spark, small_rows)
    assert sorted(made) == sorted(STUDY.promised)
    tables = {}
    for name, table in made.items():
        tables[name] = promised(STUDY, name, table).toArrow().to_pylist()
        assert tables[name], name
        assert all(value is not None for row in tables[name] for value in row.values()), name
    [held] = [row for row in tables["claims"] if row["claim"].startswith("VI-E.2: a process")]
    assert held["measured"] == held["paper"] + 3  # z superprocesses beside the view of real nodes
    claims = [row["claim"] for row in tables["claims"]]
    assert len(set(claims)) == len(claims) > 60
    assert {row["claim"] for row in tables["literal"]} <= set(claims)
    assert len(tables["figure10"]) == 11 * 3 * 3
    blocks = STUDY.page(tables)
    figures = [block for block in blocks if isinstance(block, Figure)]
    assert {"figure8", "figure9", "figure10", "figure11"} <= {it.name for it in figures}
    assert all("<svg" in it.svg for it in figures)
