"""The study of leased routing: its cells, its tables, its verdicts, its page."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from planaria.core.node import Effects
from planaria.lab.routing.analysis import MUS, OMEGAS, RHOS
from planaria.protocols.routing.overlay import TreeBroker
from planaria.spark.grid import Cell
from planaria.studies.leases import runs as runs
from planaria.studies.leases.claims import CHECKED, CLAIMED
from planaria.studies.leases.study import BESIDE, STUDY
from planaria.studies.leases.tables import (
    crossings,
    figure2,
    healing_facts,
    stabilisation,
)
from planaria.studies.study import Figure, Prose, Shown
from planaria.studies.verdicts import checks, claims
from study_lab import made, rows_of

pytest_plugins = ("spark_session",)

HEALING = "strategy string, start string, bound bigint, intervals bigint, healed boolean"
RHO, MU = RHOS[0], MUS[0]
SMALL: Mapping[str, Sequence[Cell]] = {
    "simulated": [
        Cell({"subscriptions": n, "rho": RHO, "mu": MU, "publications": 2_000}, 0)
        for n in (0, 50_000)
    ],
    "crossing": [
        Cell({"omega": omega, "rho": rho, "mu": mu, "at": at, "publications": 2_000}, 0)
        for omega in OMEGAS
        for rho in RHOS
        for mu in MUS
        for at in ((0.0, *BESIDE) if (rho, mu) == (RHO, MU) else (0.0,))
    ],
    "stabilisation": [
        Cell({"strategy": strategy, "hierarchical": True, "start": "corrupt", "n": 5}, 0)
        for strategy in ("flooding", "simple", "identity", "covering", "merging")
    ],
    "deliveries": [
        Cell({"strategy": "identity", "hierarchical": False, "start": start, "n": 5}, 0)
        for start in ("legitimate", "corrupt")
    ],
}
FALSE = {
    "3.3: example: shortest lease for rho = 14.7 s, in milliseconds",
    "3.3: example: stabilization time is 30 s ('a delay of d dmax must be assumed')",
    "3.3: example: longest rho that stabilizes within 30 s",
    "4.1: leasing period pi1 that follows from constant delays, s",
    "4.1: leasing period pi2 that follows from constant delays, s",
    "4.1: a subscription of mu1 is refreshed 100 times with rho2",
    "4.2: mu1 does not, with rho2",
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    quick = {it.name: it.cells for it in STUDY.experiments("quick")}
    return made(spark, STUDY, rows_of(spark, STUDY, {**quick, **SMALL}))


def test_tables_of_leased_routing_are_those_promised_in_the_issue() -> None:
    curves = ("subscriptions", "omega", "rho", "mu", "saved", "control", "method")
    assert STUDY.promised["figure2"] == curves
    assert STUDY.promised["crossings"] == ("omega", "rho", "mu", "subscriptions", "method")
    assert STUDY.promised["stabilisation"] == ("strategy", "start", "bound", "worst", "runs")
    assert STUDY.promised["claims"] == ("claim", "paper", "measured", "holds")


def test_no_table_of_leased_routing_is_empty_and_our_checks_hold(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    assert sorted(tables) == sorted(STUDY.promised)
    assert all(tables.values())
    assert [row for row in tables["checks"] if not row["holds"]] == []


def test_claims_that_do_not_hold_are_those_of_the_errata(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    assert {row["claim"] for row in tables["claims"] if not row["holds"]} == FALSE
    printed = {row["claim"]: row for row in tables["literal"]}
    silent = "3.4: identity, no fault: seconds without an entry that is renewed"
    assert printed[silent]["literal"] == pytest.approx(28.825)
    assert sum(not row["holds"] for row in printed.values()) >= 10


def test_page_of_leased_routing_shows_both_plots_and_only_tables_that_exist(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    blocks = STUDY.page(tables)
    names = [it.name for it in blocks if isinstance(it, Figure)]
    assert names == ["figure2", "figure2-magnified"]
    assert all(it.table in tables for it in blocks if isinstance(it, Shown))
    assert all("nan" not in it.html for it in blocks if isinstance(it, Prose))


def test_figure_2_has_both_methods_and_saves_in_proportion_to_omega(spark: SparkSession) -> None:
    schema = "subscriptions bigint, rho double, mu double, saved_1 double, control double"
    closed = spark.createDataFrame([(10, 60.0, 0.5, 7.0, 3.0)], schema)
    runs = [(10, 60.0, 0.5, 6.0, 2.0), (10, 60.0, 0.5, 8.0, 6.0)]
    simulated = spark.createDataFrame(runs, schema)
    expected = [
        (10, 1000.0, 60.0, 0.5, 7000.0, 3.0, "closed_form"),
        (10, 100.0, 60.0, 0.5, 700.0, 3.0, "closed_form"),
        (10, 1000.0, 60.0, 0.5, 7000.0, 4.0, "simulated"),
        (10, 100.0, 60.0, 0.5, 700.0, 4.0, "simulated"),
    ]
    columns = (
        "subscriptions bigint, omega double, rho double, mu double, saved double, control double, "
        "method string"
    )
    assertDataFrameEqual(
        figure2(closed, simulated),
        spark.createDataFrame(expected, columns),
        checkRowOrder=True,
        ignoreNullable=True,
    )


def test_a_simulated_crossing_lies_where_the_gain_is_nothing(spark: SparkSession) -> None:
    """Gains of 30 at 95 and of -10 at 105: nothing at 102.5. Two seeds are averaged."""
    schema = (
        "omega double, rho double, mu double, at double, seed bigint, closed double, "
        "tried bigint, gain double"
    )
    rows = [
        (1000.0, 60.0, 0.5, 0.0, 0, 100.0, None, None),
        (1000.0, 60.0, 0.5, 0.95, 0, 100.0, 95, 30.0),
        (1000.0, 60.0, 0.5, 1.05, 0, 100.0, 105, -10.0),
        (1000.0, 60.0, 0.5, 0.95, 1, 100.0, 95, 10.0),
        (1000.0, 60.0, 0.5, 1.05, 1, 100.0, 105, -10.0),
    ]
    expected = [
        (1000.0, 60.0, 0.5, 100.0, "closed_form"),
        (1000.0, 60.0, 0.5, 101.25, "simulated"),
    ]
    columns = "omega double, rho double, mu double, subscriptions double, method string"
    assertDataFrameEqual(
        crossings(spark.createDataFrame(rows, schema)),
        spark.createDataFrame(expected, columns),
        checkRowOrder=True,
        ignoreNullable=True,
    )


class Lazy(TreeBroker):
    """Says nothing at one timeout of seven, also when it is the one to renew at."""

    asked = 0

    def on_timeout(self) -> Effects:
        """As always, and now and then in vain."""
        effects = super().on_timeout()
        self.asked += 1
        return effects if self.asked % 7 else []


def test_time_between_renewals_is_that_of_real_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell({"links": 3, "rho": 2}, 0)
    assert 0.95 < runs.run_renewals(cell).summary["gap"] <= 1
    monkeypatch.setattr(runs, "TreeBroker", Lazy)
    assert runs.run_renewals(cell).summary["gap"] > 1.5


def test_stabilisation_is_the_worst_of_all_runs(spark: SparkSession) -> None:
    rows = [("simple", "corrupt", 28, it, True) for it in (20, 29)]
    rows += [("simple", "fresh", 28, 3, True), ("merging", "fresh", 28, 3, False)]
    found = stabilisation(spark.createDataFrame(rows, HEALING))
    assert [tuple(row) for row in found.collect()] == [
        ("merging", "fresh", 28, None, 1),
        ("simple", "corrupt", 28, 29, 2),
        ("simple", "fresh", 28, 3, 1),
    ]


def test_a_run_that_did_not_stay_legitimate_took_for_ever(spark: SparkSession) -> None:
    """It was legitimate after 3 intervals of 28, and was not later."""
    rows = [("simple", "fresh", 28, 20, True), ("merging", "fresh", 28, 3, False)]
    found = healing_facts(spark.createDataFrame(rows, HEALING))
    worst = [it for it in CLAIMED if it.measured in ("worst_simple", "worst_merging")]
    assert [row.holds for row in claims(found, worst).collect()] == [True, False]
    [row] = found.collect()
    assert (row.worst_simple, row.worst_merging, row.worst) == (20 / 28, inf, inf)


def facts(spark: SparkSession, value: float) -> DataFrame:
    """All facts of claims and checks, each of them this number."""
    names = {it.measured for it in (*CLAIMED, *CHECKED)} | {it.literal for it in CLAIMED} - {""}
    schema = ", ".join(f"{name} double" for name in sorted(names))
    return spark.createDataFrame([(value,) * len(names)], schema)


def test_no_claim_and_no_check_holds_whatever_the_figures_are(spark: SparkSession) -> None:
    """Every one of them is false of some figure: of a huge one, of one far below, or of neither."""
    seen: dict[str, set[bool]] = {}
    for value in (-1e9, 0.0, 1.0, 1e9):
        for row in claims(facts(spark, value), CLAIMED).collect():
            seen.setdefault(row.claim, set()).add(row.holds)
        for row in checks(facts(spark, value), CHECKED).collect():
            seen.setdefault(row.check, set()).add(row.holds)
    assert len(seen) == len(CLAIMED) + len(CHECKED)
    assert [name for name, verdicts in seen.items() if False not in verdicts] == []
