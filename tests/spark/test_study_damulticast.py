"""The study of daMulticast: its tables from rows made by hand, and all of it once, in small."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planaria.core.chance import stream
from planaria.studies.damulticast import checking
from planaria.studies.damulticast.facts import (
    _figures,
    _scaling,
    apart,
    asked,
    facts,
    farthest,
    links_of,
)
from planaria.studies.damulticast.literal import Network
from planaria.studies.damulticast.runs import LOSS
from planaria.studies.damulticast.study import STUDY, Extent, experiments, sweeps
from planaria.studies.damulticast.summed import columns, of_events
from planaria.studies.damulticast.tables import approaches, figure8, figure9, reliability
from planaria.studies.facts import Group, Moments, Summary, summed
from planaria.studies.judge import Fact, counted
from planaria.studies.study import SCALES
from study_lab import made, page, ran, summary

pytest_plugins = ("spark_session",)

SMALL = Extent("10,11,20", 3, 6, 2, [("stillborn", 0.0), ("observer", 0.3)], 2, 1, 10, [0.9, 0.99])
GROUPS = ["T0", "T1"]


def test_tables_have_the_names_and_columns_that_other_programs_read() -> None:
    judged = ["low", "high", "runs", "relation", "meaning", "cause"]
    ends = ["low", "high", "runs", "reading"]
    assert {name: list(columns) for name, columns in STUDY.promised.items()} == {
        "figure8": ["failed", "group", "sent", *ends, "most"],
        "figure9": ["failed", "link", "sent", "received", *ends],
        "figure10": ["failed", "group", "meaning", "value", *ends],
        "figure11": ["failed", "group", "meaning", "value", *ends],
        "baselines": ["algorithm", "event_group", "sent", "parasites", "memory", "reading"],
        "formulas": ["formula", "printed", "corrected"],
        "claims": ["claim", "paper", "measured", "holds", *judged],
        "literal": ["claim", "literal", "holds", "low", "high", "runs"],
        "checks": ["check", "measured", "bound", "holds", "relation"],
    }


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_fails_from_none_to_all_in_both_readings(scale: str) -> None:
    [events] = [it for it in experiments(scale) if it.name == "events"]
    for reading in ("paper", "planaria"):
        cells = [it.parameters for it in events.cells if it.parameters["reading"] == reading]
        shares = sorted({float(it["failed"]) for it in cells})
        assert shares == [tenth / 10 for tenth in range(11)]


def test_the_paper_scale_has_the_setting_of_section_vii() -> None:
    for it in experiments("paper"):
        sizes = {cell.parameters.get("sizes", "10,100,1000") for cell in it.cells}
        assert sizes <= {"10,100,1000", "1000", "3,8,20"}


def hand_made(spark: SparkSession) -> Summary:
    """Events over two groups: members, alive, sent, sent up, received there, reached."""
    names = ["members", "alive", "sent", "up_sent", "up_received", "reached"]
    columns = ", ".join(f"T{level}_{name} bigint" for level in range(2) for name in names)
    events = [
        (0.0, "paper", 2, 2, 2, 0, 0, 2, 10, 10, 40, 3, 2, 10),
        (0.0, "paper", 2, 2, 0, 0, 0, 0, 10, 10, 36, 1, 0, 9),
        (1.0, "paper", 2, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0),
        (1.0, "paper", 2, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0),
        (0.0, "planaria", 2, 2, 2, 0, 0, 2, 10, 10, 40, 9, 8, 10),
    ]
    data = [("2,10", "stillborn", *row) for row in events]
    schema = f"sizes string, failures string, failed double, reading string, {columns}"
    wanted = of_events(GROUPS, ("sizes", "reading", "failures", "failed"))
    return summary(spark, data, schema, wanted)


def test_figures_8_to_10_of_events_counted_by_hand(spark: SparkSession) -> None:
    events = hand_made(spark)
    half = 12.7062 * 2.0  # Student's t for two runs, times their standard error
    names = ("reading", "failed", "group", "sent", "runs", "most")
    found = figure8(events, GROUPS)
    assert [tuple(row[it] for it in names) for row in found] == [
        ("paper", 0.0, "T1", 38.0, 2, 40),
        ("paper", 0.0, "T0", 1.0, 2, 2),
        ("paper", 1.0, "T1", 0.0, 2, 0),
        ("paper", 1.0, "T0", 0.0, 2, 0),
        ("planaria", 0.0, "T1", 40.0, 1, 40),
        ("planaria", 0.0, "T0", 2.0, 1, 2),
    ]
    assert (found[0]["low"], found[0]["high"]) == (
        pytest.approx(38 - half),
        pytest.approx(38 + half),
    )
    assert (found[4]["low"], found[4]["high"]) == (None, None)
    ends = ("reading", "failed", "link", "sent", "received")
    assert [tuple(row[it] for it in ends) for row in figure9(events, GROUPS)] == [
        ("paper", 0.0, "T1->T0", 2.0, 1.0),
        ("paper", 1.0, "T1->T0", 0.0, 0.0),
        ("planaria", 0.0, "T1->T0", 9.0, 8.0),
    ]
    values = {
        (row["failed"], row["group"], row["meaning"]): row["value"]
        for row in reliability(events, GROUPS)
        if row["reading"] == "paper"
    }
    assert values == {
        (0.0, "T1", "of_all"): 0.95, (0.0, "T1", "of_alive"): 0.95, (0.0, "T1", "p_all"): 0.5,
        (0.0, "T0", "of_all"): 0.5, (0.0, "T0", "of_alive"): 0.5, (0.0, "T0", "p_all"): 0.5,
        (1.0, "T1", "of_all"): 0.0, (1.0, "T1", "of_alive"): 1.0, (1.0, "T1", "p_all"): 1.0,
        (1.0, "T0", "of_all"): 0.0, (1.0, "T0", "of_alive"): 1.0, (1.0, "T0", "p_all"): 1.0,
    }  # fmt: skip


def test_approaches_are_averaged_over_lossy_runs_only(spark: SparkSession) -> None:
    by = ("algorithm", "reading", "event_group", "loss")
    data = [("x", "paper", "T1", LOSS, 10.0, 2.0, 7), ("x", "paper", "T1", LOSS, 20.0, 4.0, 7),
            ("x", "paper", "T1", 0.0, 99.0, 99.0, 7)]  # fmt: skip
    schema = "algorithm string, reading string, event_group string, loss double, sent double, "
    schema += "parasites double, memory bigint"
    runs = summary(spark, data, schema, columns(by, "sent", "parasites", "memory"))
    [row] = approaches(runs)
    assert (row["sent"], row["parasites"], row["memory"]) == (15.0, 3.0, 7)


def known(value: float, other: float, runs: int = 400, tables: int = 4) -> dict[str, Fact]:
    return {
        "planaria observer 0.3 T1 of_all": Fact(value, value - 0.01, value + 0.01, runs),
        "nodes on T1 observer 0.3 T1 of_all": Fact(other, other - 0.01, other + 0.01, tables),
        "nodes on T0 observer 0.3 T1 of_all": Fact(0.9, 0.9, 0.9, tables),  # another event
    }


def runs_at(**at: Any) -> Summary:
    measures = {
        "T1 of_all": Moments(1, 0, at.pop("of_all", 0.0)),
        "T1 deviation": Moments(1, 0, 0.4),
        "T1 p_all": Moments(1, 0, 0.5),
        "T1 p_reached": Moments(1, 0, 1.0),
    }
    return Summary([Group(at, measures)])


@pytest.mark.parametrize(("other", "far"), [(0.5, False), (0.6, True)])
def test_nodes_and_chain_that_differ_from_the_arrays_are_seen(other: float, far: bool) -> None:
    """Arrays say .5 within .01; nodes .5 and .6; the chain .5 and, a standard error of .02, .6."""
    point = {"failures": "observer", "failed": 0.3}
    nodes = runs_at(event_group="T1", **point)
    [off] = checking.nodes_off(nodes, known(0.5, other), GROUPS)
    assert (off > 1) == far
    chain = runs_at(reading="planaria", of_all=other, **point)
    [off] = checking.chain_off(chain, known(0.5, 0.0), GROUPS)
    assert (off > 1) == far


@pytest.mark.parametrize(("tables", "far"), [(6, False), (800, True)])
def test_a_few_events_that_all_went_well_by_luck_are_no_disagreement(
    tables: int, far: bool
) -> None:
    """At 0.973, as arrays found, 36 events all reach everybody in a third of all cases."""
    found = {
        "planaria stillborn 0.0 T1 p_all": Fact(0.973, 0.961, 0.981, 1000),
        "nodes on T1 stillborn 0.0 T1 p_all": Fact(1.0, 1 - 3 / tables, 1 + 3 / tables, tables),
    }
    nodes = runs_at(event_group="T1", failures="stillborn", failed=0.0)
    [off] = checking.nodes_off(nodes, found, GROUPS)
    assert (off > 1) == far


def at_share(share: float) -> Moments:
    """Four hundred runs with a deviation of a hundredth."""
    return Moments(400, 0, share, 400 * 1e-4, share - 0.1, share + 0.1)


def test_rises_and_upper_groups_that_are_better_off_are_seen() -> None:
    shares = {0.0: (0.7, 0.9), 0.1: (0.81, 0.8), 0.2: (0.1, 0.85), 1.0: (0.9, 0.9)}
    point = {"sizes": "2,10", "failures": "stillborn", "reading": "paper"}
    more = dict.fromkeys(("T0 sent", "T1 sent"), Moments(1, 0, 12.0, 0.0, 12.0, 12.0))
    groups = [
        Group(
            {**point, "failed": failed},
            {"T0 of_all": at_share(t0), "T1 of_all": at_share(t1), **more},
        )
        for failed, (t0, t1) in shares.items()
    ]
    found = dict(_figures(Summary(groups), GROUPS))
    assert found["paper rise"].value == pytest.approx(0.05)
    assert found["paper excess"].value == pytest.approx(0.01)
    assert found["paper most sent T0"].value == 6.0  # of two that send one copy each
    assert farthest([(at_share(0.5), at_share(0.4))]).value == pytest.approx(-0.1)
    gap = apart(at_share(0.6), at_share(0.5))
    assert gap.low is not None
    assert 0 < gap.low < (gap.value or 0.0) == pytest.approx(0.1)


def test_growth_is_of_the_mean_at_the_largest_size_over_that_at_the_smallest(
    spark: SparkSession,
) -> None:
    """Two events each: 10 ln 10 and 3 times that; 100 ln 100 times 3 and times 5; S = 2 is out."""
    data = [(10, 23.02585), (10, 69.07755), (100, 1381.55106), (100, 2302.58509), (2, 1.0)]
    runs = summary(spark, data, "size bigint, sent double", columns(("size",), "sent"))
    found = dict(_scaling(runs))
    assert found["scaling growth"].value == pytest.approx(2.0)
    assert found["scaling share of the bound"].value == pytest.approx(4 / (3 * 9))


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


def test_links_are_named_by_their_ends_the_lowest_first() -> None:
    assert links_of(["T0", "T1", "T2"]) == ["T2->T1", "T1->T0"]


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> dict[str, Summary]:
    """All of the study, in small."""
    found = {}
    for it in sweeps(SMALL):
        few = [cell for cell in it.cells if it.name != "links" or cell.seed < 4]
        rows = spark.createDataFrame(ran(it, STUDY, few))
        found[it.name] = summed(rows, it.summed)
    return found


def test_cells_that_all_raised_leave_claims_undecided_and_a_page(
    small: Mapping[str, Summary],
) -> None:
    """No search as printed came to its end, and no run without loss."""
    links = small["links"].where(reading=["planaria", "start"])
    found = {**small, "links": links, "baselines": small["baselines"].where(loss=LOSS)}
    tables = made(STUDY, found)
    lost = {row["claim"]: row["holds"] for row in tables["claims"] if row["measured"] is None}
    assert lost["VI-D: so it is if nothing is lost"] == "undecided"
    unread = {row["claim"]: row["holds"] for row in tables["literal"] if row["literal"] is None}
    assert sum(claim.startswith("V-A, Fig.") for claim in unread) == 2
    assert set(unread.values()) | set(lost.values()) == {"undecided"}
    assert page(STUDY, tables)


def test_a_small_study_fills_every_table_and_figure(small: Mapping[str, Summary]) -> None:
    tables = made(STUDY, small)
    assert all(tables.values())
    for name in ("figure8", "figure9", "figure10", "figure11", "baselines"):
        assert {row["reading"] for row in tables[name]} == {"paper", "planaria"}
    facts_of = facts(small)
    assert [name for name in asked(small).names() if name not in facts_of] == []  # misspelt
    [held] = [row for row in tables["claims"] if row["claim"].startswith("VI-E.2: a process")]
    assert held["measured"] == held["paper"] + 3  # z superprocesses beside the view of real nodes
    claims = [row["claim"] for row in tables["claims"]]
    assert len(set(claims)) == len(claims) > counted(tables["claims"]).claims > 40
    assert {row["claim"] for row in tables["literal"]} <= set(claims)
    assert len(tables["figure10"]) == 2 * 11 * 3 * 3
    text = page(STUDY, tables)
    assert text.count("<figure") == 7
