"""One contender, one fault, one seed: the run of a comparison, and its figures.

All join at once and settle; then events in calm, events while the fault lasts, a time to heal, and
events again. The times are the same for all.
"""

from collections import deque
from typing import Any

from msgspec import Struct
from msgspec.msgpack import encode

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.overlay import Overlay
from planaria.lab.contest.contenders import CONTENDERS, publication
from planaria.lab.contest.workload import (
    AFTER,
    CALM,
    EVERY,
    FAULT,
    PHASES,
    Event,
    Ledger,
    make_workload,
)
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.links import Loss, Partition, Rule

FAULTS = ("none", "crash", "busiest", "loss", "partition", "corrupt")
SETTLE_MAX = 300  # intervals until the network must stand
QUIET = 15  # intervals after the events in calm: what is on its way arrives
HURRY = 2  # intervals in which all events of the fault are published
LASTS = 10  # intervals of loss or partition
HEAL = 150  # intervals to heal, for all alike
TAIL = 40  # intervals for the last events to arrive
STEADY = 3  # interval ends in a row that must be legitimate
LOSS = 0.2


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
    twice: int = 0  # deliveries of what an application had, in the whole run
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
        start = self.overlay.start("fresh", n, stream(seed, "start"), self.simulator.rng)
        if (world := self.overlay.observer()) is not None:
            self.simulator.watch(world)
        for node in start.nodes:
            self.simulator.add(node)

    def run(self) -> Figures:
        """All phases."""
        settled = self._until_steady()
        self._calm()
        calm = self._in_calm()
        self.ledger.phase = FAULT
        rule, events = self._begin(), self._events(FAULT)
        if rule is None:
            recovery = self._heal(LASTS + HEAL, events)
        else:
            self._heal(LASTS, events)
            self.simulator.rules.remove(rule)
            recovery = self._heal(HEAL, [])
        self.ledger.phase = AFTER
        for event in self._events(AFTER):
            self._publish(event)
            self._pass(EVERY)
        self._pass(TAIL)
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

    def _calm(self) -> None:
        self.ledger.phase = CALM
        for event in self._events(CALM):
            self._publish(event)
            self._pass(EVERY)
        self._pass(QUIET)

    def _heal(self, limit: int, events: list[Event]) -> int | None:
        """Intervals until legitimate for all the rest of `limit`; the events fall in the first."""
        wrong = 0
        due: dict[int, list[Event]] = {}
        for number, event in enumerate(events):
            due.setdefault(number * HURRY * INTERVAL // len(events), []).append(event)
        for interval in range(1, limit + 1):
            for tick in range((interval - 1) * INTERVAL, interval * INTERVAL):
                for event in due.get(tick, []):
                    self._publish(event)
                self.simulator.run(1)
            if self._violated():
                wrong = interval
        return wrong if limit - wrong >= STEADY else None

    def _events(self, phase: str) -> list[Event]:
        return [event for event in self.workload.events if event.phase == phase]

    def _publish(self, event: Event) -> None:
        nodes = self.simulator.nodes
        publisher = next((id for id in event.publishers if id in nodes), None)
        if publisher is None:
            return
        self.ledger.publish(event, publisher, self.simulator.tick)
        self.simulator.command(publisher, publication(self.overlay, event.topic, event.payload))

    def _violated(self) -> bool:
        return bool(self.overlay.violations(self.simulator.states(), self.simulator.channel()))

    def _pass(self, intervals: int) -> None:
        self.simulator.run(intervals * INTERVAL)

    def _begin(self) -> Rule | None:
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
        pairs = [pair for pair in ledger.due(CALM, nodes) if pair in ledger.delivered]
        got, memory = max(1, len(pairs)), [size(node.snapshot()) for node in nodes.values()]
        intervals = EVERY * len(self._events(CALM)) + QUIET
        copies, messages = ledger.copies[CALM], ledger.messages[CALM]
        return Figures(
            copies=copies / got,
            messages=messages / got,
            upkeep=(messages - copies) / (intervals * len(nodes)),
            hops=sum(ledger.hops.get(pair, 0) for pair in pairs) / got,
            delay=sum(map(ledger.delay, pairs)) / got,
            repeats=ledger.repeats / got,
            strays=ledger.strays / got,
            memory=sum(memory) / len(memory),
            memory_max=float(max(memory)),
        )

    def _figures(self, settled: int | None, recovery: int | None, calm: Figures) -> Figures:
        ledger, nodes = self.ledger, self.simulator.nodes
        due = {phase: ledger.due(phase, nodes) for phase in PHASES}
        calm.settled, calm.recovery, calm.twice = settled, recovery, ledger.twice
        calm.lost = _share(due[CALM] + due[FAULT], ledger.delivered)
        calm.lost_after = _share(due[AFTER], ledger.delivered)
        return calm


def _share(due: list[tuple[NodeId, int]], delivered: dict[tuple[NodeId, int], int]) -> float:
    return sum(pair not in delivered for pair in due) / max(1, len(due))


def size(state: object) -> int:
    """The bytes of a snapshot as msgpack: one measure for all."""
    return len(encode(_plain(state)))


def _plain(thing: Any) -> Any:
    """Lists of pairs for dicts, bytes for keys of more than 64 bits, fields for the rest."""
    if isinstance(thing, int) and not -(2**63) <= thing < 2**64:
        return thing.to_bytes((thing.bit_length() + 8) // 8, "big", signed=True)
    if isinstance(thing, dict):
        return [[_plain(key), _plain(value)] for key, value in thing.items()]
    if isinstance(thing, list | tuple | deque):
        return [_plain(each) for each in thing]
    if isinstance(thing, set | frozenset):
        return [_plain(each) for each in sorted(thing)]
    if isinstance(thing, Struct):
        return [_plain(getattr(thing, name)) for name in thing.__struct_fields__]
    return thing
