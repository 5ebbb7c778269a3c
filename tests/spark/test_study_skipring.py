"""The study of the supervised skip ring: its measures, its tables and what makes a claim false."""

from collections import deque
from collections.abc import Mapping
from functools import partial
from itertools import combinations, permutations
from typing import Any

import pyspark.sql.functions as sql
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from planaria.core.chance import stream
from planaria.literal.skipring.reference import skip_ring
from planaria.spark.grid import Cell
from planaria.studies.skipring import graph as graphs
from planaria.studies.skipring.claims import CLAIMS, CONSTANT, PROMISES, Claim
from planaria.studies.skipring.page import page
from planaria.studies.skipring.study import STUDY
from planaria.studies.skipring.tables import (
    checks,
    errata,
    measured_claims,
    recovery,
    tables,
)
from planaria.studies.study import Experiment, Figure, Shown
from study_lab import rows_of

pytest_plugins = ("spark_session",)


# What is run


def test_promised_tables_are_those_of_the_issue() -> None:
    assert STUDY.promised["claims"] == (
        "claim",
        "n",
        "paper",
        "measured",
        "low",
        "high",
        "holds",
    )
    assert STUDY.promised["recovery"] == (
        "start",
        "n",
        "intervals",
        "low",
        "high",
        "max",
        "seeds",
    )
    assert STUDY.promised["antientropy"] == (
        "stored",
        "differing",
        "method",
        "bytes",
        "messages",
        "bound",
    )


def test_every_claim_reads_an_experiment_that_is_run_and_no_two_say_the_same() -> None:
    names = {experiment.name for experiment in STUDY.experiments("quick")}
    assert {claim.source for claim in CLAIMS} <= names
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)


def small_cells(experiment: Experiment) -> list[Cell]:
    """The first cell of every combination of words, with n as small as it comes, and not tiny."""
    found: dict[tuple[object, ...], Cell] = {}
    for cell in experiment.cells:
        words = tuple(value for value in cell.parameters.values() if isinstance(value, str))
        found.setdefault((*words, int(cell.parameters.get("n", 0)) >= 16), cell)
    if experiment.name == "errata":
        return list(found.values())[:4]
    return list(found.values())


@pytest.fixture(scope="module")
def some_rows(spark: SparkSession) -> dict[str, DataFrame]:
    """A few real rows of every experiment."""
    return rows_of(spark, STUDY, {it.name: small_cells(it) for it in STUDY.experiments("quick")})


def test_study_makes_all_tables_and_its_page_from_real_rows(
    spark: SparkSession, some_rows: Mapping[str, DataFrame]
) -> None:
    made = {
        name: table.select(*STUDY.promised[name]).toArrow().to_pylist()
        for name, table in tables(spark, some_rows).items()
    }
    assert set(made) == set(STUDY.promised)
    assert all(made.values()), "a table is empty"
    assert {row["claim"] for row in made["claims"]} == {claim.text for claim in CLAIMS}
    assert all(row["holds"] for row in made["checks"])
    blocks = page(made)
    assert {block.table for block in blocks if isinstance(block, Shown)} <= set(made)
    figures = [block for block in blocks if isinstance(block, Figure)]
    assert len({figure.name for figure in figures}) == len(figures) >= 8
    assert all(figure.svg.rstrip().endswith("</svg>") for figure in figures)


# What makes a claim true


