"""daMulticast as printed, run: Figures 5 and 7 over whole groups, Figures 4 and 6 over searches."""

from collections.abc import Sequence
from math import ceil, log
from random import Random

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.literal.gossip import LiteralProcess
from planaria.literal.gossip_links import LiteralLinkProcess
from planaria.protocols.gossip.node import GossipNode
from planaria.protocols.gossip.overlay import GossipOverlay, parse_sizes
from planaria.protocols.gossip.parameters import Parameters
from planaria.simulator.engine import Simulator
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.reach import GroupReach
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result
from planaria.studies.damulticast.runs import LOSS, SEARCHERS, counted, groups_of

SUPER, GROUP = 5, SEARCHERS  # processes of T0, which is searched for, and of T1, which searches
SEARCHED_INTERVALS = 60  # an amended search ends within a fraction of it


def event(cell: Cell) -> Result:
    """One event by Figures 5 and 7 to the letter, `>=` included.

    `topic` says what T_i is for a forwarder: its 'own' group, or that of the 'event' (erratum 18).
    """
    at = cell.parameters
    sizes = parse_sizes(str(at["sizes"]))
    network = Network(sizes, stream(cell.seed, "printed", str(at["topic"])))
    return Result(counted(network.publish(own=at["topic"] == "own")) | network.joined())


JOINED = {"joined": "int64"}  # the most topics that a process is subscribed to in the end


class Network:
    """Processes as printed, with tables drawn at random as in section VII."""

    def __init__(self, sizes: Sequence[int], rng: Random) -> None:
        self.sizes, self.rng, self.dials = sizes, rng, Parameters()
        self.names = groups_of(",".join(map(str, sizes)))
        self.members: dict[str, list[NodeId]] = {}
        self.processes: list[LiteralProcess] = []
        first = 0
        for name, size in zip(self.names, sizes, strict=True):
            self.members[name] = list(range(first, first + size))
            first += size
        for name in self.names:
            self.processes += [self._process(name, id) for id in self.members[name]]

    def _process(self, name: str, me: NodeId) -> LiteralProcess:
        """Tables of its own group, and of that of the event: literally it joins that one too."""
        tables, above = {}, {}
        for topic in dict.fromkeys((name, self.names[-1])):
            others = [id for id in self.members[topic] if id != me]
            wanted = ceil((self.dials.b + 1) * log(len(self.members[topic])))
            tables[topic] = self.rng.sample(others, min(wanted, len(others)))
            level = self.names.index(topic)
            supers = self.members[self.names[level - 1]] if level else []
            above[topic] = self.rng.sample(supers, min(self.dials.z, len(supers)))
        sizes = dict(zip(self.names, self.sizes, strict=True))
        return LiteralProcess(name, tables, above, sizes, self.dials, self.rng)

    def publish(self, *, own: bool) -> list[GroupReach]:
        """One event of the topic at the bottom, to its end."""
        bottom = self.names[-1]
        rows = {name: GroupReach(size, size) for name, size in zip(
            self.names, self.sizes, strict=True)}  # fmt: skip
        publisher = self.processes[self.rng.choice(self.members[bottom])]
        pending = self._sent(bottom, publisher.publish(bottom), rows)
        while pending:
            following: list[NodeId] = []
            for target in pending:
                process = self.processes[target]
                topic = process.topic if own else bottom
                following += self._sent(topic, process.receive(topic, b"event"), rows)
            pending = following
        for process in self.processes:
            rows[process.topic].reached += bool(process.delivered)
        return list(rows.values())

    def _sent(
        self, topic: str, sent: tuple[list[NodeId], list[NodeId]], rows: dict[str, GroupReach]
    ) -> list[NodeId]:
        """Count copies where they are sent from; those that arrive."""
        above, within = sent
        rows[topic].sent += len(within)
        rows[topic].intergroup_sent += len(above)
        up = [target for target in above if self.rng.random() >= LOSS]
        rows[topic].intergroup_received += len(up)
        return [target for target in within if self.rng.random() >= LOSS] + up

    def joined(self) -> dict[str, int]:
        """What the event left behind."""
        return {"joined": max(len(process.subscribed) for process in self.processes)}


LINKED = {"right": "float64", "stopped": "float64"}


def links(cell: Cell) -> Result:
    """The share of searchers that found superprocesses and nothing else, and that have stopped.

    `start` is 'nothing' or 'dead': three superprocesses that have all failed (erratum 17).
    """
    at = cell.parameters
    dead = at["start"] == "dead"
    if at["reading"] == "planaria":
        return _ours(cell.seed, dead=dead)
    amended: tuple[str, ...] = () if at["reading"] == "printed" else ("start", "root")
    if dead:  # the search itself is right: what is asked is whether it starts again
        amended = ("start", "stop", "root", "narrow", "again")
    rng = stream(cell.seed, "links")
    simulator = Simulator(cell.seed)
    found = []
    ids = range(SUPER + GROUP)
    for id in ids:
        around = rng.sample([other for other in ids if other != id], 4)
        node = LiteralLinkProcess(id, ".a" if id < SUPER else ".a.b", around, amended)
        node.searching = id >= SUPER and not dead
        if id < SUPER:
            node.stable = {-1: "."}
        else:
            found.append(node)
            node.dead = [97, 98, 99] if dead else []
            node.stable = dict.fromkeys(node.dead, ".a")
        simulator.add(node)
    for _ in range(SEARCHED_INTERVALS):
        simulator.run_interval()
    right = [_right(node.stable, node.dead) for node in found]
    stopped = [not node.searching for node in found]
    return Result({"right": sum(right) / GROUP, "stopped": sum(stopped) / GROUP})


def _right(table: dict[NodeId, str], dead: Sequence[NodeId]) -> bool:
    alive = [topic for id, topic in table.items() if id not in dead]
    return bool(alive) and all(topic == ".a" for topic in alive)


def _ours(seed: int, *, dead: bool) -> Result:
    """The same of real nodes, from nothing or from tables that name three dead processes."""
    overlay = GossipOverlay(f"{SUPER},{GROUP}")
    start = "legitimate" if dead else "fresh"
    trial = Trial(overlay, Spec(SUPER + GROUP, seed, start=start))
    above, topic = overlay.topics
    trial.simulator.detects_failed_sends = False
    held = []
    for id, node in sorted(trial.simulator.nodes.items()):
        assert isinstance(node, GossipNode)
        if id >= SUPER:
            held.append(node)
    for node in held if dead else ():
        node.groups[topic].links.contacts = dict.fromkeys((97, 98, 99), (above, 0))
    for _ in range(SEARCHED_INTERVALS):
        trial.simulator.run_interval()
    right = stopped = 0
    for node in held:
        table = node.groups[topic].links.contacts
        right += bool(table) and all(it == above and id < SUPER for id, (it, _) in table.items())
        stopped += not node.groups[topic].links.lacking
    return Result({"right": right / GROUP, "stopped": stopped / GROUP})
