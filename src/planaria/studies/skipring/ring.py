"""What each cell about the ring itself runs: its shape, its silence, its healing, its operations.

`rules` says whose: `ours`, the paper's text as `printed`, with every erratum `amended`, or with
every erratum but the one that is looked at.
"""

from collections.abc import Callable
from math import log2
from typing import Any

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Subscribe, Unsubscribe
from planaria.literal.skipring.amendments import ALL, E14_TEXT, E22
from planaria.literal.skipring.labels import label
from planaria.literal.skipring.overlay import SUPERVISOR, LiteralSkipRing
from planaria.protocols.dht.overlay import DhtOverlay
from planaria.protocols.skipring.labels import label_bits
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.place import Place
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result
from planaria.studies.skipring import graph as graphs
from planaria.studies.skipring.literal import (
    BURST_MAX,
    SMALL_MAX,
    Run,
    expected_requests,
    without,
)
from planaria.studies.skipring.recovery import recover
from planaria.studies.skipring.traffic import Traffic

AMENDMENTS: dict[str, frozenset[str]] = {
    "printed": frozenset(),
    "amended": ALL | {E22},
    "E4 printed": without("E4") | {E22},
    "E5 printed": without("E5", "E17") | {E22},  # E17 would answer what E5 sends in vain
    "E7 printed": without("E7") | {E22},
    "E8 printed": without("E8") | {E22},
    "E14 printed": without("E14") | {E22},
}
PRINTED_ORDER = "0 1 01 11 001 011 101 111 0001".split()  # section 2.1
FAULTS = {"none": "", "crash": "at 0 crash share=0.3", "leave": "at 0 leave share=0.3"}
PERIODIC = ("check", "introduce_shortcut")  # what members send at every timeout
PATIENCE = 150  # intervals for a small ring
LITERAL_PATIENCE = 60  # of those that heal, none of 720 took more than 15
QUIET_INTERVALS = 40
OPERATION_INTERVALS = 12
LOOKS = 10  # in an interval, at what a quiet ring has stored


def heal(cell: Cell) -> Result:
    """One recovery of Planaria's ring."""
    run = recover(str(cell.parameters["start"]), int(cell.parameters["n"]), cell.seed)
    names = ("healed", "requests", "configurations", "peak_in", "peak_out", "messages")
    summary: dict[str, Any] = {name: getattr(run, name) for name in names}
    return Result({**summary, "intervals": run.intervals if run.healed else None})


def heal_literally(cell: Cell) -> Result:
    """The same of the paper's text with every erratum amended, which has the same starts."""
    start, n = str(cell.parameters["start"]), int(cell.parameters["n"])
    if start in ("fresh", "corrupt"):
        trial = Trial(LiteralSkipRing(AMENDMENTS["amended"]), Spec(n, cell.seed, start))
        run = Run(LiteralSkipRing(AMENDMENTS["amended"]), trial.simulator)
    else:
        run = Run.legitimate(AMENDMENTS["amended"], n, cell.seed)
        run.supervisor.database = _shuffled(run, cell.seed) if start == "permuted" else {}
    return _healed(run.heals(LITERAL_PATIENCE + 2 * n, BURST_MAX + 10 * n))


