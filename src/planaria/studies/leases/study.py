"""Paper 4, leased content-based routing: Figure 2, its crossings, stabilization, every claim."""

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

from planaria.lab.routing.analysis import MUS, OMEGAS, RHOS
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.spark.grid import Cell, Value, crossed
from planaria.studies.judge import load
from planaria.studies.leases import runs as runs
from planaria.studies.leases.cases import CASES, run_case
from planaria.studies.leases.facts import PI_STEPS, PROMISED, SUMMED, facts, tables
from planaria.studies.leases.figures import figures
from planaria.studies.study import Experiment, Study, Tables

SUBSCRIPTIONS_MAX = 500_000  # of Figure 2
BESIDE = (0.95, 1.05)  # where a crossing is looked for, in parts of the closed form's
HERE = Path(__file__).parent
ASKED = load(HERE / "claims.toml")

_NUMBERS = ("saved_1", "control", "alive", "crossed")
_SETTING = {
    **dict.fromkeys(("brokers", "leaves", "links", "depth"), "int64"),
    **dict.fromkeys(
        ("refreshed", "limit", "flag_limit", "peak", "pi", "delta", "printed_delta"), "float64"
    ),
}
_TIMES = ("lease", "delta", "printed_delta", "ours_rho", "ours_delta")
_DELIVERIES = ("duplicated", "unpublished", "unwanted", "missed", "delivered")


def _floats(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "float64")


def experiments(scale: str) -> list[Experiment]:
    """The sweeps of a scale."""
    example = {"diameter": 10, "least": 5, "most": 25, "bound": 30_000, "pi": 14_900, "rho": 14_700}
    renewals = {"pi": [PI_STEPS], "renewed": [0, PI_STEPS - 1, PI_STEPS, PI_STEPS + 1]}
    crossing = {"closed": "float64", "tried": "int64", "gain": "float64"}
    healing = {"healed": "bool", "intervals": "int64", "bound": "int64"}
    counts = dict.fromkeys(_DELIVERIES, "int64")
    case = {"printed": "float64", "ours": "float64", "what": "string"}
    local = _floats("saved", "control", "apart", "simulated")
    lives = _floats("longest", "shortest")
    setting = crossed({"rho": RHOS, "mu": MUS}, [0])
    every = crossed({"case": list(CASES)}, [0])
    return [
        Experiment(name, columns, run, cells, SUMMED[name], share)
        for name, columns, run, cells, share in (
            ("closed", _floats(*_NUMBERS[:2]), runs.run_closed, _closed(scale), 500),
            ("simulated", _floats(*_NUMBERS), runs.run_simulated, _simulated(scale), 2),
            ("crossing", crossing, runs.run_crossing, _crossing(scale), 2),
            ("local", local, runs.run_local, _local(scale), 100),
            ("setting", _SETTING, runs.run_setting, setting, 2),
            ("times", _floats(*_TIMES), runs.run_times, [Cell({**example}, 0)], 1),
            ("renewals", _floats("gap"), runs.run_renewals, _renewals(scale), 4),
            ("lease", lives, runs.run_lease, crossed(renewals, [0]), 4),
            ("cases", case, run_case, every, 8),
            ("stabilisation", healing, runs.run_stabilisation, _healing(scale), 8),
            ("deliveries", counts, runs.run_deliveries, _deliveries(scale), 4),
        )
    ]


def _closed(scale: str) -> tuple[Cell, ...]:
    most = SUBSCRIPTIONS_MAX * (4 if scale == "beyond" else 1)
    sizes = range(0, most + 1, 5_000)
    return crossed({"subscriptions": [1_000, *sizes], "rho": RHOS, "mu": MUS}, [0])


