"""The smallest cases in which leased routing as printed goes wrong, and our broker in the same.

The printed rules run on a chain of two brokers in milliseconds of section 4.1, ours on a leaf and
its parent, in timeouts. A case gives one figure for each, and what it counts.
"""

from collections.abc import Callable, Mapping
from random import Random

from planaria.core.ids import NodeId
from planaria.core.node import Subscribe, Unsubscribe
from planaria.filters.filters import Filter, filter_id
from planaria.filters.sql import parse
from planaria.literal.routing import DELAY, Chain, Entry, Printed
from planaria.protocols.routing.leases import Lease, LeaseTable
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.overlay import TreeBroker
from planaria.protocols.routing.timing import timing
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result

PI, RHO = 60_200, 60_000  # milliseconds, section 4.1
SECOND = 1_000
PERIODS = 50  # that a fault is given to go away
F, G = frozenset({"f"}), frozenset({"g"})
FIRE, WATER, BOTH = (
    parse(it)[0] for it in ("kind = 'fire'", "kind = 'water'", "kind IN ('fire', 'water')")
)


class Pair:
    """A leaf broker 1 with clients, and its parent 0."""

    def __init__(self, strategy: str, phases: tuple[int, int] = (0, 0)) -> None:
        self.timing = timing(4, (0, 1.5), 1)
        self.simulator = Simulator(0)
        for id, phase in zip((0, 1), phases, strict=True):
            above: NodeId | None = None if id == 0 else 0
            broker = TreeBroker(
                id, [1 - id], above, self.timing, Random(id), strategy=strategy, hierarchical=True
            )
            broker.table.clock = phase
            self.simulator.add(broker)
        self.simulator.run(3 * INTERVAL)

    def broker(self, id: NodeId) -> Broker:
        """Leaf or parent."""
        node = self.simulator.nodes[id]
        assert isinstance(node, Broker)
        return node

    def subscribe(self, client: int, filter: Filter) -> None:
        """A client of the leaf subscribes."""
        self.simulator.command(1, Subscribe(where=filter, client=client))

    def unsubscribe(self, client: int, filter: Filter) -> None:
        """A client of the leaf unsubscribes."""
        self.simulator.command(1, Unsubscribe(where=filter, client=client))

    def wants(self, kind: str) -> bool:
        """Does the parent send such a notification to the leaf?"""
        return 1 in self.broker(0).table.destinations({"kind": kind})

    def without_fire(self, intervals: int) -> float:
        """Intervals in which the parent does not, of so many; looked at tick by tick."""
        lacking = 0
        for _ in range(intervals * INTERVAL):
            self.simulator.run(1)
            lacking += not self.wants("fire")
        return lacking / INTERVAL


def run_case(cell: Cell) -> Result:
    """One of the cases."""
    case = CASES[str(cell.parameters["case"])]
    printed, ours = case()
    return Result({"printed": float(printed), "ours": float(ours), "what": case.__doc__})


def phases() -> tuple[float, float]:
    """Two clients, clocks out of phase, no fault: seconds (intervals) without the entry."""
    outages = _two_clients().missing(1, "f", 200 * SECOND)
    pair = Pair("identity", (3, 9))
    pair.subscribe(0, FIRE)
    pair.simulator.run(2 * INTERVAL)
    pair.subscribe(1, FIRE)
    pair.simulator.run(2 * INTERVAL)
    return sum(end - start for start, end in outages) / SECOND, pair.without_fire(60)


def clock() -> tuple[float, float]:
    """One clock was changed: outages later than 2 pi + d*dmax, in 2,000 leasing periods."""
    settled = 2 * PI + DELAY
    outages = _two_clients().missing(1, "f", 2_000 * PI)
    pair = Pair("identity")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, FIRE)
    pair.simulator.run(5 * INTERVAL)
    pair.broker(0).table.clock = 5
    pair.simulator.run(pair.timing.delta * INTERVAL)
    return sum(start > settled for start, _ in outages), pair.without_fire(100)


