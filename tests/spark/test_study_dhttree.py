"""The study of the tree over a DHT: its cells, its tables, its verdicts, its page."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from planaria.spark.grid import Cell
from planaria.studies.dhttree.study import STUDY
from planaria.studies.dhttree.tables import figure3, figure4, ideal
from planaria.studies.study import Figure, Prose, Shown
from planaria.studies.verdicts import Check, Claim, checks, claims, literal, settle
from study_lab import made, rows_of

pytest_plugins = ("spark_session",)

SMALL: Mapping[str, Sequence[Cell]] = {
    "churn": [
        Cell({"hosts": n, "bits": 8, "changes": 3}, seed) for n in (10, 120) for seed in (0, 1)
    ],
    "sets": [Cell({"bits": 2, "part": part, "parts": 2}, 0) for part in (0, 1)],
    "together": [Cell({"changed": changed, "size": 3}, 0) for changed in ("4", "4 8")],
    "wide": [Cell({"degree": 4, "bits": 8, "hosts": 20}, seed) for seed in (0, 1)],
    "lookups": [Cell({"bits": bits, "hosts": 10}, 0) for bits in (8, 160)],
    "depths": [Cell({"hosts": 30}, 0)],
    "live": [Cell({"start": "legitimate", "nemesis": "crash", "n": 6}, 0)],
}


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, DataFrame]:
    quick = {it.name: it.cells for it in STUDY.experiments("quick")}
    return rows_of(spark, STUDY, {**quick, **SMALL})


@pytest.fixture(scope="module")
def tables(spark: SparkSession, rows: dict[str, DataFrame]) -> dict[str, list[dict[str, Any]]]:
    return made(spark, STUDY, rows)


def test_tables_of_the_tree_are_those_promised_in_the_issue() -> None:
    assert STUDY.promised["figure3"] == ("hosts", "degree", "fraction", "low", "high")
    assert STUDY.promised["figure4"] == ("hosts", "change", "counting", "area", "low", "high")
    assert STUDY.promised["claims"] == ("claim", "paper", "measured", "holds")


def test_no_table_of_the_tree_is_empty_and_our_checks_hold(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    assert sorted(tables) == sorted(STUDY.promised)
    assert all(tables.values())
    assert [row for row in tables["checks"] if not row["holds"]] == []
    found = {row["claim"]: row for row in tables["claims"]}
    assert {name for name, row in found.items() if name.startswith("3.5") and not row["holds"]} == {
        "3.5: topmost key of h5 after h4 joined",
        "3.5: links that h5 and h9 drop when h4 joins",
    }
    printed = {row["claim"]: row for row in tables["literal"]}
    assert set(printed) <= set(found)
    assert not printed["3.5: links of the six hosts after h4 joined (a tree has five)"]["holds"]
    degree = "3.2: the property of the tree structure bounds the degree (binary: 3)"
    assert (printed[degree]["literal"], printed[degree]["holds"]) == (4.0, False)


def test_page_of_the_tree_shows_every_figure_and_only_tables_that_exist(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    blocks = STUDY.page(tables)
    assert [it.name for it in blocks if isinstance(it, Figure)] == [
        "figure2",
        "figure3",
        "figure4-join",
        "figure4-leave",
        "lookups",
    ]
    assert all(it.table in tables for it in blocks if isinstance(it, Shown))
    assert all("nan" not in it.html for it in blocks if isinstance(it, Prose))


def churned(spark: SparkSession, rows: list[tuple[float, ...]]) -> DataFrame:
    names = ("hosts", "one", "two", "three", "join", "join_ideal", "leave", "leave_ideal")
    data = [dict(zip(names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pyarrow.Table.from_pylist(data))


def test_figures_3_and_4_are_means_over_networks(spark: SparkSession) -> None:
    """Two networks of ten hosts; Student's interval of two samples is 12.7 times half their gap."""
    churn = churned(
        spark, [(10, 0.4, 0.3, 0.3, 2.0, 2.0, 3.0, 2.0), (10, 0.4, 0.5, 0.1, 3.0, 2.0, 3.0, 1.0)]
    )
    wide, t = 0.1, 12.7062
    expected = [
        (10, 1, 0.4, 0.4, 0.4),
        (10, 2, 0.4, 0.4 - wide * t, 0.4 + wide * t),
        (10, 3, 0.2, 0.2 - wide * t, 0.2 + wide * t),
    ]
    schema = "hosts bigint, degree bigint, fraction double, low double, high double"
    assertDataFrameEqual(
        figure3(churn),
        spark.createDataFrame(expected, schema),
        checkRowOrder=True,
        ignoreNullable=True,
        rtol=1e-3,
    )
    areas = [
        (10, "join", "with_host", 3.5, 3.5 - 0.5 * t, 3.5 + 0.5 * t),
        (10, "join", "without_host", 2.5, 2.5 - 0.5 * t, 2.5 + 0.5 * t),
        (10, "leave", "with_host", 4.0, 4.0, 4.0),
        (10, "leave", "without_host", 3.0, 3.0, 3.0),
    ]
    schema = "hosts bigint, change string, counting string, area double, low double, high double"
    assertDataFrameEqual(
        figure4(churn),
        spark.createDataFrame(areas, schema),
        checkRowOrder=True,
        ignoreNullable=True,
        rtol=1e-3,
    )
    assert [tuple(row) for row in ideal(churn).collect()] == [
        (10, "join", 2.5, 2.0),
        (10, "leave", 3.0, 1.5),
    ]


def test_a_verdict_is_computed_from_its_figures_and_a_missing_one_is_no(
    spark: SparkSession,
) -> None:
    one = spark.createDataFrame([(3, 4)], "ours int, printed int")
    other = spark.createDataFrame([(None, 2.0)], "unknown double, bound double")
    empty = spark.createDataFrame([], "lost double")  # every simulation that it needs raised
    facts = settle(spark, one, empty, other)
    asked = [
        Claim("at most three", 3, "<=", "ours", "printed"),
        Claim("less than three", 3, "<", "ours"),
        Claim("about 3.1", 3.1, "=", "ours", "printed", within=0.05),
        Claim("exactly 3.1", 3.1, "=", "ours"),
        Claim("at most the bound", "bound", "<=", "ours"),
        Claim("never seen", 1, ">=", "unknown"),
        Claim("lost", 1, ">=", "lost"),
    ]
    assert [(row.claim, row.holds) for row in claims(facts, asked).collect()] == [
        ("at most three", True),
        ("less than three", False),
        ("about 3.1", True),
        ("exactly 3.1", False),
        ("at most the bound", False),
        ("never seen", False),
        ("lost", False),
    ]
    assert [tuple(row) for row in literal(facts, asked).collect()] == [
        ("at most three", 4.0, False),
        ("about 3.1", 4.0, False),
    ]
    promised = [Check("kept", "ours", "<=", 3), Check("broken", "ours", ">", "printed")]
    assert [tuple(row) for row in checks(facts, promised).collect()] == [
        ("kept", 3.0, 3.0, True),
        ("broken", 3.0, 4.0, False),
    ]
