"""The study of the supervised skip ring: its measures, its tables and what makes a claim false."""

from collections import deque
from collections.abc import Mapping
from functools import partial
from itertools import combinations, permutations
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from planaria.core.chance import stream
from planaria.literal.skipring.reference import skip_ring
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result
from planaria.studies.facts import Summary, summed
from planaria.studies.judge import Sized, checks, claims
from planaria.studies.skipring import graph as graphs
from planaria.studies.skipring.facts import FORMULAS, SUMMED, facts
from planaria.studies.skipring.study import ASKED, PACKED, STUDY
from planaria.studies.skipring.tables import antientropy, errata, recovery
from planaria.studies.study import Experiment
from study_lab import found_in, made, page, rows_of, summary

pytest_plugins = ("spark_session",)


# What is run


def test_promised_tables_are_those_of_the_issue() -> None:
    promised = {name: tuple(columns) for name, columns in STUDY.promised.items()}
    first = ("claim", "n", "paper", "measured", "low", "high", "holds")
    assert promised["claims"] == (*first, "runs", "relation", "meaning", "cause")
    assert promised["literal"][:4] == ("claim", "n", "literal", "holds")
    assert promised["recovery"] == ("start", "n", "intervals", "low", "high", "max", "seeds")
    exchanged = ("stored", "differing", "method", "bytes", "messages", "bound")
    assert promised["antientropy"][:6] == exchanged
    assert promised["antientropy"][6:] == ("packed", "per_publication", "per_record")


def test_no_two_claims_say_the_same_and_a_cause_has_one_meaning() -> None:
    assert len({claim.text for claim in ASKED.claim}) == len(ASKED.claim)
    causes: dict[str, set[str]] = {}
    for claim in ASKED.claim:
        causes.setdefault(claim.cause or claim.text, set()).add(claim.meaning)
    assert all(len(meanings) == 1 for meanings in causes.values())


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


@pytest.fixture(scope="module")
def some(some_rows: Mapping[str, DataFrame]) -> dict[str, Summary]:
    return found_in(STUDY, some_rows)


def test_study_makes_all_tables_and_its_page_from_real_rows(some: Mapping[str, Summary]) -> None:
    tables = made(STUDY, some)
    assert all(tables.values()), "a table is empty"
    assert {row["claim"] for row in tables["claims"]} == {claim.text for claim in ASKED.claim}
    assert [row["check"] for row in tables["checks"] if row["holds"] != "yes"] == []
    text = page(STUDY, tables)
    assert text.count("<figure") == len(STUDY.figures(tables)) == 9
    known = facts(some)
    assert [name for name in ASKED.names() if not known.get(name)] == []  # none is misspelt


# What makes a claim true


def verdicts(known: Mapping[str, Sized], words: str) -> dict[int | None, str]:
    asked = [claim for claim in ASKED.claim if words in claim.text]
    return {row["n"]: row["holds"] for row in claims(asked, known)}


LEMMA = "lemma string, rules string, n int, healed boolean, intervals int"


@pytest.mark.parametrize("healed", [0, 1])
def test_ring_that_never_heals_makes_lemma_11_false(
    spark: SparkSession, some: Mapping[str, Summary], healed: int
) -> None:
    data = [("11", "ours", 16, True, 5)] * healed + [("11", "ours", 16, False, None)]
    lemmas = summary(spark, data, LEMMA, SUMMED["lemmas"])
    tables = made(STUDY, {**some, "lemmas": lemmas})
    [row] = [row for row in tables["claims"] if row["claim"].startswith("Lemma 11")]
    assert (row["n"], row["paper"], row["measured"], row["holds"]) == (16, 32.0, None, "no")
    [text] = [row for row in tables["literal"] if row["claim"].startswith("Lemma 11")]
    assert (text["n"], text["holds"]) == (None, "undecided")  # no run of the text: it is said


def test_claims_of_which_no_run_came_to_its_end_stay_and_are_undecided(
    some: Mapping[str, Summary],
) -> None:
    rows = {**some, "lemmas": some["lemmas"].where(lemma=lambda it: it != "11")}
    rows["operations"] = some["operations"].where(n=0)
    tables = made(STUDY, rows)
    found = {row["claim"]: row for row in tables["claims"]}
    assert {*found} == {claim.text for claim in ASKED.claim}
    lost = [row for text, row in found.items() if text.startswith(("Lemma 11", "Theorem 7: a sub"))]
    assert [(row["measured"], row["holds"]) for row in lost] == [(None, "undecided")] * 3
    literal = {claim.text for claim in ASKED.claim if claim.literal}
    assert {row["claim"] for row in tables["literal"]} == literal


OPERATIONS = "operation string, n int, supervisor double, peers int, done boolean"


@pytest.mark.parametrize(("far", "verdict"), [(3.0, "yes"), (4.4, "undecided"), (6.0, "no")])
def test_what_is_constant_may_grow_by_half_and_not_more(
    spark: SparkSession, some: Mapping[str, Summary], far: float, verdict: str
) -> None:
    """3 at 16 subscribers; at 256 the mean of four, with its interval."""
    data = [("subscribe", 16, 3.0, 1, True)] * 2
    data += [("subscribe", 256, far + it, 1, True) for it in (-0.2, -0.1, 0.1, 0.2)]
    operations = summary(spark, data, OPERATIONS, SUMMED["operations"])
    found = verdicts(facts({**some, "operations": operations}), "a subscribe costs the supervisor")
    assert found[256] == verdict