def shape(cell: Cell) -> Result:
    """Everything that Definition 2 and the labels decide, of a ring that grew or as defined."""
    n, ours = int(cell.parameters["n"]), cell.parameters["rules"] == "ours"
    graph = graphs.grown(n, cell.seed) if ours else graphs.defined(n)
    degrees = [len(beside) for beside in graph.values()]
    name = label_bits if ours else label
    sizes = [len(bits) for bits in graph]
    counted = {k: 2 if k == 1 else 2 ** (k - 1) for k in range(1, n.bit_length())}
    changes = graphs.touched(n, ours=ours)
    apart = [later - first for first, later in (each[:2] for each in changes.values())]
    odd = [(2 * i + 1) / (2 * n) for i in range(n)]
    return Result(
        {
            "order": sum(name(x) == bits for x, bits in enumerate(PRINTED_ORDER)),
            "gap_ratio": graphs.gap_ratio(graph),
            "levels": sum(sizes.count(k) == count for k, count in counted.items()),
            **{f"level_{k}": graphs.edges_on_level(graph, k) for k in range(1, 5)},
            "degree_max": max(degrees),
            "degree_zero": len(graph["0"]),
            "degree_mean": sum(degrees) / n,
            "directed": sum(degrees),
            "diameter": graphs.diameter(graph),
            "two_each": graphs.two_on_every_level(graph),
            "crossing": graphs.crossing(graph),
            "computed": graphs.computed_shortcuts(graph, ours=ours),
            "example": len({"001", "0", "011", "1"} & {*graph["01"]}),
            "touched": max(len(each) for each in changes.values()),
            "consecutive": sum(gap == 1 for gap in apart) / n,
            "spread": sum(graphs.value(name(n + i)) == odd[i] for i in range(n)),
            "told": len(graph["0"]) + 2,
            "congestion": graphs.congestion(graph),
            "chord": graphs.chord_congestion(n, cell.seed),
        }
    )


def requests(cell: Cell) -> Result:
    """Configuration requests expected per interval of a legitimate ring, in closed form."""
    n, rule = int(cell.parameters["n"]), str(cell.parameters["rule"])
    if rule == "ours":
        return Result({"expected": expected_of_ours(n)})
    if rule == "proof":
        return Result({"expected": sum(1 / (2 * k * k) for k in range(1, int(log2(n)) + 1))})
    text = {"printed": frozenset[str](), "prose": frozenset({E14_TEXT})}[rule]
    return Result({"expected": expected_requests(text, n)[-1]})


def expected_of_ours(n: int) -> float:
    """The sum of what every member says of itself."""
    total, place = 0.0, Place(0)
    for index in range(n):
        place.label = index
        total += place.probability
    return total