def unsubscription() -> tuple[float, float]:
    """One of two identical clients leaves while flags are 0: seconds without the entry."""
    chain = Chain([Printed(), Printed()], PI, [PI, PI])
    chain.client(1, F, 100, RHO, leaves=PI + 50)
    chain.client(2, F, 50_000, RHO)
    outages = chain.missing(1, "f", 4 * PI)
    pair = Pair("identity")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, FIRE)
    pair.simulator.run(5 * INTERVAL)
    for leases in pair.broker(1).table.entries.values():
        for lease in leases.values():
            lease.flag = 0
    pair.unsubscribe(1, FIRE)
    return sum(end - start for start, end in outages) / SECOND, pair.without_fire(30)


def cover() -> tuple[float, float]:
    """A false cover at the leaf: when the filter is back, in parts of 2 pi + d*dmax."""
    chain = Chain([Printed(covering=True), Printed(covering=True)], PI, [PI, PI])
    chain.client(1, F, 60_100, RHO)
    chain.brokers[0].table[9] = Entry(F | G, ("client", 9), 1)
    chain.brokers[1].table[1] = Entry(F, ("broker", 0), 1)
    restored = max((end for _, end in chain.missing(1, "f", 6 * PI)), default=0)
    pair = Pair("covering")
    pair.subscribe(0, FIRE)
    pair.simulator.run(5 * INTERVAL)
    pair.broker(1).table.entries[-10] = {filter_id(BOTH): Lease(BOTH)}
    pair.broker(1).announcer.changed([0])
    lacking = pair.without_fire(3 * pair.timing.pi)
    return restored / (2 * PI + DELAY), lacking / pair.timing.delta


def merge() -> tuple[float, float]:
    """F and G merged, G ends, F renews the merge: periods after which G is still wanted."""
    broker = Printed()
    broker.table[5] = Entry(F | G, ("broker", 0))
    printed = 0
    for _ in range(PERIODS):
        broker.overrun()
        broker.subscribe(5, F | G, ("broker", 0))
        printed += broker.wants("g")
    pair = Pair("merging")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, WATER)
    pair.simulator.run(8 * INTERVAL)
    pair.unsubscribe(1, WATER)
    pair.simulator.run(2 * INTERVAL)
    ours = 0
    for _ in range(3):
        pair.simulator.run(pair.timing.pi * INTERVAL)
        ours += pair.wants("water")
    return printed, ours


def ids() -> tuple[float, float]:
    """Two identical clients leave in turn: entries that nobody wants, one delay later."""
    chain = Chain([Printed(), Printed()], PI, [PI, PI])
    chain.client(1, F, 100, RHO, leaves=70_000)
    chain.client(2, F, 60_250, RHO, leaves=71_000)
    chain.missing(1, "f", 71_000 + 2 * DELAY)
    pair = Pair("identity")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, FIRE)
    pair.simulator.run(10 * INTERVAL)
    pair.unsubscribe(0, FIRE)
    pair.unsubscribe(1, FIRE)
    pair.simulator.run(2 * INTERVAL)
    return len(chain.brokers[1].table), len(pair.broker(0).table.of(1))


def filter_under_right_id() -> tuple[float, float]:
    """A corrupted filter under a right id: how many are left after one renewal."""
    broker = Printed()
    broker.table[1] = Entry(G, ("client", 1))
    broker.subscribe(1, F, ("client", 1))
    table = LeaseTable(4)
    table.entries[-1] = {1: Lease(WATER)}
    table.insert(-1, 1, FIRE)
    return broker.wants("g"), len(table.destinations({"kind": "water"}))


def filter_renewed_by_its_flag() -> tuple[float, float]:
    """A corrupted filter under a right id, if a renewal only set its flag (not in the paper)."""
    broker = Printed(reinserts=False)
    broker.table[1] = Entry(G, ("client", 1))
    for _ in range(PERIODS):
        broker.overrun()
        broker.subscribe(1, F, ("client", 1))
    return broker.wants("g"), filter_under_right_id()[1]


def _two_clients() -> Chain:
    chain = Chain([Printed(), Printed()], PI, [PI, 30_000])
    chain.client(1, F, 100, RHO)
    chain.client(2, F, 59_000, RHO)
    return chain


CASES: Mapping[str, Callable[[], tuple[float, float]]] = {
    "phases": phases,
    "clock": clock,
    "unsubscription": unsubscription,
    "cover": cover,
    "merge": merge,
    "ids": ids,
    "filter": filter_under_right_id,
    "flag": filter_renewed_by_its_flag,
}