def _simulated(scale: str) -> tuple[Cell, ...]:
    """Sizes of the closed form, so that the two can be compared.

    For `quick` the larger ones with the cheapest rates only: b_s does not depend on them.
    """
    sizes = {
        "quick": [0, 1_000, 10_000, 50_000, 100_000],
        "paper": [0, 1_000, 10_000, 50_000, *range(100_000, SUBSCRIPTIONS_MAX + 1, 100_000)],
        "beyond": [0, 1_000, 10_000, 100_000, 500_000, 1_000_000],
    }[scale]
    publications = 4_000 if scale == "quick" else 20_000
    grid: dict[str, Sequence[Value]] = {"subscriptions": sizes, "rho": RHOS, "mu": MUS}
    grid["publications"] = [publications]
    cells = crossed(grid, range(4 if scale == "paper" else 2))
    if scale == "quick":
        far = {"subscriptions": [200_000, 300_000, 400_000, SUBSCRIPTIONS_MAX]}
        cells += crossed({**grid, **far, "rho": RHOS[:1], "mu": MUS[:1]}, range(2))
    return cells


def _crossing(scale: str) -> tuple[Cell, ...]:
    """All eight, in closed form and simulated on either side; the first is the text's example."""
    publications = 4_000 if scale == "quick" else 20_000
    cells = []
    for number, it in enumerate(crossed({"omega": OMEGAS, "rho": RHOS, "mu": MUS}, [0])):
        seeds = 4 if scale != "quick" else 1 if number else 3
        cells.append(Cell({**it.parameters, "at": 0.0, "publications": 0}, 0))
        cells += [
            Cell({**it.parameters, "at": at, "publications": publications}, seed)
            for at in BESIDE
            for seed in range(seeds)
        ]
    return tuple(cells)


def _local(scale: str) -> tuple[Cell, ...]:
    """Ever more subscriptions in closed form; the paper's largest number simulated."""
    sizes = [1_000, 10_000, 100_000, SUBSCRIPTIONS_MAX, 1_000_000, 10_000_000]
    grid: dict[str, Sequence[Value]] = {"omega": OMEGAS, "rho": RHOS, "mu": MUS}
    closed = crossed({**grid, "subscriptions": sizes, "publications": [0]}, [0])
    tried = {"rho": RHOS[:1], "mu": MUS[:1], "subscriptions": [SUBSCRIPTIONS_MAX]}
    seeds = range(1 if scale == "quick" else 4)
    return closed + crossed({**grid, **tried, "publications": [1_000]}, seeds)


def _renewals(scale: str) -> tuple[Cell, ...]:
    return crossed({"links": [1, 10], "rho": [2, 4]}, range(1 if scale == "quick" else 5))


def _healing(scale: str) -> tuple[Cell, ...]:
    size, seeds = {"quick": (13, 2), "paper": (40, 20), "beyond": (121, 5)}[scale]
    grid: dict[str, Sequence[Value]] = {
        "strategy": STRATEGIES,
        "hierarchical": [False, True],
        "start": list(runs.STARTS),
        "n": [size],
    }
    return crossed(grid, range(seeds))


def _deliveries(scale: str) -> tuple[Cell, ...]:
    grid: dict[str, Sequence[Value]] = {
        "strategy": STRATEGIES,
        "hierarchical": [False, True],
        "start": ["legitimate", "corrupt"],
        "n": [13],
    }
    return crossed(grid, range(1 if scale == "quick" else 20))


def numbers(tables: Tables) -> Mapping[str, Any]:
    """What the page says beside its tables."""
    rows = tables["stabilisation"]
    ended = [row["worst"] / row["bound"] for row in rows if row["worst"] is not None]
    most = max(row["subscriptions"] for row in tables["figure2"])
    return {"close": max(ended, default=nan), "most": most}


STUDY = Study(
    name="leases",
    title="Leased content-based routing",
    paper="Gero Mühl, Michael A. Jaeger, Klaus Herrmann, Torben Weis, Andreas Ulbrich and Ludger "
    "Fiege: Self-stabilizing Publish/Subscribe Systems: Algorithms and Evaluation. "
    "TU Berlin and TU Darmstadt",
    promised=PROMISED,
    experiments=experiments,
    asked=lambda _: ASKED,
    facts=facts,
    tables=tables,
    figures=figures,
    page=(HERE / "page.html").read_text(encoding="utf-8"),
    numbers=numbers,
)
