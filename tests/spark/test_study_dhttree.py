"""The study of the tree over a DHT: its cells, its tables, its verdicts, its page."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planaria.spark.grid import Cell
from planaria.studies.dhttree.facts import SUMMED, figure3, figure4, ideal
from planaria.studies.dhttree.study import ASKED, STUDY
from study_lab import found_in, made, page, rows_of, summary

pytest_plugins = ("spark_session",)

SMALL: Mapping[str, Sequence[Cell]] = {
    "churn": [
        Cell({"hosts": n, "bits": 8, "changes": 3}, seed) for n in (10, 120) for seed in (0, 1)
    ],
    "wide_churn": [
        Cell({"degree": degree, "hosts": n, "bits": 8, "changes": 1}, seed)
        for degree in (4, 5, 6)
        for n in (10, 20)
        for seed in (0, 1)
    ],
    "sets": [Cell({"bits": 2, "part": part, "parts": 2}, 0) for part in (0, 1)],
    "together": [Cell({"changed": changed, "size": 3}, 0) for changed in ("4", "4 8")],
    "wide": [Cell({"degree": 4, "bits": 8, "hosts": 20}, seed) for seed in (0, 1)],
    "lookups": [Cell({"bits": bits, "hosts": 10}, 0) for bits in (8, 160)],
    "depths": [Cell({"hosts": 30}, 0)],
    "live": [Cell({"start": "legitimate", "nemesis": "crash", "n": 6}, 0)],
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    quick = {it.name: it.cells for it in STUDY.experiments("quick")}
    return made(STUDY, found_in(STUDY, rows_of(spark, STUDY, {**quick, **SMALL})))


def test_tables_of_the_tree_are_those_promised_in_the_issue() -> None:
    promised = {name: list(columns) for name, columns in STUDY.promised.items()}
    assert promised["figure3"] == ["hosts", "degree", "fraction", "low", "high"]
    assert promised["figure4"] == ["hosts", "change", "counting", "area", "low", "high"]
    assert promised["claims"][:4] == ["claim", "paper", "measured", "holds"]


def test_no_table_of_the_tree_is_empty_and_our_checks_hold(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    assert all(tables.values())
    assert [row for row in tables["checks"] if row["holds"] != "yes"] == []
    found = {row["claim"]: row for row in tables["claims"]}
    assert [row for row in found.values() if row["measured"] is None] == []
    slips = {name for name, row in found.items() if name.startswith("3.5") and row["holds"] == "no"}
    assert slips == {
        "3.5: topmost key of h5 after h4 joined",
        "3.5: links that h5 and h9 drop when h4 joins ('no further modifications')",
    }
    assert {found[name]["meaning"] for name in slips} == {"slip"}
    printed = {row["claim"]: row for row in tables["literal"]}
    assert set(printed) <= set(found)
    six = "3.5: links of the six hosts after h4 joined (a tree has five)"
    assert printed[six]["holds"] == "no"
    degree = "3.2: the property of the tree structure bounds the degree (binary: 3)"
    assert (printed[degree]["literal"], printed[degree]["holds"]) == (4.0, "no")
    wide = [row["degree"] for row in tables["wide_area"] if row["change"] == "join"]
    assert wide == [4, 4, 5, 5, 6, 6]


def test_page_of_the_tree_shows_every_figure(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert list(STUDY.figures(tables)) == [
        "figure2",
        "figure3",
        "figure4-join",
        "figure4-leave",
        "lookups",
    ]
    text = page(STUDY, tables)
    assert text.count("<figure") == 5
    assert "nan" not in text.partition("<figure")[0]


CHURN = (
    "hosts bigint, one double, two double, three double, join double, join_ideal double, "
    "leave double, leave_ideal double, degree_max bigint, tree boolean, printed_tree boolean, "
    "tied boolean"
)


def test_figures_3_and_4_are_means_over_networks(spark: SparkSession) -> None:
    """Two networks of ten hosts; Student's interval of two samples is 12.7 times half their gap.

    Shares stay within 0 and 1, and two networks that are alike prove nothing.
    """
    rest = (3, True, True, False)
    data = [
        (10, 0.4, 0.3, 0.3, 2.0, 2.0, 3.0, 2.0, *rest),
        (10, 0.4, 0.31, 0.29, 3.0, 2.0, 3.0, 1.0, *rest),
    ]
    churn = summary(spark, data, CHURN, SUMMED["churn"])
    t = 12.7062
    found = [(it["degree"], it["fraction"], it["low"], it["high"]) for it in figure3(churn)]
    assert found == [
        (1, pytest.approx(0.4), 0.0, 1.0),
        (
            2,
            pytest.approx(0.305),
            pytest.approx(0.305 - 0.005 * t),
            pytest.approx(0.305 + 0.005 * t),
        ),
        (
            3,
            pytest.approx(0.295),
            pytest.approx(0.295 - 0.005 * t),
            pytest.approx(0.295 + 0.005 * t),
        ),
    ]
    areas = [(it["change"], it["counting"], it["area"], it["low"]) for it in figure4(churn)]
    assert areas == [
        ("join", "with_host", 3.5, pytest.approx(3.5 - 0.5 * t)),
        ("join", "without_host", 2.5, pytest.approx(2.5 - 0.5 * t)),
        ("leave", "with_host", 4.0, 4.0 - 4.5),
        ("leave", "without_host", 3.0, 3.0 - 4.5),
    ]
    assert [tuple(it.values()) for it in ideal(churn)] == [
        (10, "join", 2.5, 2.0),
        (10, "leave", 3.0, 1.5),
    ]


def test_larger_degrees_stand_or_fall_together() -> None:
    wide = [it for it in ASKED.claim if "degree 4" in it.text or "degree 6" in it.text]
    assert len(wide) == 6
    assert {it.cause for it in wide} == {"larger degrees"}
