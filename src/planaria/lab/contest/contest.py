"""One contender, one fault, one seed: the run of a comparison, and its figures.

All join at once and settle; then events in calm, events while the fault lasts, a time to heal, and
events again. The times are the same for all.
"""

from msgspec import Struct

from planaria.core.book import Book, Due
from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Publish, Subscribe
from planaria.core.overlay import Overlay
from planaria.lab.contest.contenders import CONTENDERS, worded
from planaria.lab.contest.workload import (
    AFTER,
    CALM,
    EVERY,
    FAULT,
    Ledger,
    below,
    make_workload,
    number_of,
)
from planaria.simulator.applications import Applications
from planaria.simulator.checkers import Bookkeeper
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.links import Loss, Partition, Rule

FAULTS = ("none", "crash", "busiest", "loss", "partition", "corrupt")
SETTLE_MAX = 300  # intervals until the network must stand
QUIET = 15  # intervals after the events in calm: what is on its way arrives
LASTS = 10  # intervals of loss or partition
HEAL = 150  # intervals to heal, for all alike
TAIL = 40  # intervals for the last events to arrive
STEADY = 3  # interval ends in a row that must be legitimate
LOSS = 0.2


class Refused(Exception):
    """A contender did not take an event: its figures would be of another workload."""


class Figures(Struct):
    """What one run gave. The first nine are of the calm, per delivery unless they say otherwise."""

    copies: float  # messages that carry events
    messages: float  # all messages
    upkeep: float  # messages that carry none, per process and interval
    hops: float
    delay: float  # intervals from publication to delivery
    repeats: float  # copies to a process that had one
    strays: float  # copies to a process that did not ask
    memory: float  # bytes of state per process, as msgpack
    memory_max: float
    twice: int = 0  # deliveries of events that an application had, in the whole run
    lost: float = 0.0  # of events before and during the fault, among survivors
    lost_after: float = 0.0  # of events after the time to heal
    settled: int | None = None  # intervals until all who joined at once were in place
    recovery: int | None = None  # intervals after the fault until legitimate for good


