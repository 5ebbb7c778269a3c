"""The study of the link reversal paper: its tables by hand, its questions, its cells."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from planaria.lab.mobile import figures
from planaria.literal.mobile import graph_of
from planaria.spark.grid import Cell
from planaria.studies.facts import Summary
from planaria.studies.mobile import runs
from planaria.studies.mobile.questions import QUESTIONS, answer
from planaria.studies.mobile.small import Field, unfair_ours
from planaria.studies.mobile.study import STUDY, SUMMARIES, experiments
from study_lab import found_in, made, page

pytest_plugins = ("spark_session",)

TYPES = {"int64": "bigint", "float64": "double", "bool": "boolean"}
PARAMETERS = {
    "questions": "question string, reading string, n bigint",
    "fairness": "graph string, orientation string",
    "spread": "graph string, orientation string, echo boolean",
    "relay": "nodes bigint",
    "healing": "graph string, orientation string, start string",
    "merging": "links bigint, orientation string",
    "layers": "layers bigint",
    "figure21": "processors bigint",
    "connections": "f bigint, gone bigint",
    "anonymity": "graph string, observers string, walk bigint",
}
GOOD: dict[str, list[tuple[Any, ...]]] = {
    "questions": [
        (name, reading, 3, failing, 4)
        for name, question in QUESTIONS.items()
        for reading, failing in (("ours", 0), ("literal", 1))
        if getattr(question, reading) is not None
    ],
    "fairness": [
        ("path:4", "heights", 4, 0.5, 1.0, 4, 2.0, 0, 1, 0),
        ("path:4", "heights", 4, 0.25, 2.0, 6, 1.0, 0, 1, 0),
        ("path:4", "edge-bits", 4, 9.0, 9.0, 8, 1.0, 0, 1, 0),
    ],
    "spread": [
        ("path:4", "heights", False, 3, 4.0, 5, 3.0, 0, 1.0, 1.0, 0, 30, 3),
        ("path:4", "heights", False, 3, 2.0, 9, 3.0, 0, 1.0, 1.0, 0, 30, 3),
        ("grid:3x3", "heights", False, 12, 4.0, 5, 12.0, 0, 1.0, 1.0, 0, 160, 16),
        ("grid:3x3", "heights", True, 12, 4.0, 5, 24.0, 0, 1.0, 1.0, 0, 160, 16),
    ],
    "relay": [(3, False, True), (3, True, False)],
    "healing": [
        ("ring:5", "edge-bits", "fresh", 4, True, 0, 0, 3, 0, 0),
        ("waypoint:9", "heights", "fresh", 9, True, 0, 0, 3, 0, 0),
    ],
    "merging": [(2, "heights", 32, 0, 1.0, 12, True, 0, 0)],
    "layers": [(3, 0, 1.0, 0, 36)],
    "figure21": [(5, 3, 1)],
    "connections": [(1, 1, 10, 5), (2, 1, 10, 0), (3, 2, 45, 0), (3, 1, 10, 0)],
    "anonymity": [
        ("grid:4x4", "5", 0, 16, 0.1, 0.2, 0.2, 0.3),
        ("grid:4x4", "5", 4, 16, 0.1, 0.1, 0.1, 0.3),
        ("grid:4x4", "0+15", 0, 16, 0.1, 0.9, 0.2, 0.3),
        ("star:9", "0", 0, 9, 0.1, 1.0, 1.0, 1.0),
    ],
}


def runs_of(spark: SparkSession, **changed: list[tuple[Any, ...]]) -> dict[str, Summary]:
    """Runs of every experiment, good ones unless told."""
    rows = {}
    for name, data in (GOOD | changed).items():
        columns = ", ".join(f"{it} {TYPES[kind]}" for it, kind in SUMMARIES[name].items())
        rows[name] = spark.createDataFrame(data, f"{PARAMETERS[name]}, {columns}")
    return found_in(STUDY, rows)


def verdicts(table: list[dict[str, Any]], name: str) -> dict[str, str]:
    return {row[name]: row["holds"] for row in table}


FALSE = [
    "Lemma 5: a scheme without starvation needs at least so many states",
    "Section 4.1: the same, sent back too, as Table 4 does",
    "Section 4.1: copies on a path, as a share of flooding's",
]


def test_good_rows_make_every_check_hold_and_few_claims_false(spark: SparkSession) -> None:
    tables = made(STUDY, runs_of(spark))
    fair = {"graph": "path:4", "executions": 0.375, "ratio": 1.5, "longest_wait": 6}
    assert tables["fairness"] == [fair | {"sends": 3.0, "rounds_mean": 3.0, "rounds_max": 9}]
    assert set(verdicts(tables["checks"], "check").values()) == {"yes"}
    claims = verdicts(tables["claims"], "claim")
    assert [claim for claim, holds in claims.items() if holds == "no"] == FALSE
    assert claims["Corollary 1: share of runs in which all layers do what one must"] == "undecided"
    found = {row["claim"]: (row["literal"], row["holds"]) for row in tables["literal"]}
    assert set(found) < set(claims)
    assert found["Lemma 1: share of all states with a directed cycle"] == (0.25, "no")
    assert found["Section 4.1: copies on a 3x3 grid, as a share of flooding's"] == (10.0, "no")
    assert page(STUDY, tables).count("<figure") == 6


def test_false_figures_make_their_claims_and_checks_false(spark: SparkSession) -> None:
    wrong: dict[str, tuple[Any, ...]] = {
        "questions": ("cyclic", "ours", 3, 1, 4),
        "relay": (3, False, False),
        "healing": ("waypoint:9", "heights", "fresh", 9, False, 1, 1, 3, 0, 1),
        "fairness": ("path:4", "heights", 4, 0.5, 1.0, 9, 2.0, 1, 2, 0),
        "layers": (3, 1, 0.0, 0, 36),
        "anonymity": ("ring:9", "0", 0, 9, 0.1, 0.1, 0.4, 0.3),
        "spread": ("path:4", "heights", False, 3, 4.0, 5, 4.0, 1, 0.9, 0.9, 0, 30, 3),
    }
    spoiled = {name: [*GOOD[name], row] for name, row in wrong.items()}
    tables = made(STUDY, runs_of(spark, **spoiled))
    assert set(verdicts(tables["checks"], "check").values()) == {"no"}
    claims = verdicts(tables["claims"], "claim")
    assert [claim for claim, holds in claims.items() if holds == "no" and claim not in FALSE] == [
        "Theorem 1: share of runs in which one layer moves another",
        "Corollary 1: share of runs in which all layers do what one must",
        "Lemma 1: share of all states with a directed cycle",
        "Lemma 8: publications missed by subscribers that move",
        "Lemma 8: share of runs in which the news of a relay that left is lost",
        "Lemma 9: share of nodes without a turn in 200 rounds",
    ]


def test_what_no_run_answered_is_undecided_and_can_be_told(spark: SparkSession) -> None:
    """No case of Lemma 5; every run of several layers broken off; nothing published on the path."""
    left = {
        "questions": [row for row in GOOD["questions"] if row[0] != "two_states"],
        "layers": [(3, 1, 0.0, 0, 0)],
        "spread": [row for row in GOOD["spread"] if row[0] != "path:4"],
    }
    tables = made(STUDY, runs_of(spark, **left))
    for table in ("claims", "literal"):
        found = verdicts(tables[table], "claim")
        lemma = "Lemma 5: a scheme without starvation needs at least so many states"
        assert found[lemma] == "undecided"
    claims = verdicts(tables["claims"], "claim")
    assert claims["Lemma 6: share of nodes that starve because of another layer"] == "undecided"
    assert [row["graph"] for row in tables["fairness"]] == ["path:4"]
    assert page(STUDY, tables)


def test_cell_of_every_experiment_fills_its_columns() -> None:
    for experiment in experiments("quick"):
        found = experiment.run(experiment.cells[-1]).summary
        assert sorted(found) == sorted(experiment.columns)
        kinds = {"int64": int, "float64": float, "bool": bool}
        assert all(isinstance(found[it], kinds[kind]) for it, kind in experiment.columns.items())


def test_printed_text_fails_and_heights_hold_where_the_errata_say_so() -> None:
    def asked(question: str, reading: str, n: int) -> tuple[int, int]:
        found = answer(Cell({"question": question, "reading": reading, "n": n}, 0)).summary
        return found["failing"], found["cases"]

    assert asked("starving", "literal", 4) == (78, 84)
    assert asked("starving", "ours", 4) == (0, 84)
    assert asked("two_states", "ours", 3) == (0, 10)
    assert asked("step_again", "ours", 3) == (57, 305)
    assert asked("step_idle", "ours", 3) == (0, 114)
    assert asked("layer_starving", "literal", 3) == (3, 3)
    assert asked("waiting", "literal", 4)[0] < asked("running", "literal", 4)[0] < 30
    for name, question in QUESTIONS.items():
        n = question.smallest + (name in ("cyclic", "sinkless", "join_cyclic", "join_starving"))
        if name not in ("outward", "leave") and question.literal:
            n = max(n, 3 if name != "step_cyclic" else 4)
            assert asked(name, "literal", n)[0] > 0, name
        if question.ours and name != "step_again":
            assert asked(name, "ours", question.smallest)[0] == 0, name


def test_field_hears_everything_at_once_and_sees_cycles_and_starvation() -> None:
    triangle = graph_of(3, [(0, 1), (0, 2), (1, 2)])
    field = Field(triangle, (1, 2, 3), (0, 0, 0))
    assert (field.sinks(), field.acyclic()) == ([0], True)
    field.fire([0])
    assert field.sinks() == [1]
    assert all(view[0] == 1 for node in field.nodes[1:] for view in [node.views[0]])
    assert field.starved() == []
    for node in field.nodes:
        node.reverse = lambda: None  # type: ignore[method-assign]
    assert field.starved() == [0, 2]
    assert unfair_ours(3, 0) == (0, 10)


def test_whole_says_whether_the_rest_is_connected() -> None:
    line = {0: [1], 1: [0, 2], 2: [1]}
    assert runs.whole(line, (0,))
    assert not runs.whole(line, (1,))


def test_silence_is_asked_for_when_everybody_had_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a complete graph one node speaks at a time; the last hear from all before they speak."""
    monkeypatch.setattr(figures, "SILENCE", 6)
    cell = Cell({"graph": "complete:16", "orientation": "heights", "echo": False}, 0)
    found = runs.spread(cell).summary
    assert (found["later"], found["delivered"], found["sends"]) == (0, 1.0, found["links"])