class Watched:
    """A ring of any rules in a simulator, with its books and what it has stored."""

    def __init__(self, rules: str, n: int, seed: int) -> None:
        self.overlay = RingOverlay()
        self.run: Run | None = None
        if rules == "ours":
            self.simulator = Simulator(seed)
            for node in self.overlay.legitimate(n, self.simulator.rng):
                self.simulator.add(node)
        else:
            self.run = Run.legitimate(AMENDMENTS[rules], n, seed)
            self.simulator = self.run.simulator
        self.traffic = Traffic(self.overlay.supervisors if self.run is None else [SUPERVISOR])
        self.simulator.watch(self.traffic)

    def stored(self) -> dict[str, Any]:
        """Database, ring and shortcuts, as they are."""
        if self.run is not None:
            members = self.run.subscribers
            return {
                "database": dict(self.run.supervisor.database),
                "ring": [(one.label, one.left, one.right, one.ring) for one in members],
                "shortcuts": [dict(one.shortcuts) for one in members],
            }
        nodes = [self.simulator.nodes[id] for id in sorted(self.simulator.nodes)]
        ours = [self.overlay.subscriber(n) for n in nodes if n.id not in self.overlay.supervisors]
        return {
            "database": list(self.overlay.serving(nodes).database.entries),
            "ring": [(one.label, one.pred, one.succ) for one in ours],
            "shortcuts": [sorted(one.neighbours()) for one in ours],
        }

    def pass_on(self, n: int) -> bool:
        """Let a tenth of an interval pass; False if messages multiply without bound."""
        before = self.simulator.sent
        self.simulator.run(INTERVAL // LOOKS)
        return self.simulator.sent - before <= BURST_MAX + 10 * n


def quiet(cell: Cell) -> Result:
    """A legitimate ring left alone: looks at which something stored differs, and its traffic."""
    rules, n = str(cell.parameters["rules"]), int(cell.parameters["n"])
    ring = Watched(rules, n, cell.seed)
    first, changed = ring.stored(), {"database": 0, "ring": 0, "shortcuts": 0}
    looks = QUIET_INTERVALS * LOOKS
    for look in range(looks):
        if not ring.pass_on(n):
            changed = {name: count + looks - look for name, count in changed.items()}
            return Result({**changed, "requests": None, "answers": None, "messages": None})
        now = ring.stored()
        changed = {name: count + (now[name] != first[name]) for name, count in changed.items()}
    return Result(
        {
            **changed,
            "requests": ring.traffic.to_supervisors / QUIET_INTERVALS,
            "answers": ring.traffic.from_supervisors / QUIET_INTERVALS,
            "messages": ring.traffic.between_peers / QUIET_INTERVALS / n,
        }
    )


def state(cell: Cell) -> Result:
    """An arbitrary state with n = 1..12: does it become SR(n), and is everybody recorded?"""
    rules, faults = str(cell.parameters["rules"]), FAULTS[str(cell.parameters["fault"])]
    if rules != "ours":
        run = Run.arbitrary(AMENDMENTS[rules], cell.seed, faults)
        found = run.heals(LITERAL_PATIENCE)
        wanting = [one.id for one in run.subscribers if one.wants]
        known = set(run.supervisor.database.values())
        return _healed(found, recorded=all(id in known for id in wanting))
    n = cell.seed % SMALL_MAX + 1
    trial = _trial(n, cell.seed, "corrupt", faults if n > 1 else "")
    outcome = trial.run()
    served = RingOverlay().serving(list(trial.simulator.nodes.values()))
    known = set(served.database.entries)
    peers = [id for id in trial.simulator.nodes if id < n]
    return _healed(
        outcome.intervals if outcome.legitimate else None,
        recorded=outcome.legitimate or all(id in known for id in peers),
    )


def _healed(intervals: int | None, *, recorded: bool = True) -> Result:
    return Result({"healed": intervals is not None, "intervals": intervals, "recorded": recorded})


def _trial(n: int, seed: int, start: str, faults: str = "") -> Trial:
    spec = Spec(n, seed, start, parse_schedule(faults), intervals=PATIENCE, closure=0)
    return Trial(RingOverlay(histories=False), spec)


def erratum(cell: Cell) -> Result:
    """An arbitrary state with every erratum amended but one."""
    left_out, scheduler = str(cell.parameters["left_out"]), str(cell.parameters["scheduler"])
    amendments = (without(left_out) | {E22}) - {left_out}
    return _healed(Run.random(amendments, cell.seed, scheduler).heals(LITERAL_PATIENCE))


def sorted_ring(cell: Cell) -> Result:
    """BuildRing without a supervisor, from an arbitrary state: the DHT's ring is just that."""
    n = cell.seed % SMALL_MAX + 1
    spec = Spec(n, cell.seed, "corrupt", intervals=PATIENCE, closure=0)
    outcome = Trial(DhtOverlay(), spec).run()
    return _healed(outcome.intervals if outcome.legitimate else None)


def lemma(cell: Cell) -> Result:
    """The state that a lemma speaks of: does what it promises come, and when?"""
    rules, n = str(cell.parameters["rules"]), int(cell.parameters["n"])
    runs: dict[str, Callable[[str, int, int], Result]] = {
        "6": _leave,
        "9": _database,
        "11": _permuted,
        "12": _erased,
    }
    return runs[str(cell.parameters["lemma"])](rules, n, cell.seed)


def _leave(rules: str, n: int, seed: int) -> Result:
    if rules == "ours":
        return _ended(_trial(n, seed, "legitimate", "at 0 leave count=1"))
    run = Run.legitimate(AMENDMENTS[rules], n, seed)
    run.simulator.command(1 + seed % n, Unsubscribe("literal"))
    return _healed(run.heals(LITERAL_PATIENCE))


def _ended(trial: Trial) -> Result:
    outcome = trial.run()
    return _healed(outcome.intervals if outcome.legitimate else None)


def _database(rules: str, n: int, seed: int) -> Result:
    """Arbitrary entries; ours has one timeout to put them right, the text as many as it likes."""
    rng = stream(seed, "database")
    if rules == "ours":
        served = Watched(rules, n, seed)
        nodes = list(served.simulator.nodes.values())
        topic = served.overlay.serving(nodes)
        count = rng.randrange(2 * n)
        topic.database.entries[:] = [rng.choice([None, *range(n + 2)]) for _ in range(count)]
        topic.on_timeout()
        entries = list(topic.database.entries)
        return _healed(1 if None not in entries and len({*entries}) == len(entries) else None)
    run = Run.joining(AMENDMENTS[rules], n, seed)
    run.overlay.corrupt(run.supervisor, range(n + 1), rng)
    for timeout in range(1, LITERAL_PATIENCE + 2 * n):
        run.supervisor.on_timeout()
        table = run.supervisor.database
        owners = list(table.values())
        whole = {*table} == {label(index) for index in range(len(table))}
        if whole and None not in owners and len({*owners}) == len(owners):
            return _healed(timeout)
    return _healed(None)


def _permuted(rules: str, n: int, seed: int) -> Result:
    """The database is right, and nobody's label is."""
    if rules == "ours":
        return _ended(_trial(n, seed, "permuted"))
    run = Run.legitimate(AMENDMENTS[rules], n, seed)
    run.supervisor.database = _shuffled(run, seed)
    return _healed(run.heals(LITERAL_PATIENCE + 2 * n, BURST_MAX + 10 * n))


def _shuffled(run: Run, seed: int) -> dict[str, NodeId | None]:
    table = run.supervisor.database
    owners = stream(seed, "permuted").sample(list(table.values()), len(table))
    return dict(zip(table, owners, strict=True))


def _erased(rules: str, n: int, seed: int) -> Result:
    if rules == "ours":
        trial = _trial(n, seed, "legitimate")
        for id in range(n):
            RingOverlay().subscriber(trial.simulator.nodes[id]).shortcuts = {}
        return _ended(trial)
    run = Run.legitimate(AMENDMENTS[rules], n, seed)
    for node in run.subscribers:
        node.shortcuts = dict.fromkeys(node.shortcuts)
    return _healed(run.heals(LITERAL_PATIENCE))


def operation(cell: Cell) -> Result:
    """One subscribe or unsubscribe in a legitimate ring: messages beyond the everyday."""
    n, what = int(cell.parameters["n"]), str(cell.parameters["operation"])
    ring = Watched("ours", n, cell.seed)
    if what == "subscribe":
        ring.simulator.add(ring.overlay.spawn(n, ring.simulator.rng))
    else:
        leaver = 0 if what == "unsubscribe '0'" else stream(cell.seed, "leaver").randrange(n)
        ring.simulator.command(leaver, Unsubscribe(ring.overlay.topic))
    for _ in range(OPERATION_INTERVALS):
        ring.simulator.run_interval()
    traffic, states = ring.traffic, ring.simulator.states()
    everyday = OPERATION_INTERVALS * (2 * expected_of_ours(n) + 1)
    return Result(
        {
            "supervisor": traffic.to_supervisors + traffic.from_supervisors - everyday,
            "peers": traffic.between_peers - sum(traffic.by_tag[tag] for tag in PERIODIC),
            "done": not ring.overlay.violations(states, ring.simulator.channel()),
        }
    )


def topics(cell: Cell) -> Result:
    """What the supervisor of several topics sends in an interval, with the same subscribers."""
    n, count = int(cell.parameters["n"]), int(cell.parameters["topics"])
    overlay, simulator = RingOverlay(), Simulator(cell.seed)
    for node in overlay.fresh(n, simulator.rng):
        simulator.add(node)
        if node.id not in overlay.supervisors:
            for number in range(1, count):
                node.on_command(Subscribe(f"topic{number}"))
    simulator.run(2 * OPERATION_INTERVALS * INTERVAL)
    traffic = Traffic(overlay.supervisors)
    simulator.watch(traffic)
    simulator.run(QUIET_INTERVALS * INTERVAL)
    return Result({"sent": traffic.from_supervisors / QUIET_INTERVALS})
