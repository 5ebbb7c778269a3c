"""What one cell of the study of daMulticast runs: one event, one network or one formula.

Columns named `T1_sent` belong to a group, from T0 at the top down; the event is published on the
group at the bottom unless a cell says otherwise. Per group: `sent` within it, `up_sent` by it to
the group above and `up_received` of those there, `reached` of its `alive` of its `members`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from planaria.core.chance import derive, stream
from planaria.core.node import Subscribe
from planaria.lab.gossip.baselines import APPROACHES
from planaria.lab.gossip.baselines import Work as Job
from planaria.lab.gossip.experiment import Reading, Setting, read_as
from planaria.lab.gossip.experiment import run as run_events
from planaria.lab.gossip.prediction import Choice, predict, reliability
from planaria.protocols.gossip.hierarchy import Hierarchy, filter_of
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.overlay import GossipOverlay, parse_sizes
from planaria.protocols.gossip.tables import give_tables
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.gossip import disseminate_once, still_copies
from planaria.simulator.worlds.reach import GroupReach
from planaria.spark.grid import Cell, Value
from planaria.spark.sweep import Result

LOSS = 0.15  # section VII: an event is received with probability .85
NODE_EVENTS = 6  # events over one set of tables: making tables is the larger part of the work
DIALED_EVENTS = 100  # events of one cell where only their mean is asked for
SINGLE = "1000"  # one topic alone
SEARCHERS = 10  # processes that search for superprocesses in one run

COUNTS = ("members", "alive", "sent", "up_sent", "up_received", "reached")
MEANS = (
    "sent", "each", "up_sent", "up_received", "of_all", "p_all", "parasites", "repeated", "table",
    "tables", "joined",
)  # fmt: skip
PREDICTED = ("of_all", "deviation", "p_all", "p_reached")


def groups_of(sizes: str) -> list[str]:
    """T0, T1, ...: the names of the groups of a chain written as `10,100,1000`."""
    return [f"T{level}" for level in range(len(parse_sizes(sizes)))]


def columns_of(sizes: str, measures: Sequence[str], kind: str) -> dict[str, str]:
    """A column for every measure of every group."""
    return {f"{group}_{measure}": kind for group in groups_of(sizes) for measure in measures}


def failures_of(parameters: Mapping[str, Value]) -> Literal["stillborn", "observer"]:
    """The kind of failures of a cell."""
    return "observer" if parameters["failures"] == "observer" else "stillborn"


def counted(rows: Sequence[GroupReach]) -> dict[str, int]:
    """What each group saw of one event, as columns."""
    found = {}
    for level, row in enumerate(rows):
        it = (row.members, row.alive, row.sent, row.intergroup_sent, row.intergroup_received)
        for name, value in zip(COUNTS, (*it, row.reached), strict=True):
            found[f"T{level}_{name}"] = value
    return found


def reading_of(parameters: Mapping[str, Value]) -> Reading:
    """By whose rules a cell runs."""
    return "paper" if parameters["reading"] == "paper" else "planaria"


def setting_of(cell: Cell) -> Setting:
    """Section VII, with the failures and by the rules that the cell asks for."""
    at = cell.parameters
    setting = Setting(
        parse_sizes(str(at["sizes"])),
        loss=LOSS,
        failed=float(at["failed"]),
        failures=failures_of(at),
    )
    return read_as(setting, reading_of(at))


def event(cell: Cell) -> Result:
    """One event of section VII as arrays."""
    at = cell.parameters
    names = ("event", str(at["reading"]), str(at["failures"]), f"{float(at['failed'])}")
    groups = run_events(setting_of(cell), 1, stream(cell.seed, *names))
    return Result(counted([group[0] for group in groups]))


def nodes(cell: Cell) -> Result:
    """Some events over real nodes with tables of their own: means per event."""
    at = cell.parameters
    overlay = GossipOverlay(str(at["sizes"]))
    rng = stream(cell.seed, "tables", f"{at['failed']}")
    processes = {node.id: node for node in overlay.legitimate(0, rng)}
    states = {id: node.state() for id, node in processes.items()}
    entries = [row["table_max"] for row in overlay.metrics(states)["groups"]]
    still = still_copies(processes, rng)
    for node in still:  # the paper takes S to be known; a sketch errs by 9 %
        for topic, group in node.groups.items():
            group.membership.size = overlay.sizes[overlay.topics.index(topic)]
    level = groups_of(str(at["sizes"])).index(str(at["event_group"]))
    found: dict[str, float] = dict.fromkeys(columns_of(str(at["sizes"]), MEANS, ""), 0.0)
    for number in range(NODE_EVENTS):
        rows = disseminate_once(
            still,
            overlay.topics,
            overlay.topics[level],
            failed=float(at["failed"]),
            loss=LOSS,
            failures=str(at["failures"]),
            seed=derive(cell.seed, "event", number),
        )
        joined = max(len(node.groups) for node in still)
        for place, topic in enumerate(overlay.topics):
            tables = max(_tables(node) for node in still if topic in node.groups)
            for name, value in _measured(rows[topic], entries[place], tables, joined).items():
                found[f"T{place}_{name}"] += value / NODE_EVENTS
    return Result({name: round(value, 9) for name, value in found.items()})


def _tables(node: GossipNode) -> int:
    """Membership tables of a process: its topics' and their supertopics', as far as filled."""
    held = [
        table
        for group in node.groups.values()
        for table in (group.membership.view, group.links.contacts)
    ]
    return sum(map(bool, held))


def _measured(row: GroupReach, *tables: int) -> dict[str, float]:
    each = row.sent / max(1, row.reached)
    counts = (row.sent, each, row.intergroup_sent, row.intergroup_received)
    values = (*counts, row.of_all, row.p_all, row.parasites, row.repeated, *tables)
    return dict(zip(MEANS, values, strict=True))


def exact(cell: Cell) -> Result:
    """The exact chain, without any simulation."""
    found = {}
    for level, chain in enumerate(predict(setting_of(cell))):
        for name in PREDICTED:
            found[f"T{level}_{name}"] = float(getattr(chain, name))
    return Result(found)


APPROACH = {
    "sent": "float64",
    "parasites": "float64",
    "memory": "int64",
    "of_interested": "float64",
    "everybody": "bool",
}


def approach(cell: Cell) -> Result:
    """One event by one of the approaches of section VI-E."""
    at = cell.parameters
    sizes = str(at["sizes"])
    level = groups_of(sizes).index(str(at["event_group"]))
    reading = reading_of(at)
    job = Job(parse_sizes(sizes), level, loss=float(at["loss"]), runs=1, reading=reading)
    rng = stream(cell.seed, "approach", str(at["algorithm"]), str(at["event_group"]))
    found = APPROACHES[str(at["algorithm"])](job, rng)
    values = (
        found.messages.mean,
        found.parasites.mean,
        found.memory,
        found.of_interested.mean,
        found.p_all.mean == 1.0,
    )
    return Result(dict(zip(APPROACH, values, strict=True)))


def scaling(cell: Cell) -> Result:
    """All messages of one event over three groups of the same size."""
    size = int(cell.parameters["size"])
    groups = run_events(Setting((size,) * 3), 1, stream(cell.seed, "scaling", size))
    return Result({"sent": sum(group[0].sent + group[0].intergroup_sent for group in groups)})


@lru_cache(maxsize=8)
def _dials(target: float, sizes: str) -> Choice:
    """Worked out once for all cells of a target."""
    choice = reliability(target=target, loss=LOSS, sizes=parse_sizes(sizes))
    assert choice is not None
    return choice


DIALED = {
    "g": "float64",
    "a": "int64",
    "z": "int64",
    "c": "float64",
    "predicted": "float64",
    "everybody": "float64",
    "cost": "float64",
}


def dials(cell: Cell) -> Result:
    """The dials chosen for a target, and the share of events that then reach everybody."""
    target, sizes = float(cell.parameters["target"]), str(cell.parameters["sizes"])
    choice = _dials(target, sizes)
    setting = Setting(parse_sizes(sizes), choice.parameters, LOSS)
    groups = run_events(setting, DIALED_EVENTS, stream(cell.seed, "dials", f"{target}"))
    events = list(zip(*groups, strict=True))
    everybody = sum(all(row.p_all for row in rows) for rows in events) / len(events)
    sent = sum(row.sent + row.intergroup_sent for rows in events for row in rows) / len(events)
    values = (*choice.dials, choice.predicted, everybody, sent)
    return Result(dict(zip(DIALED, values, strict=True)))


HEALED = {"healed": "bool", "intervals": "int64"}


def healing(cell: Cell) -> Result:
    """A network whose tables and channels hold anything: does it heal, and stay so?"""
    overlay = GossipOverlay(str(cell.parameters["sizes"]))
    spec = Spec(sum(overlay.sizes), cell.seed, start=str(cell.parameters["start"]))
    outcome = Trial(overlay, spec).run()
    return Result({"healed": outcome.failure is None, "intervals": outcome.intervals})


INHERITED = {"lowest": "float64", "sent": "float64"}


def inheritance(cell: Cell) -> Result:
    """Real nodes in a topic with one or two supertopics: the share of the worst supergroup."""
    supers = ("e", "a")[: int(cell.parameters["supertopics"])]
    rng = stream(cell.seed, "inheritance", len(supers))
    configuration = Configuration(Hierarchy({"e/f": ["a"]} if "a" in supers else {}))
    wishes = ["a"] * 10 + ["e"] * 10 + ["e/f"] * 100
    processes = []
    for id, topic in enumerate(wishes):
        node = GossipNode(id, configuration, rng)
        node.on_command(Subscribe(filter_of(topic)))
        processes.append(node)
    give_tables(processes, rng)
    still = still_copies({node.id: node for node in processes}, rng)
    asked: dict[str, Any] = {"failed": 0.0, "loss": LOSS, "failures": "stillborn"}
    topics = ("a", "e", "e/f")
    found = disseminate_once(still, topics, "e/f", **asked, seed=derive(cell.seed, "event"))
    lowest = min(found[topic].of_all for topic in supers)
    return Result({"lowest": lowest, "sent": float(sum(row.sent for row in found.values()))})
