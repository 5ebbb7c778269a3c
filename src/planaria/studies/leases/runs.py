"""What one cell of the study of leased routing runs: section 4, stabilization, deliveries."""

from itertools import pairwise
from math import log

from msgspec import structs

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Subscribe
from planaria.filters.filters import Filter
from planaria.lab.routing.analysis import (
    PAPER,
    control,
    control_limit,
    crossing,
    refreshes,
    saved,
)
from planaria.lab.routing.experiment import simulate
from planaria.protocols.routing.leases import LeaseTable
from planaria.protocols.routing.messages import Update
from planaria.protocols.routing.overlay import INTERVALS, RoutingOverlay, TreeBroker
from planaria.protocols.routing.timing import timing, timing_for
from planaria.simulator.delays import INTERVAL, uniform
from planaria.simulator.engine import Entry, Simulator
from planaria.simulator.schedule import Schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.definitions import keep_book
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result

CLOSURE = 28  # intervals that a healed routing is watched: one bound of the smallest tree
EVERY = 20  # ticks between publications
LINE_DELAYS = (5, INTERVAL // 2)  # ticks, of the links of a line of brokers
RENEWALS = 200  # that each broker of the line is watched for
REACH = 6 * INTERVAL  # by then a publication is everywhere in a tree of 13 brokers
PI_MORE = 0.2  # seconds by which section 4.1's leases are longer than rho
LINK_DELAY = 0.025  # seconds, section 4.1
LOCAL = structs.replace(PAPER, home=1)
STARTS: dict[str, tuple[str, Schedule]] = {
    "corrupt": ("corrupt", ()),
    "fresh": ("fresh", ()),
    "one broker corrupt": ("legitimate", parse_schedule("at 1 corrupt count=1")),
}


def run_simulated(cell: Cell) -> Result:
    """One point of Figure 2, simulated."""
    subscriptions = int(cell.parameters["subscriptions"])
    return Result(_simulated(cell, subscriptions))


def run_closed(cell: Cell) -> Result:
    """One point of Figure 2 in closed form; `saved_1` is by one publication a second."""
    subscriptions, rho, mu = _point(cell)
    return Result(
        {
            "saved_1": saved(PAPER, subscriptions, 1.0),
            "control": control(PAPER, subscriptions, rho, mu),
        }
    )


def run_crossing(cell: Cell) -> Result:
    """Where the curves cross, and at a share `at` of that the log of b_s over b_c, simulated."""
    omega, at = float(cell.parameters["omega"]), float(cell.parameters["at"])
    rho, mu = float(cell.parameters["rho"]), float(cell.parameters["mu"])
    found = crossing(PAPER, omega, rho, mu)
    if found is None or at == 0:
        return Result({"closed": found, "tried": None, "gain": None})
    tried = round(at * found)
    simulated = _simulated(cell, tried)
    # Both fall or rise exponentially: the logarithm is nearly straight between two sizes tried.
    gain = log(omega * simulated["saved_1"] / simulated["control"])
    return Result({"closed": found, "tried": tried, "gain": gain})


def run_local(cell: Cell) -> Result:
    """Interests below one child of the root each: b_s and b_c; `simulated` is b_s over b_c."""
    at = cell.parameters
    omega, rho, mu = (float(at[name]) for name in ("omega", "rho", "mu"))
    subscriptions, publications = int(at["subscriptions"]), int(at["publications"])
    costs = control(LOCAL, subscriptions, rho, mu)
    simulated = None
    if publications:
        rng = stream(cell.seed, "local", subscriptions, f"{rho} {mu}")
        seconds = max(rho, 1 / mu)
        run = simulate(LOCAL, subscriptions, rho, mu, seconds, publications, rng)
        simulated = omega * run.saved / run.control
    return Result(
        {
            "saved": saved(LOCAL, subscriptions, omega),
            "control": costs,
            "apart": costs / control(PAPER, subscriptions, rho, mu),
            "simulated": simulated,
        }
    )


def run_setting(cell: Cell) -> Result:
    """The numbers of section 4.1, and where b_c goes when there are many subscriptions."""
    rho, mu = float(cell.parameters["rho"]), float(cell.parameters["mu"])
    many = 100 * PAPER.leaves * PAPER.classes
    limit = control_limit(PAPER, rho)
    lease = rho + PI_MORE
    peak = max(control(PAPER, n, rho, mu) for n in range(0, 500_001, 1_000))
    return Result(
        {
            "brokers": PAPER.links + 1,
            "leaves": PAPER.leaves,
            "links": PAPER.links,
            "depth": PAPER.depth,
            "refreshed": refreshes(rho, mu),
            "limit": control(PAPER, many, rho, mu),
            "flag_limit": control_limit(PAPER, lease),
            "peak": peak / limit,
            "delta": 2 * lease + 2 * PAPER.depth * LINK_DELAY,
            "printed_delta": 2 * lease,  # constant delays: dmax - dmin is 0
            "pi": timing(round(1000 * rho), (25, 25), 2 * PAPER.depth, changing=False).pi / 1000,
        }
    )


def run_times(cell: Cell) -> Result:
    """The example of section 3.3, in milliseconds: by our rule, and by the formula as printed."""
    d, least, most = (int(cell.parameters[name]) for name in ("diameter", "least", "most"))
    bound, pi, rho = (int(cell.parameters[name]) for name in ("bound", "pi", "rho"))
    asked = timing(rho, (least, most), d, changing=False)
    ours = timing_for(bound, (least, most), d, changing=False)
    return Result(
        {
            "lease": asked.pi / 1000,
            "delta": asked.delta / 1000,
            "printed_delta": (2 * pi + d * (most - least)) / 1000,
            "ours_rho": ours.rho / 1000,
            "ours_delta": ours.delta / 1000,
        }
    )


class Arrivals:
    """When each broker hears from its neighbours that a client renews."""

    kinds = ("deliver",)

    def __init__(self) -> None:
        self.ticks: dict[NodeId, list[int]] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """A message that grants or renews leases comes in."""
        if isinstance(entry.message, Update) and entry.message.leases:
            self.ticks.setdefault(node, []).append(tick)


def run_renewals(cell: Cell) -> Result:
    """Figure 1 with real brokers: the longest time between renewals, over what it may be.

    Brokers are in a line, their only client at its end; all of them are asked, each with its own
    distance from the client.
    """
    links, rho = int(cell.parameters["links"]), int(cell.parameters["rho"])
    low, high = LINE_DELAYS
    simulator, arrivals = Simulator(cell.seed, delay=uniform(low, high)), Arrivals()
    for id in range(links + 1):
        beside = [it for it in (id - 1, id + 1) if 0 <= it <= links]
        above = id - 1 if id else None
        rules = timing(rho, INTERVALS, 1)
        rng = stream(cell.seed, "renewals", id)
        options = {"strategy": "simple", "hierarchical": True}
        simulator.add(TreeBroker(id, beside, above, rules, rng, **options))
    simulator.command(links, Subscribe())
    simulator.run(links * rho * INTERVAL)  # until all have heard of it
    began = simulator.tick
    simulator.watch(arrivals)
    simulator.run(RENEWALS * rho * INTERVAL)
    gaps = []
    for id in range(links):
        allowed = rho * INTERVAL + (links - id) * (high - low)
        ends = [began, *arrivals.ticks.get(id, []), simulator.tick]
        gaps.append(max(later - first for first, later in pairwise(ends)) / allowed)
    return Result({"gap": max(gaps)})


def run_lease(cell: Cell) -> Result:
    """Section 3.1: how long an entry lives that is renewed every `renewed` steps, or never (0)."""
    pi, renewed = int(cell.parameters["pi"]), int(cell.parameters["renewed"])
    lives = []
    for phase in range(pi):
        table = LeaseTable(pi)
        table.clock = phase
        table.insert(-1, 1, Filter(()))
        life = 0
        while table.get(-1, 1) is not None and life < 20 * pi:
            life += 1
            table.tick()
            if renewed and life % renewed == 0 and table.get(-1, 1) is not None:
                table.insert(-1, 1, Filter(()))
        lives.append(life)
    return Result({"longest": max(lives) / pi, "shortest": min(lives) / pi})


def run_stabilisation(cell: Cell) -> Result:
    """A trial of leased routing on a complete tree of brokers, from a start that is wrong."""
    start, faults = STARTS[str(cell.parameters["start"])]
    overlay = _overlay(cell)
    spec = Spec(int(cell.parameters["n"]), cell.seed, start, faults, closure=CLOSURE)
    outcome = Trial(overlay, spec).run()
    return Result(
        {
            "healed": outcome.failure is None,
            "intervals": outcome.intervals,
            "bound": overlay.timing.delta,
        },
        failed=outcome.failure is not None,
    )


def run_deliveries(cell: Cell) -> Result:
    """Definitions 1 and 2: publications all the time, judged from the bound on."""
    overlay = _overlay(cell)
    n = int(cell.parameters["n"])
    trial = Trial(overlay, Spec(n, cell.seed, str(cell.parameters["start"])))
    simulator = trial.simulator
    book = keep_book(simulator, within=REACH / INTERVAL)
    settled = overlay.timing.delta * INTERVAL if cell.parameters["start"] == "corrupt" else 0
    book.illegitimate(settled / INTERVAL)
    for number in range(settled // EVERY + 150):
        simulator.run(EVERY)
        command = overlay.publication(number % n, number)
        assert command is not None
        simulator.command(number % n, command)
    simulator.run(REACH)
    summary = book.summary(simulator.tick / INTERVAL)
    return Result(
        {
            "duplicated": summary.twice,
            "unpublished": summary.never_published,
            "unwanted": summary.unwanted,
            "missed": summary.missed,
            "delivered": summary.delivered,
        }
    )


def _overlay(cell: Cell) -> RoutingOverlay:
    strategy, up = str(cell.parameters["strategy"]), bool(cell.parameters["hierarchical"])
    return RoutingOverlay(strategy, up)


def _point(cell: Cell) -> tuple[int, float, float]:
    at = cell.parameters
    return int(at["subscriptions"]), float(at["rho"]), float(at["mu"])


def _simulated(cell: Cell, subscriptions: int) -> dict[str, float]:
    rho, mu = float(cell.parameters["rho"]), float(cell.parameters["mu"])
    rng = stream(cell.seed, "leases", subscriptions, f"{rho} {mu}")
    publications = int(cell.parameters["publications"])
    run = simulate(PAPER, subscriptions, rho, mu, max(rho, 1 / mu), publications, rng)
    return {
        "saved_1": run.saved,
        "control": run.control,
        "alive": run.subscriptions,
        "crossed": run.transmissions,
    }
