"""Paper 3, a broker tree over a DHT: Figures 3 and 4, the worked example, and every claim."""

from itertools import combinations
from pathlib import Path

from planaria.spark.grid import Cell, crossed
from planaria.studies.dhttree import runs as runs
from planaria.studies.dhttree.facts import DEGREES, HOSTS_MAX, PROMISED, SUMMED, facts, tables
from planaria.studies.dhttree.figures import figures
from planaria.studies.judge import load
from planaria.studies.study import Experiment, Study

BITS = 8  # 256 keys, section 4.1
HOSTS = tuple(range(10, HOSTS_MAX + 1, 10))
HERE = Path(__file__).parent
ASKED = load(HERE / "claims.toml", {"degree": DEGREES})

_AREAS = dict.fromkeys(("join", "join_ideal", "leave", "leave_ideal"), "float64")
_CHURN = {
    **dict.fromkeys(("one", "two", "three"), "float64"),
    "degree_max": "int64",
    **dict.fromkeys(("tree", "printed_tree", "tied"), "bool"),
    **_AREAS,
}
_SETS = dict.fromkeys(
    (
        *("sets", "owned", "trees", "different", "printed_trees"),
        *("degree_max", "printed_degree_max", "lookups_max"),
    ),
    "int64",
)
_TOGETHER = dict.fromkeys(("together", "cases", "printed", "amended"), "int64")
_EXAMPLE = {
    **dict.fromkeys(("topmost", "printed_topmost", "parent", "links", "drawn"), "int64"),
    "neighbours": "string",
}
_CASES = dict.fromkeys(
    (
        *("property_degree", "links_dropped", "links_kept"),
        *("path_depth", "path_ideal"),
    ),
    "int64",
)
_WIDE = {"within": "float64", "kept": "bool"}
_LOOKUPS = {"ours": "float64", "ours_max": "int64", "printed": "float64", "printed_max": "int64"}
_DEPTHS = dict.fromkeys(("depth", "ideal", "degree_max"), "int64")
_LIVE = {
    **dict.fromkeys(("healed", "tree"), "bool"),
    **dict.fromkeys(("intervals", "degree_max"), "int64"),
    "hops": "float64",
}


def experiments(scale: str) -> list[Experiment]:
    """The sweeps of a scale."""
    quick = scale == "quick"
    seeds = range(12) if quick else range(200)
    example = [
        Cell({"step": step, "host": it}, 0) for step, at in runs.EXAMPLE.items() for it in at
    ]
    degrees = {"degree": [4, 5, 6], "bits": [8, 12], "hosts": [120]}
    cases = crossed({"keys": [15]}, [0])
    return [
        Experiment(name, columns, run, cells, SUMMED[name], share)
        for name, columns, run, cells, share in (
            ("churn", _CHURN, runs.run_churn, _churn(scale), 8),
            ("wide_churn", _AREAS, runs.run_wide_churn, _wide_churn(scale), 4),
            ("sets", _SETS, runs.run_sets, _sets(scale), 4),
            ("together", _TOGETHER, runs.run_together, _together(scale), 2),
            ("example", _EXAMPLE, runs.run_example, example, 20),
            ("cases", _CASES, runs.run_cases, cases, 1),
            ("wide", _WIDE, runs.run_wide, crossed(degrees, seeds), 20),
            ("lookups", _LOOKUPS, runs.run_lookups, _lookups(scale), 4),
            ("depths", _DEPTHS, runs.run_depths, _depths(scale), 4),
            ("live", _LIVE, runs.run_live, _live(scale), 4),
        )
    ]


def _wide_churn(scale: str) -> tuple[Cell, ...]:
    """Searches on wide trees cost ten times those on binary ones, so there are fewer."""
    changes, seeds = (5, 12) if scale == "quick" else (10, 40)
    grid = {"degree": [int(it) for it in DEGREES], "hosts": [10, HOSTS_MAX]}
    return crossed({**grid, "bits": [BITS], "changes": [changes]}, range(seeds))


def _churn(scale: str) -> tuple[Cell, ...]:
    grid = {"hosts": HOSTS, "bits": [BITS], "changes": [10 if scale == "quick" else 20]}
    cells = crossed(grid, range(20 if scale == "quick" else 100))
    if scale == "beyond":
        far = {"hosts": [250, 500, 1000, 2000], "bits": [160], "changes": [10]}
        cells += crossed(far, range(20))
    return cells


def _sets(scale: str) -> tuple[Cell, ...]:
    bits, parts = (3, 1) if scale == "quick" else (4, 64)
    return crossed({"bits": [bits], "part": list(range(parts)), "parts": [parts]}, [0])


def _together(scale: str) -> tuple[Cell, ...]:
    """On 15 keys; `beyond` is every set of hosts with every pair of changes."""
    if scale == "quick":
        return crossed({"changed": ["4", "8", "4 8", "6 8", "8 12"], "size": [4]}, [0])
    keys = range(1, 16)
    changed = [*(str(key) for key in keys), *(f"{a} {b}" for a, b in combinations(keys, 2))]
    sizes = (4, 5) if scale == "paper" else range(1, 16)
    return crossed({"changed": changed, "size": list(sizes)}, [0])


def _lookups(scale: str) -> tuple[Cell, ...]:
    bits = [8, 10, 12, 160] if scale == "quick" else [8, 10, 12, 14, 16, 64, 160]
    return crossed({"bits": bits, "hosts": [30]}, range(3 if scale == "quick" else 10))


def _depths(scale: str) -> tuple[Cell, ...]:
    hosts = {
        "quick": [120, 1000, 4000],
        "paper": [120, 1000, 10_000],
        "beyond": [120, 1000, 10_000, 100_000],
    }[scale]
    return crossed({"hosts": hosts}, range(2 if scale == "quick" else 10))


def _live(scale: str) -> tuple[Cell, ...]:
    sizes = {"quick": [8, 16], "paper": [8, 16, 32, 64], "beyond": [8, 16, 32, 64, 128]}[scale]
    starts = [
        ("corrupt", "none"),
        ("fresh", "none"),
        ("legitimate", "churn"),
        ("legitimate", "crash"),
    ]
    return tuple(
        Cell({"start": start, "nemesis": nemesis, "n": n}, seed)
        for start, nemesis in starts
        for n in sizes
        for seed in range(3 if scale == "quick" else 20)
    )


STUDY = Study(
    name="dhttree",
    title="A broker tree over a DHT",
    paper="Paolo Costa and Davide Frey: Publish-Subscribe Tree Maintenance over a DHT. "
    "Dipartimento di Elettronica e Informazione, Politecnico di Milano",
    promised=PROMISED,
    experiments=experiments,
    asked=lambda _: ASKED,
    facts=facts,
    tables=tables,
    figures=figures,
    page=(HERE / "page.html").read_text(encoding="utf-8"),
)