def test_formulas_are_those_of_the_paper() -> None:
    at_16 = {name: formula(16) for name, formula in FORMULAS.items()}
    assert at_16 == {"n": 16, "log n": 4, "log n, rounded up": 4, "2 log n": 8, "2 n": 32,
                     "4 n - 4": 60}  # fmt: skip
    assert FORMULAS["log n, rounded up"](17) == 5


def test_check_does_not_hold_if_one_ring_never_heals(
    some_rows: Mapping[str, DataFrame], some: Mapping[str, Summary]
) -> None:
    rows = some_rows["recovery"]
    one = rows.limit(1).selectExpr(
        *(it for it in rows.columns if it != "intervals"), "cast(null as bigint) intervals"
    )
    start = one.collect()[0].start
    spoiled = summed(rows.unionByName(one), SUMMED["recovery"])
    found = checks(ASKED.check, facts({**some, "recovery": spoiled}))
    bad = [row for row in found if row["holds"] != "yes"]
    assert [row["check"] for row in bad] == [
        f"intervals to heal, start {start}, in units of log2 n"
    ]
    assert (bad[0]["measured"], bad[0]["holds"]) == (None, "no")


RECOVERY = (
    "start string, n int, intervals int, healed boolean, requests double, configurations double, "
    "peak_in double, peak_out double, messages double"
)


def recovered(spark: SparkSession, *intervals: int | None) -> list[Mapping[str, Any]]:
    data = [("fresh", 16, it, it is not None, *(0.0,) * 5) for it in intervals]
    return list(recovery(summary(spark, data, RECOVERY, SUMMED["recovery"])))


def test_recovery_keeps_a_size_at_which_nothing_healed(spark: SparkSession) -> None:
    [row] = recovered(spark, None)
    assert (row["n"], row["intervals"], row["max"], row["seeds"]) == (16, None, None, 0)


def test_recovery_has_mean_interval_worst_and_seeds(spark: SparkSession) -> None:
    [row] = recovered(spark, 3, 4, 5, None)
    assert (row["intervals"], row["max"], row["seeds"]) == (4.0, 5, 3)
    assert (row["low"], row["high"]) == (pytest.approx(1.5159, 1e-3), pytest.approx(6.4841, 1e-3))


def test_errata_count_states_that_did_not_heal(spark: SparkSession) -> None:
    data = [("E4", True, 5), ("E4", False, None), ("none", True, 7), ("E10", True, 3)]
    rows = [(name, "fifo", healed, after) for name, healed, after in data]
    schema = "left_out string, scheduler string, healed boolean, intervals int"
    found = errata(summary(spark, rows, schema, SUMMED["errata"]))
    assert [row["left_out"] for row in found] == ["none", "E4", "E10"]
    assert [row["not_healed"] for row in found] == [0, 1, 0]
    assert [row["max"] for row in found] == [7, 5, 3]


def test_exchanges_are_counted_for_each_publication_and_each_record(spark: SparkSession) -> None:
    data = [(1, 1_000, 100, 9_000), (1, 1_000, 100, 11_000), (10, 1_000, 100, 4_000)]
    rows = [(*it, "sketch", 2, 5, 0, 0, True) for it in data]
    schema = "packed int, stored int, differing int, bytes int, method string, n int"
    schema += ", messages int, bound int, redundant int, equal boolean"
    alone, packed = antientropy(summary(spark, rows, schema, SUMMED["antientropy"]))
    assert (alone["per_publication"], alone["per_record"]) == (100, 100)
    assert (packed["per_publication"], packed["per_record"]) == (40, 400)


def test_who_shares_a_record_shares_its_cost() -> None:
    (exchanges,) = (it for it in STUDY.experiments("quick") if it.name == "antientropy")
    found: dict[object, Result] = {}
    for cell in exchanges.cells:
        given = {name: cell.parameters[name] for name in ("method", "differing")}
        if cell.seed == 0 and given == {"method": "sketch", "differing": 100}:
            found[cell.parameters["packed"]] = exchanges.run(cell)
    assert sorted(found, key=str) == [1, PACKED]
    assert all(it.summary["equal"] for it in found.values())
    assert 3 * int(found[PACKED].summary["bytes"]) < 2 * int(found[1].summary["bytes"])


WORSE = {
    "recovery": {"healed": "false", "intervals": "1000"},
    "states": {"healed": "false"},
    "lemmas": {"healed": "false"},
    "buildring": {"healed": "false"},
    "quiet": {"ring": "1", "messages": "4.5"},
    "requests": {"expected": "1.1"},
    "operations": {"done": "false"},
    "backlog": {"equal": "false"},
    "silence": {"exchanges": "1"},
    "broadcast": {"reached": "1", "messages": "99999", "hops_max": "99"},
    "antientropy": {"equal": "false", "messages": "10"},
}


def test_checks_fail_when_a_promise_is_broken(
    some_rows: Mapping[str, DataFrame], some: Mapping[str, Summary]
) -> None:
    sums = dict(some)
    for name, change in WORSE.items():
        rows = some_rows[name]
        kinds = dict(rows.dtypes)
        spoiled = {it: f"cast({value} as {kinds[it]}) {it}" for it, value in change.items()}
        worse = rows.selectExpr(*(spoiled.get(it, it) for it in rows.columns))
        sums[name] = summed(worse, SUMMED[name])
    found = checks(ASKED.check, facts(sums))
    assert [row["check"] for row in found if row["holds"] != "no"] == []


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