def test_claims_are_judged_for_every_n_and_all_rules(spark: SparkSession) -> None:
    claims = [
        Claim("constant", "load", "cost", CONSTANT, "at most", "mean", literal="text"),
        Claim("all heal", "load", "healed", "1", "equals", "share", literal="text"),
        Claim("worst", "load", "cost", "n / 4", "below", "max", where="n = 64", literal="text"),
        Claim("twice n", "load", "2 * n", "2 * n", literal="text"),
    ]
    data = [
        ("ours", 16, 2.0, True),
        ("ours", 16, 4.0, True),
        ("ours", 64, 4.0, True),
        ("ours", 64, 5.0, True),
        ("text", 16, 4.0, True),
        ("text", 64, 7.0, False),
        ("text", 64, 7.0, True),
    ]
    rows = {"load": spark.createDataFrame(data, "rules string, n int, cost double, healed boolean")}
    found = measured_claims(spark, rows, claims).select(
        "claim", "rules", "n", "paper", "measured", "holds"
    )
    expected = [
        ("constant", "ours", 16, 4.5, 3.0, True),
        ("constant", "ours", 64, 4.5, 4.5, True),
        ("constant", "text", 16, 6.0, 4.0, True),
        ("constant", "text", 64, 6.0, 7.0, False),
        ("all heal", "ours", 16, 1.0, 1.0, True),
        ("all heal", "ours", 64, 1.0, 1.0, True),
        ("all heal", "text", 16, 1.0, 1.0, True),
        ("all heal", "text", 64, 1.0, 0.5, False),
        ("worst", "ours", 64, 16.0, 5.0, True),
        ("worst", "text", 64, 16.0, 7.0, True),
        ("twice n", "ours", 16, 32.0, 32.0, True),
        ("twice n", "ours", 64, 128.0, 128.0, True),
        ("twice n", "text", 16, 32.0, 32.0, True),
        ("twice n", "text", 64, 128.0, 128.0, True),
    ]
    schema = "claim string, rules string, n long, paper double, measured double, holds boolean"
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema), ignoreNullable=True)


@pytest.mark.parametrize(
    ("relation", "true", "false"),
    [
        ("equals", 4.0, 4.1),
        ("at most", 4.0, 4.1),
        ("below", 3.9, 4.0),
        ("at least", 4.0, 3.9),
    ],
)
def test_false_figure_makes_a_claim_false(
    spark: SparkSession, relation: str, true: float, false: float
) -> None:
    claim = Claim("it is four", "load", "cost", "4", relation, rules="'ours'")
    rows = {
        "load": spark.createDataFrame(
            [("ours", 16, true), ("ours", 64, false)], "rules string, n int, cost double"
        )
    }
    found = measured_claims(spark, rows, [claim]).orderBy("n").collect()
    assert [row.holds for row in found] == [True, False]


NEVER_HEALED = [("11", "ours", 16, False, None)]
LEMMA = "lemma string, rules string, n int, healed boolean, intervals int"


@pytest.mark.parametrize("healed", [0, 1])
def test_ring_that_never_heals_makes_lemma_11_false(spark: SparkSession, healed: int) -> None:
    [lemma] = [claim for claim in CLAIMS if claim.text.startswith("Lemma 11")]
    data = [("11", "ours", 16, True, 5)] * healed + NEVER_HEALED
    rows = {"lemmas": spark.createDataFrame(data, LEMMA)}
    found = {row.rules: row for row in measured_claims(spark, rows, [lemma]).collect()}
    assert (found["ours"].n, found["ours"].paper) == (16, 32.0)
    assert (found["ours"].measured, found["ours"].holds) == (None, False)
    assert found["amended"].holds is False  # no run of the text: it is said, not left out


def test_claims_of_which_no_run_came_to_its_end_stay_and_do_not_hold(
    spark: SparkSession, some_rows: Mapping[str, DataFrame]
) -> None:
    rows = {**some_rows, "lemmas": some_rows["lemmas"].where("lemma != '11' and n < 64")}
    rows["operations"] = rows["operations"].where("n != 16")
    made = tables(spark, rows)
    found = {row.claim: row for row in made["claims"].collect()}
    assert {*found} == {claim.text for claim in CLAIMS}
    lost = [row for text, row in found.items() if text.startswith(("Lemma 11", "Theorem 7: a sub"))]
    assert [(row.paper, row.holds) for row in lost] == [(None, False)] * 3
    literal = {claim.text for claim in CLAIMS if claim.rules != "'ours'"}
    assert {row.claim for row in made["literal"].collect()} == literal


