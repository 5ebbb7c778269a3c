"""The study of 'Data-Aware Multicast' (Baehni, Eugster, Guerraoui, 2003): section VI and VII."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from planaria.lab.gossip.baselines import APPROACHES
from planaria.spark.grid import Cell, Value, crossed
from planaria.spark.sweep import Result
from planaria.studies.damulticast import literal as letter
from planaria.studies.damulticast import runs as runs
from planaria.studies.damulticast.facts import (
    BROADCAST,
    HERE,
    OURS,
    READINGS,
    TARGET,
    asked,
    facts,
)
from planaria.studies.damulticast.figures import figures, groups_in
from planaria.studies.damulticast.formulas import FORMULAS, OF_GROUP, formula
from planaria.studies.damulticast.summed import columns, of_events, of_nodes
from planaria.studies.damulticast.tables import PROMISED, tables
from planaria.studies.facts import Summed
from planaria.studies.report import at as row_at
from planaria.studies.study import Experiment, Study, Tables

FAILED = [tenth / 10 for tenth in range(11)]
FAILURES = ["stillborn", "observer"]
LINKS_MIN = 15  # runs of a search at least: with ten searchers each, enough for a verdict


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
    return [*_events_of(it), *_others_of(it)]


Sweep = tuple[str, Mapping[str, str], Callable[[Cell], Result], Sequence[Cell], Summed, int]


def _events_of(it: Extent) -> list[Experiment]:
    """Single events: as arrays, to the letter, over real nodes, by the exact chain."""
    groups = runs.groups_of(it.sizes)
    counts = runs.columns_of(it.sizes, runs.COUNTS, "int64")
    means_of = runs.columns_of(it.sizes, runs.MEANS, "float64")
    chain = runs.columns_of(it.sizes, runs.PREDICTED, "float64")
    grid: Axes = {"sizes": [it.sizes], "failures": FAILURES[1:], "failed": FAILED}
    exact = crossed(grid | {"reading": READINGS}, [0])
    point = ("failures", "failed")
    letters = of_events(groups, ("topic",), "joined")
    events = of_events(groups, ("sizes", "reading", *point))
    predicted = {
        f"{group} {name}": f"{group}_{name}" for group in groups for name in runs.PREDICTED
    }
    every: list[Sweep] = [
        ("events", counts, runs.event, _events(it), events, 400),
        ("literal", counts | letter.JOINED, letter.event, _letters(it), letters, 10),
        ("nodes", means_of, runs.nodes, _nodes(it),
         of_nodes(groups, runs.MEANS, ("event_group", *point)), 2),
        ("exact", chain, runs.exact, exact, Summed(("reading", *point), predicted), 20),
    ]  # fmt: skip
    return [Experiment(*each) for each in every]


def _others_of(it: Extent) -> list[Experiment]:
    """The alternatives, sizes, dials, healing, searches, supertopics and formulas."""
    scaled = [size for size in (2, 3, 10, 100, 1000, 10_000, 100_000) if size <= it.largest]
    dialed = crossed({"sizes": [it.sizes], "target": list(it.targets)}, range(it.few))
    supers = crossed({"supertopics": [1, 2]}, range(5 * it.few))
    healed = crossed({"sizes": ["3,8,20"], "start": ["corrupt"]}, range(it.few))
    pair = {"printed": "float64", "corrected": "float64"}
    approach = columns(("sizes", "algorithm", "reading", "event_group", "loss"), *runs.APPROACH)
    every: list[Sweep] = [
        ("baselines", runs.APPROACH, runs.approach, _baselines(it), approach, 400),
        ("scaling", {"sent": "int64"}, runs.scaling, crossed({"size": scaled}, range(20)),
         columns(("size",), "sent"), 8),
        ("dials", runs.DIALED, runs.dials, dialed, columns(("target",), "everybody"), 6),
        ("healing", runs.HEALED, runs.healing, healed, columns((), "healed"), 3),
        ("links", letter.LINKED, letter.links, _links(it),
         columns(("reading", "start"), *letter.LINKED), 10),
        ("inheritance", runs.INHERITED, runs.inheritance, supers,
         columns(("supertopics",), "lowest"), 30),
        ("formulas", pair, formula, _formulas(it), columns(("formula",), *pair), 50),
    ]  # fmt: skip
    return [Experiment(*each) for each in every]


def _events(it: Extent) -> tuple[Cell, ...]:
    """Both readings at every share of failures; more events where nobody failed.

    The paper's sends vary more, and its own numbers are about it: twice as many.
    """
    grid: Axes = {"sizes": [it.sizes], "failures": FAILURES, "failed": FAILED, "reading": READINGS}
    sure: Axes = grid | {"failures": ["stillborn"], "failed": [0.0]}
    paper: Axes = sure | {"reading": ["paper"]}
    return (
        *crossed(grid, range(it.events)),
        *crossed(sure, range(it.events, it.surely)),
        *crossed(paper, range(it.surely, 2 * it.surely)),
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
    grid: Axes = {"sizes": [it.sizes], "event_group": groups[:-1], "loss": [runs.LOSS]}
    bottom: Axes = grid | {"event_group": groups[-1:], "loss": [runs.LOSS, 0.0]}
    alone: Axes = {"sizes": [runs.SINGLE], "event_group": ["T0"], "loss": [runs.LOSS, 0.0]}
    ours: Axes = {"algorithm": [OURS], "reading": READINGS}
    others: Axes = {"algorithm": [it for it in APPROACHES if it != OURS], "reading": ["paper"]}
    often = range(it.surely // 2)
    cells: list[Cell] = []
    for which in (ours, others):
        cells += crossed(grid | which, range(max(20, it.events // 3)))
        cells += crossed(bottom | which, often)
    cells += crossed(alone | ours, often)
    cells += crossed(alone | others | {"algorithm": [BROADCAST]}, often)
    return tuple(cells)


def _links(it: Extent) -> tuple[Cell, ...]:
    grid = {"reading": ["planaria", "printed"], "start": ["nothing", "dead"]}
    only_start = {"reading": ["start"], "start": ["nothing"]}
    seeds = range(max(LINKS_MIN, it.few))
    return (*crossed(grid, seeds), *crossed(only_start, seeds))


def _formulas(it: Extent) -> tuple[Cell, ...]:
    of_groups = [f"{name} {group}" for name in OF_GROUP for group in runs.groups_of(it.sizes)]
    return crossed({"sizes": [it.sizes], "formula": [*FORMULAS, *of_groups]}, [0])


def numbers(tables: Tables) -> Mapping[str, Any]:
    """What the page says beside its tables."""
    rows, events = tables["baselines"], sorted(row["runs"] for row in tables["figure8"])
    groups = groups_in(tables["figure8"])
    widest = [row for row in rows if row["event_group"] == groups[0]]
    ours = row_at(rows, algorithm=OURS, reading="planaria", event_group=groups[1])
    flood = row_at(rows, algorithm=BROADCAST, event_group=groups[1])
    return {
        "groups": groups,
        "links": groups_in(tables["figure9"], "link"),
        "runs": (events[0], events[-1]),
        "best": min(widest, key=lambda row: float(row["memory"])),
        "inner": {"ours": ours, "flood": flood},
    }


STUDY = Study(
    name="damulticast",
    title="daMulticast: hierarchical topics by gossip",
    paper="S. Baehni, P. Th. Eugster, R. Guerraoui: Data-Aware Multicast. "
    "Technical Report IC/2003/73, EPFL, 2003",
    promised=PROMISED,
    experiments=experiments,
    asked=asked,
    facts=facts,
    tables=tables,
    figures=figures,
    page=(HERE / "page.html").read_text(encoding="utf-8"),
    numbers=numbers,
)