class Contest:
    """A run, phase by phase."""

    def __init__(self, name: str, fault: str, n: int, topics: int, events: int, seed: int) -> None:
        self.fault, self.n = fault, n
        self.workload = make_workload(n, topics, events, seed)
        self.overlay: Overlay = CONTENDERS[name](self.workload)
        self.simulator = Simulator(seed)
        self.ledger = Ledger(self.workload)
        self.rng = stream(seed, "fault", fault)
        self.simulator.watch(self.ledger)
        self.book = Book(_wants, within=QUIET, own=False)
        self.simulator.watch(Bookkeeper(self.book, self.workload.subscriptions, in_force=True))
        self.applications = Applications(self.simulator, self.overlay)
        start = self.overlay.start("fresh", n, stream(seed, "start"), self.simulator.rng)
        if (world := self.overlay.observer()) is not None:
            self.simulator.watch(world)
        for node in start.nodes:
            self.simulator.add(node)

    def run(self) -> Figures:
        """All phases."""
        settled = self._until_steady()
        self._enter(CALM)
        self._pass(EVERY * len(self.workload.phase(CALM)) + QUIET)
        calm = self._in_calm()
        rule = self._begin()
        self._enter(FAULT)
        if rule is None:
            recovery = self._heal(LASTS + HEAL)
        else:
            self._heal(LASTS)
            self.simulator.rules.remove(rule)
            recovery = self._heal(HEAL)
        self._enter(AFTER)
        self._pass(EVERY * len(self.workload.phase(AFTER)) + TAIL)
        return self._figures(settled, recovery, calm)

    # Phases

    def _until_steady(self) -> int | None:
        """Intervals until legitimate at some interval ends in a row, if that comes."""
        wrong = 0
        for interval in range(1, SETTLE_MAX + 1):
            self._pass(1)
            if self._violated():
                wrong = interval
            elif interval - wrong >= STEADY:
                return wrong
        return None

    def _enter(self, phase: str) -> None:
        """From now on the events of `phase` are published, each at its time."""
        self.ledger.phase, now = phase, self.simulator.tick / INTERVAL
        events = self.workload.phase(phase)
        asks = [event.asked(now, self.simulator.nodes) for event in events]
        self.applications.plan([worded(it, self.overlay) for it in asks if it is not None])

    def _heal(self, limit: int) -> int | None:
        """Intervals until legitimate for all the rest of `limit`."""
        wrong = 0
        for interval in range(1, limit + 1):
            self._pass(1)
            if self._violated():
                wrong = interval
        return wrong if limit - wrong >= STEADY else None

    def _violated(self) -> bool:
        return bool(self.overlay.violations(self.simulator.states(), self.simulator.channel()))

    def _pass(self, intervals: int) -> None:
        self.applications.run(intervals * INTERVAL)
        if self.applications.refused:
            raise Refused(f"{self.overlay.name}: {self.applications.refused} events were refused")

    def _begin(self) -> Rule | None:
        """The fault happens; the rule, if it lasts."""
        simulator = self.simulator
        if self.fault == "crash":
            for id in self.workload.victims:
                simulator.remove(id)
        elif self.fault == "busiest":
            received = self.ledger.received
            simulator.remove(max(sorted(simulator.nodes), key=lambda it: received.get(it, 0)))
        elif self.fault == "corrupt":
            self._corrupt()
        elif self.fault != "none":
            rules = {"loss": Loss(LOSS, self.rng), "partition": Partition(self.workload.halves)}
            simulator.rules.append(rules[self.fault])
            return rules[self.fault]
        return None

    def _corrupt(self) -> None:
        """Arbitrary values in all variables of all processes, and messages that nobody sent."""
        ids = sorted(self.simulator.nodes)
        for id in ids:
            self.overlay.corrupt(self.simulator.nodes[id], ids, self.rng)
        for _ in range(2 * self.n):
            target, message = self.overlay.forge(ids, self.rng)
            delay = 1 + self.rng.randrange(INTERVAL)
            sender = self.overlay.link_of(message, ids, self.rng)
            self.simulator.inject(target, message, delay, sender)

    # Figures

    def _in_calm(self) -> Figures:
        """What nothing but events and upkeep cost."""
        ledger, nodes = self.ledger, self.simulator.nodes
        given = [it for it in self.due(CALM) if self.book.when(it) is not None]
        got, memory = max(1, len(given)), [len(node.snapshot()) for node in nodes.values()]
        intervals = EVERY * len(self.workload.phase(CALM)) + QUIET
        copies, messages = ledger.copies[CALM], ledger.messages[CALM]
        return Figures(
            copies=copies / got,
            messages=messages / got,
            upkeep=(messages - copies) / (intervals * len(nodes)),
            hops=sum(ledger.hops.get(_pair(it), 0) for it in given) / got,
            delay=sum(map(self._delay, given)) / got,
            repeats=ledger.repeats / got,
            strays=ledger.strays / got,
            memory=sum(memory) / len(memory),
            memory_max=float(max(memory)),
        )

    def _figures(self, settled: int | None, recovery: int | None, calm: Figures) -> Figures:
        calm.settled, calm.recovery = settled, recovery
        known, breaches = self.book.published, self.book.breaches
        calm.twice = sum(it.kind == "twice" and it.id in known for it in breaches)
        calm.lost = self._lost(CALM, FAULT)
        calm.lost_after = self._lost(AFTER)
        return calm

    def due(self, *phases: str) -> list[Due]:
        """What was to be delivered of the events of `phases` to those who live now."""
        nodes, events = self.simulator.nodes, self.workload.events
        return [
            it
            for it in self.book.due(self.simulator.tick / INTERVAL)
            if it.client[0] in nodes and events[_pair(it)[1]].phase in phases
        ]

    def _lost(self, *phases: str) -> float:
        """The share of it that was not delivered."""
        due = self.due(*phases)
        return sum(self.book.when(it) is None for it in due) / max(1, len(due))

    def _delay(self, due: Due) -> float:
        """Intervals from publication to delivery."""
        when = self.book.when(due)
        assert when is not None
        return when - due.publication.time


def _wants(subscription: Subscribe, publication: Publish) -> bool:
    return below(publication.topic, subscription.pattern)


def _pair(due: Due) -> tuple[NodeId, int]:
    """The node, and which event."""
    return due.client[0], number_of(due.publication.command)