def test_check_does_not_hold_if_one_ring_never_heals(
    spark: SparkSession, some_rows: Mapping[str, DataFrame]
) -> None:
    one = some_rows["recovery"].withColumn("intervals", sql.expr("nullif(intervals, intervals)"))
    rows = {**some_rows, "recovery": some_rows["recovery"].unionByName(one.limit(1))}
    [start] = [row.start for row in one.limit(1).collect()]
    found = [row for row in checks(spark, rows).collect() if not row.holds]
    assert [row.check for row in found] == [f"intervals to heal, start {start}, in units of log2 n"]
    assert found[0].measured is None


def test_recovery_keeps_a_size_at_which_nothing_healed(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("fresh", 16, None)], "start string, n int, intervals int")
    [row] = recovery(rows).collect()
    assert (row.n, row.intervals, row.max, row.seeds) == (16, None, None, 0)


def test_recovery_has_mean_interval_worst_and_seeds(spark: SparkSession) -> None:
    data = [("fresh", 16, value) for value in (3, 4, 5, None)]
    rows = spark.createDataFrame(data, "start string, n int, intervals int")
    found = recovery(rows).select(*STUDY.promised["recovery"])
    expected = [("fresh", 16, 4.0, 4.0 - 2.4841, 4.0 + 2.4841, 5, 3)]
    schema = "start string, n int, intervals double, low double, high double, max long, seeds long"
    assertDataFrameEqual(
        found, spark.createDataFrame(expected, schema), rtol=1e-3, ignoreNullable=True
    )


def test_errata_count_states_that_did_not_heal(spark: SparkSession) -> None:
    data = [("E4", True, 5), ("E4", False, None), ("none", True, 7), ("E10", True, 3)]
    rows = spark.createDataFrame(
        [(name, "fifo", healed, after) for name, healed, after in data],
        "left_out string, scheduler string, healed boolean, intervals int",
    )
    found = errata(rows).collect()
    assert [row.left_out for row in found] == ["none", "E4", "E10"]
    assert [row.not_healed for row in found] == [0, 1, 0]
    assert [row.max for row in found] == [7, 5, 3]


def worse(
    rows: Mapping[str, DataFrame], name: str, change: Mapping[str, Any]
) -> dict[str, DataFrame]:
    """The same rows, with one experiment's results spoiled."""
    spoiled = rows[name]
    for column, value in change.items():
        kind = dict(spoiled.dtypes)[column]
        spoiled = spoiled.selectExpr(
            *(each for each in spoiled.columns if each != column),
            f"cast({value} as {kind}) {column}",
        )
    return {**rows, name: spoiled}


def test_checks_fail_when_a_promise_is_broken(
    spark: SparkSession, some_rows: Mapping[str, DataFrame]
) -> None:
    rows = dict(some_rows)
    rows = worse(rows, "recovery", {"healed": "false", "intervals": "1000"})
    rows = worse(rows, "states", {"healed": "false"})
    rows = worse(rows, "lemmas", {"healed": "false"})
    rows = worse(rows, "buildring", {"healed": "false"})
    rows = worse(rows, "quiet", {"ring": "1", "messages": "4.5"})
    rows = worse(rows, "requests", {"expected": "1.1"})
    rows = worse(rows, "operations", {"done": "false"})
    rows = worse(rows, "backlog", {"equal": "false"})
    rows = worse(rows, "silence", {"exchanges": "1"})
    rows = worse(rows, "broadcast", {"reached": "1", "messages": "99", "hops_max": "9"})
    rows = worse(rows, "antientropy", {"equal": "false", "messages": "10"})
    found = checks(spark, rows).collect()
    assert len(found) == len(PROMISES)
    assert [row.check for row in found if row.holds] == []


# What is measured


