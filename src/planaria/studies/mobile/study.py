"""The study of the link reversal paper: anonymous topics among mobile nodes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planaria.spark.grid import Cell, Grid, crossed
from planaria.studies.judge import load
from planaria.studies.mobile import runs as runs
from planaria.studies.mobile.facts import PROMISED, SUMMED, facts, tables
from planaria.studies.mobile.figures import figures
from planaria.studies.mobile.questions import COLUMNS, answer, questions
from planaria.studies.study import SCALES, Experiment, Study, Tables

HERE = Path(__file__).parent
ASKED = load(HERE / "claims.toml")

# At the three scales. The paper measures nothing, so it sets no sizes: `paper` is 64 nodes, where
# the figures of the errata were taken.
GRAPHS = (
    ("path:24", "ring:24", "grid:4x6", "star:24", "complete:8", "rgg:24:6", "tree:24"),
    ("path:64", "ring:64", "grid:8x8", "star:64", "complete:16", "rgg:64:8", "tree:64"),
    ("path:400", "ring:400", "grid:20x20", "star:60", "complete:48", "rgg:400:10", "tree:400"),
)
HEALING = (
    ("grid:4x4", "rgg:24:6"),
    ("path:64", "grid:8x8", "rgg:64:8"),
    ("path:400", "grid:20x20", "rgg:400:10"),
)
MOVING = ("waypoint:16", "waypoint:40", "waypoint:150:10")
OBSERVED = (
    (("grid:4x4", "5"), ("grid:4x4", "0+15"), ("ring:16", "0"), ("star:16", "1"), ("star:16", "0")),
    (
        ("grid:8x8", "27"),
        ("grid:8x8", "0"),
        ("grid:8x8", "9+14+49+54"),
        ("ring:64", "0"),
        ("star:64", "1"),
        ("star:64", "0"),
    ),
    (
        ("grid:16x16", "119"),
        ("grid:16x16", "34+45+210+221"),
        ("ring:256", "0"),
        ("star:60", "1"),
        ("star:60", "0"),
    ),
)
SEEDS = (2, 5, 2)
WALK = 4  # how often a publication is handed over, on average, before it is flooded
ORIENTATIONS = ("heights", "edge-bits")


INT, REAL, YES = "int64", "float64", "bool"
SUMMARIES: Mapping[str, Mapping[str, str]] = {
    "questions": COLUMNS,
    "fairness": {
        "nodes": INT,
        "executions": REAL,
        "ratio": REAL,
        "longest_wait": INT,
        "concurrency": REAL,
        "silent": INT,
        "apart": INT,
        "cyclic": INT,
    },
    "spread": {
        "links": INT,
        "rounds": REAL,
        "rounds_max": INT,
        "sends": REAL,
        "later": INT,
        "spoken": REAL,
        "delivered": REAL,
        "duplicated": INT,
        "table_4": INT,
        "flooding": INT,
    },
    "relay": {"before": YES, "got": YES},
    "healing": {
        "intervals": INT,
        "healed": YES,
        "missed": INT,
        "duplicated": INT,
        "longest_wait": INT,
        "silent": INT,
        "cyclic": INT,
    },
    "merging": {
        "nodes": INT,
        "silent": INT,
        "apart": REAL,
        "intervals": INT,
        "healed": YES,
        "missed": INT,
        "duplicated": INT,
    },
    "layers": {"moved": INT, "specified": REAL, "starved": INT, "members": INT},
    "figure21": {"first": INT, "second": INT},
    "connections": {"sets": INT, "cutting": INT},
    "anonymity": {
        "nodes": INT,
        "blind": REAL,
        "first_sender": REAL,
        "best_guess": REAL,
        "bound": REAL,
    },
}


def experiments(scale: str) -> Sequence[Experiment]:
    """All sweeps."""
    level = SCALES.index(scale)
    seeds, share = range(SEEDS[level]), (8, 2, 1)[level]
    joined: Grid = {"links": [1, 2, 4], "orientation": ORIENTATIONS}
    turning: Grid = {"graph": GRAPHS[level], "orientation": ORIENTATIONS}
    return [
        Experiment(name, SUMMARIES[name], run, cells, SUMMED[name], together)
        for name, run, cells, together in (
            ("questions", answer, questions(level, len(seeds)), share),
            ("fairness", runs.fairness, crossed(turning, seeds), share),
            ("spread", runs.spread, spreading(level), share),
            ("relay", runs.relay, crossed({"nodes": [3]}, range(10 * len(seeds))), 100),
            ("healing", runs.healing, healing(level), share),
            ("merging", runs.merging, crossed(joined, seeds), 8),
            ("layers", runs.independence, crossed({"layers": [3]}, seeds), 2),
            ("figure21", runs.figure_2_1, crossed({"processors": [5]}, seeds), 20),
            ("connections", runs.connections, crossed({"f": [1, 2, 3], "gone": [1, 2]}, seeds), 20),
            ("anonymity", runs.anonymity, watching(level), share),
        )
    ]


def spreading(level: int) -> tuple[Cell, ...]:
    """All graphs without echo, and the small grid of the errata with it."""
    seeds = range(SEEDS[level])
    graphs = ("grid:3x3", *GRAPHS[level])
    plain = crossed({"graph": graphs, "orientation": ORIENTATIONS, "echo": [False]}, seeds)
    echo = crossed({"graph": ["grid:3x3"], "orientation": ORIENTATIONS, "echo": [True]}, seeds)
    return plain + echo


def healing(level: int) -> tuple[Cell, ...]:
    """Arbitrary states where that is promised; all that join at once; motion; Note 2's ring."""
    seeds = range(SEEDS[level])
    joining = {"orientation": ORIENTATIONS, "start": ["fresh"]}
    corrupt = {"orientation": ["heights"], "start": ["corrupt"]}
    return (
        crossed({"graph": HEALING[level], **corrupt}, seeds)
        + crossed({"graph": [*HEALING[level], MOVING[level]], **joining}, seeds)
        + crossed(
            {"graph": ["ring:5"], "orientation": ["edge-bits"], "start": ["fresh"]},
            range(10 * len(seeds)),
        )
    )


def watching(level: int) -> tuple[Cell, ...]:
    """Who watches where."""
    return tuple(
        Cell({"graph": graph, "observers": observers, "walk": walk}, seed)
        for graph, observers in OBSERVED[level]
        for walk in (0, WALK)
        for seed in range(SEEDS[level])
    )


def numbers(tables: Tables) -> Mapping[str, Any]:
    """What the page says beside its tables."""
    bits = [
        row
        for row in tables["cases"]
        if (row["question"], row["reading"]) == ("two_states", "ours")
    ]
    cases = sum(row["cases"] for row in bits)
    return {
        "two_states": cases - sum(row["failing"] for row in bits),
        "two_states_cases": cases,
        "table_4": max(row["table_4"] / row["flooding"] for row in tables["cost"]),
        "letters_no": sum(row["holds"] == "no" for row in tables["literal"]),
    }


STUDY = Study(
    name="mobile",
    title="Anonymous topics among moving nodes (link reversal)",
    paper=(
        "E. Anceaume, A. K. Datta, M. Gradinariu and G. Simon: Publish/Subscribe Scheme for Mobile "
        "Networks. POMC'02, October 30-31, 2002, Toulouse, France."
    ),
    promised=PROMISED,
    experiments=experiments,
    asked=lambda _: ASKED,
    facts=facts,
    tables=tables,
    figures=figures,
    page=(HERE / "page.html").read_text(encoding="utf-8"),
    numbers=numbers,
)
