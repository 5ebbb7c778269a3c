"""Paper 4, leased content-based routing: Figure 2, its crossings, stabilization, every claim."""

from collections.abc import Sequence

from planaria.lab.routing.analysis import MUS, OMEGAS, RHOS
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.spark.grid import Cell, Value, crossed
from planaria.studies.leases import runs as runs
from planaria.studies.leases.cases import CASES, run_case
from planaria.studies.leases.page import page
from planaria.studies.leases.tables import PI_STEPS, PROMISED, tables
from planaria.studies.study import Experiment, Study

SUBSCRIPTIONS_MAX = 500_000  # of Figure 2
BESIDE = (0.95, 1.05)  # where a crossing is looked for, in parts of the closed form's

_NUMBERS = ("saved_1", "control", "alive")
_SETTING = {
    **dict.fromkeys(("brokers", "leaves", "links", "depth"), "int64"),
    **dict.fromkeys(
        (
            *("refreshed", "limit", "flag_limit", "peak"),
            "pi",
        ),
        "float64",
    ),
}
_TIMES = ("lease", "delta", "printed_delta", "ours_rho", "ours_delta")
_DELIVERIES = ("duplicated", "unpublished", "unwanted", "missed", "delivered")


def _floats(names: tuple[str, ...]) -> dict[str, str]:
    return dict.fromkeys(names, "float64")


def experiments(scale: str) -> list[Experiment]:
    """The sweeps of a scale."""
    pairs = {"rho": RHOS, "mu": MUS}
    example = {"diameter": 10, "least": 5, "most": 25, "bound": 30_000, "pi": 14_900, "rho": 14_700}
    renewals = {"pi": [PI_STEPS], "renewed": [0, PI_STEPS - 1, PI_STEPS, PI_STEPS + 1]}
    crossing = {"closed": "float64", "tried": "int64", "gain": "float64"}
    healing = {"healed": "bool", "intervals": "int64", "bound": "int64"}
    counts = dict.fromkeys(_DELIVERIES, "int64")
    case = {"printed": "float64", "ours": "float64", "what": "string"}
    return [
        Experiment("closed", _floats(_NUMBERS[:2]), runs.run_closed, _closed(scale), share=500),
        Experiment("simulated", _floats(_NUMBERS), runs.run_simulated, _simulated(scale), share=2),
        Experiment("crossing", crossing, runs.run_crossing, _crossing(scale), share=2),
        Experiment("setting", _SETTING, runs.run_setting, crossed(pairs, [0]), share=2),
        Experiment("times", _floats(_TIMES), runs.run_times, [Cell({**example}, 0)]),
        Experiment("renewals", _floats(("gap",)), runs.run_renewals, _renewals(scale), share=4),
        Experiment(
            "lease",
            _floats(("longest", "shortest")),
            runs.run_lease,
            crossed(renewals, [0]),
            share=4,
        ),
        Experiment("cases", case, run_case, crossed({"case": list(CASES)}, [0]), share=8),
        Experiment("stabilisation", healing, runs.run_stabilisation, _healing(scale), share=8),
        Experiment("deliveries", counts, runs.run_deliveries, _deliveries(scale), share=4),
    ]


def _closed(scale: str) -> tuple[Cell, ...]:
    most = SUBSCRIPTIONS_MAX * (4 if scale == "beyond" else 1)
    sizes = range(0, most + 1, 5_000)
    return crossed({"subscriptions": [1_000, *sizes], "rho": RHOS, "mu": MUS}, [0])


def _simulated(scale: str) -> tuple[Cell, ...]:
    """Sizes of the closed form, so that the two can be compared."""
    sizes = {
        "quick": [0, 1_000, 10_000, 50_000, 100_000],
        "paper": [0, 1_000, 10_000, 50_000, *range(100_000, SUBSCRIPTIONS_MAX + 1, 100_000)],
        "beyond": [0, 1_000, 10_000, 100_000, 500_000, 1_000_000],
    }[scale]
    publications = 4_000 if scale == "quick" else 20_000
    grid = {"subscriptions": sizes, "rho": RHOS, "mu": MUS, "publications": [publications]}
    return crossed(grid, range(4 if scale == "paper" else 2))


def _crossing(scale: str) -> tuple[Cell, ...]:
    """All eight in closed form; simulated, for `quick` those that take a second or less."""
    publications = 4_000 if scale == "quick" else 20_000
    cells = []
    for it in crossed({"omega": OMEGAS, "rho": RHOS, "mu": MUS}, [0]):
        cells.append(Cell({**it.parameters, "at": 0.0, "publications": 0}, 0))
        slow = it.parameters["rho"] == max(RHOS) and it.parameters["mu"] == max(MUS)
        if scale == "quick" and slow:
            continue
        cells += [
            Cell({**it.parameters, "at": at, "publications": publications}, seed)
            for at in BESIDE
            for seed in range(1 if scale == "quick" else 4)
        ]
    return tuple(cells)


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


STUDY = Study(
    name="leases",
    title="Leased content-based routing",
    paper="Gero Mühl, Michael A. Jaeger, Klaus Herrmann, Torben Weis, Andreas Ulbrich and Ludger "
    "Fiege: Self-stabilizing Publish/Subscribe Systems: Algorithms and Evaluation. "
    "TU Berlin and TU Darmstadt",
    promised=PROMISED,
    experiments=experiments,
    tables=tables,
    page=page,
)