def stupid_congestion(graph: Mapping[str, list[str]]) -> float:
    """All shortest paths of all pairs, written down."""
    load = dict.fromkeys(graph, 0.0)
    for one, other in combinations(graph, 2):
        paths: list[list[str]] = []
        waiting = deque([[one]])
        while waiting:
            path = waiting.popleft()
            if paths and len(path) > len(paths[0]):
                break
            if path[-1] == other:
                paths.append(path)
            else:
                waiting.extend([*path, beside] for beside in graph[path[-1]] if beside not in path)
        for path in paths:
            for between in path[1:-1]:
                load[between] += 2 / len(paths)
    return max(load.values()) / (len(graph) - 1)


@pytest.mark.parametrize("n", [4, 7, 16])
def test_congestion_is_that_of_all_shortest_paths_written_down(n: int) -> None:
    graph = graphs.defined(n)
    assert graphs.congestion(graph) == pytest.approx(stupid_congestion(graph))


@pytest.mark.parametrize("n", [16, 64, 128])
def test_skip_ring_is_cut_in_two_by_the_labels_0_and_1(n: int) -> None:
    """So no routing avoids them, and section 1.3 is wrong about congestion."""
    graph = graphs.defined(n)
    reached, waiting = {"01"}, deque(["01"])
    while waiting:
        for beside in graph[waiting.popleft()]:
            if beside not in reached and beside not in ("0", "1"):
                reached.add(beside)
                waiting.append(beside)
    assert len(reached) == n // 2 - 1
    least = (n / 2 - 1) ** 2 / (n - 1)
    assert graphs.congestion(graph) >= least
    assert graphs.congestion(graph) > graphs.chord_congestion(n, 1)


def chord_step(ids: list[int], at: int, target: int) -> int:
    """Fingers by linear search, the step by distance round the circle of ids."""
    circle = 1 << 32

    def ahead(start: int, id: int) -> int:
        return (id - start) % circle

    fingers = [min(ids, key=partial(ahead, at + 2**bit)) for bit in range(32)]
    short = [finger for finger in fingers if 0 < ahead(at, finger) <= ahead(at, target)]
    return max(short, key=partial(ahead, at))


def test_chord_is_routed_by_its_definition() -> None:
    n = 12
    ids = stream(1, "chord").sample(range(1 << 32), n)
    passed = dict.fromkeys(ids, 0)
    for at, target in permutations(ids, 2):
        while (at := chord_step(ids, at, target)) != target:
            passed[at] += 1
    assert graphs.chord_congestion(n, 1) == max(passed.values()) / (n - 1)
    assert graphs.chord_congestion(2, 1) == 0


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("n", [2, 4, 16])
def test_joins_touch_a_subscriber_twice_in_a_row_but_for_label_0(n: int, ours: bool) -> None:
    """Against SR(m) and SR(m + 1) themselves; section 4.1 forgets label 0."""
    changes = graphs.touched(n, ours=ours)
    for bits, found in changes.items():
        expected = []
        for m in range(n, 2 * n):
            before, after = skip_ring(m)[bits], skip_ring(m + 1)[bits]
            sides = [(at.left or at.ring, at.right or at.ring) for at in (before, after)]
            expected += [m] if sides[0] != sides[1] else []
        assert found == expected
        assert (found[1] - found[0] == 1) is (bits != "0" or n == 2)


def test_ring_that_grew_is_the_one_of_definition_2() -> None:
    grown, defined = graphs.grown(16, 3), graphs.defined(16)
    assert {bits: sorted(beside) for bits, beside in grown.items()} == {
        bits: sorted(beside) for bits, beside in defined.items()
    }
    assert graphs.two_on_every_level(grown) == 14 / 16
    assert graphs.gap_ratio(graphs.defined(5)) == 2
    chord = {"011": [*defined["011"], "111"], "111": [*defined["111"], "011"]}
    assert (graphs.crossing(defined), graphs.crossing({**defined, **chord})) == (0, 1)
