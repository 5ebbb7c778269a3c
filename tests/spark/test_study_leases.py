"""The study of leased routing: its cells, its tables, its verdicts, its page."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planaria.core.node import Effects
from planaria.lab.routing.analysis import MUS, OMEGAS, RHOS
from planaria.protocols.routing.overlay import TreeBroker
from planaria.spark.grid import Cell
from planaria.studies.judge import checks, claims, counted, exactly, only
from planaria.studies.leases import runs as runs
from planaria.studies.leases.facts import (
    SUMMED,
    _healing_facts,
    crossings,
    figure2,
    stabilisation,
)
from planaria.studies.leases.study import ASKED, BESIDE, STUDY
from study_lab import found_in, made, page, rows_of, summary

pytest_plugins = ("spark_session",)

HEALING = "strategy string, start string, bound bigint, intervals bigint, healed boolean"
RHO, MU = RHOS[0], MUS[0]
SMALL: Mapping[str, Sequence[Cell]] = {
    "local": [
        Cell({"omega": 1000.0, "rho": RHO, "mu": MU, "subscriptions": n, "publications": k}, 0)
        for n, k in ((1_000, 0), (50_000, 500), (10_000_000, 0))
    ],
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
    "3.3: example: shortest lease for rho = 14.7 s, in milliseconds": "slip",
    "3.3: example: stabilization time is 30 s ('a delay of d dmax must be assumed')": "slip",
    "3.3: example: longest rho that stabilizes within 30 s": "slip",
    "4.1: a subscription of mu1 is refreshed 100 times with rho2": "slip",
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    quick = {it.name: it.cells for it in STUDY.experiments("quick")}
    return made(STUDY, found_in(STUDY, rows_of(spark, STUDY, {**quick, **SMALL})))


def test_tables_of_leased_routing_are_those_promised_in_the_issue() -> None:
    promised = {name: tuple(columns) for name, columns in STUDY.promised.items()}
    curves = ("subscriptions", "omega", "rho", "mu", "saved", "control", "method")
    assert promised["figure2"] == curves
    assert promised["crossings"] == ("omega", "rho", "mu", "subscriptions", "method")
    assert promised["stabilisation"] == ("strategy", "start", "bound", "worst", "runs")
    assert promised["claims"][:4] == ("claim", "paper", "measured", "holds")


def test_no_table_of_leased_routing_is_empty_and_our_checks_hold(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    assert all(tables.values())
    failed = [row["check"] for row in tables["checks"] if row["holds"] != "yes"]
    assert failed == ["subscriptions up to which b_s is simulated"]  # here up to 50,000


def test_claims_that_do_not_hold_are_those_of_the_errata_and_one_slip_is_counted_once(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    noes = {row["claim"]: row["meaning"] for row in tables["claims"] if row["holds"] == "no"}
    few = "4.2: intersection points, simulated"  # not all of them here
    assert noes == FALSE | {few: "paper"}
    assert counted(tables["claims"]).meanings == {"paper": 1, "slip": 2}
    printed = {row["claim"]: row for row in tables["literal"]}
    silent = "3.4: identity, no fault: seconds without an entry that is renewed"
    assert printed[silent]["literal"] == pytest.approx(28.825)
    assert sum(row["holds"] == "no" for row in printed.values()) >= 10


def test_where_interests_are_local_filtering_always_wins(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    local = {row["claim"]: row for row in tables["claims"] if "local interests" in row["claim"]}
    assert len(local) == 4
    assert {row["holds"] for row in local.values()} == {"yes"}
    [saved] = [row["measured"] for name, row in local.items() if "always saved" in name]
    # Below one child of the root: 1 + 3 + 9 + 27 links of 120, less where they lead back, and 4 up.
    wanted = 120 - 4 - sum(3**k * (1 - 3.0 ** -(k + 1)) for k in range(4))
    assert saved == pytest.approx(wanted / 120, rel=1e-3)


def test_page_of_leased_routing_shows_both_plots(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    assert list(STUDY.figures(tables)) == ["figure2", "figure2-magnified"]
    text = page(STUDY, tables)
    assert text.count("<figure") == 2
    assert "nan" not in text.partition("<figure")[0]


def test_figure_2_has_both_methods_and_saves_in_proportion_to_omega(spark: SparkSession) -> None:
    schema = (
        "subscriptions bigint, rho double, mu double, saved_1 double, control double, "
        "alive double, crossed double"
    )
    closed = summary(spark, [(10, 60.0, 0.5, 7.0, 3.0, 0.0, 0.0)], schema, SUMMED["closed"])
    data = [(10, 60.0, 0.5, 6.0, 2.0, 0.0, 0.0), (10, 60.0, 0.5, 8.0, 6.0, 0.0, 0.0)]
    simulated = summary(spark, data, schema, SUMMED["simulated"])
    names = ("subscriptions", "omega", "rho", "mu", "saved", "control", "method")
    assert [tuple(row[it] for it in names) for row in figure2(closed, simulated)] == [
        (10, 1000.0, 60.0, 0.5, 7000.0, 3.0, "closed_form"),
        (10, 100.0, 60.0, 0.5, 700.0, 3.0, "closed_form"),
        (10, 1000.0, 60.0, 0.5, 7000.0, 4.0, "simulated"),
        (10, 100.0, 60.0, 0.5, 700.0, 4.0, "simulated"),
    ]


def test_a_simulated_crossing_lies_where_the_gain_is_nothing(spark: SparkSession) -> None:
    """Gains of 30 at 95 and of -10 at 105: nothing at 102.5. Two seeds are averaged."""
    schema = (
        "omega double, rho double, mu double, at double, seed bigint, closed double, "
        "tried bigint, gain double"
    )
    data = [
        (1000.0, 60.0, 0.5, 0.0, 0, 100.0, None, None),
        (1000.0, 60.0, 0.5, 0.95, 0, 100.0, 95, 30.0),
        (1000.0, 60.0, 0.5, 1.05, 0, 100.0, 105, -10.0),
        (1000.0, 60.0, 0.5, 0.95, 1, 100.0, 95, 10.0),
        (1000.0, 60.0, 0.5, 1.05, 1, 100.0, 105, -10.0),
    ]
    found = crossings(summary(spark, data, schema, SUMMED["crossing"]))
    assert [(row["subscriptions"], row["method"]) for row in found] == [
        (100.0, "closed_form"),
        (101.25, "simulated"),
    ]


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
    data = [("simple", "corrupt", 28, it, True) for it in (20, 29)]
    data += [("simple", "fresh", 28, 3, True), ("merging", "fresh", 28, 3, False)]
    found = stabilisation(summary(spark, data, HEALING, SUMMED["stabilisation"]))
    assert [tuple(row.values()) for row in found] == [
        ("merging", "fresh", 28, None, 1),
        ("simple", "corrupt", 28, 29, 2),
        ("simple", "fresh", 28, 3, 1),
    ]


def test_a_run_that_did_not_stay_legitimate_took_for_ever(spark: SparkSession) -> None:
    """It was legitimate after 3 intervals of 28, and was not later."""
    data = [("simple", "fresh", 28, 20, True), ("merging", "fresh", 28, 3, False)]
    found = _healing_facts(summary(spark, data, HEALING, SUMMED["stabilisation"]))
    worst = [it for it in ASKED.claim if it.measured in ("worst_simple", "worst_merging")]
    assert [row["holds"] for row in claims(worst, found)] == ["yes", "no"]
    values = [found[f"worst{it}"][None].value for it in ("_simple", "_merging", "")]
    assert values == [20 / 28, inf, inf]


def test_no_claim_and_no_check_holds_whatever_the_figures_are() -> None:
    """Every one of them is false of some figure: of a huge one, of one far below, or of neither."""
    seen: dict[str, set[str]] = {}
    for value in (-1e9, 0.0, 1.0, 1e9):
        facts = only(**{name: exactly(value) for name in ASKED.names()})
        for row in claims(ASKED.claim, facts):
            seen.setdefault(row["claim"], set()).add(row["holds"])
        for row in checks(ASKED.check, facts):
            seen.setdefault(row["check"], set()).add(row["holds"])
    assert len(seen) == len(ASKED.claim) + len(ASKED.check)
    assert [name for name, verdicts in seen.items() if "no" not in verdicts] == []
