"""Retention among many nodes with faulty clocks, beside the rules that were rejected.

Each node exchanges with one neighbour per tick (one second). At `FAULT` something breaks; the
question is what live publications are missing in the end, and whether dead ones came back.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random

import pytest

from planaria.protocols.publications.retention import Horizon, Retention
from planaria.records.positions import Delivered

N, EPSILON, FAULT, END = 16, 2, 230, 290
AGE = 80
POLICY = Retention(age=AGE)
D = POLICY.step
START = 10_000 * D


class Rule(ABC):
    """A rejected rule's view of the window; only `lo` and what it deletes differ."""

    def __init__(self) -> None:
        self.lo = 0

    @abstractmethod
    def tick(self, seconds: int, stored: list[int]) -> list[int]:
        """Read the clock; which seconds to delete."""

    def accepts(self, time: int) -> bool:
        return time >= self.lo

    def meet(self, other: "Rule") -> None:  # noqa: B027 - most rules hear nothing
        """Hear what a neighbour advertises."""


class OwnClock(Rule):
    """Rejected: the own clock alone decides, and what is too old goes at once."""

    def tick(self, seconds: int, stored: list[int]) -> list[int]:
        self.lo = seconds - AGE
        return [time for time in stored if time < self.lo]


class MaximumHorizon(OwnClock):
    """Rejected: the largest horizon seen anywhere is adopted, so it can never be taken back."""

    def tick(self, seconds: int, stored: list[int]) -> list[int]:
        self.lo = max(self.lo, seconds - AGE)
        return [time for time in stored if time < self.lo]

    def meet(self, other: Rule) -> None:
        self.lo = max(self.lo, other.lo)


class Median(Rule):
    """Ours, in the shape of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.horizon = Horizon(POLICY)
        self.delivered = Delivered()

    def tick(self, seconds: int, stored: list[int]) -> list[int]:
        self.horizon.read_clock(seconds)
        self.horizon.on_timeout(list(self.horizon.votes))
        self.lo = self.horizon.lo
        self.delivered.forget(self.horizon.oldest(self.horizon.windows()), lambda _: False)
        oldest = min(window.lo for window in self.horizon.windows())
        return [time for time in stored if time < oldest]


class World:
    """Nodes on a ring, each with a clock, a rule and sets of keys by their time."""

    def __init__(self, rule: type[Rule], seed: int) -> None:
        self.random = Random(seed)
        self.rules = [rule() for _ in range(N)]
        self.offsets = [self.random.randint(-EPSILON, EPSILON) for _ in range(N)]
        self.stores: list[dict[int, set[int]]] = [{} for _ in range(N)]
        self.deliveries: dict[tuple[int, int], int] = {}
        self.published: dict[int, int] = {}
        self.resurrected = 0
        self.deleted_live = 0
        self.now = START

    def insert(self, node: int, time: int, key: int) -> None:
        rule, bucket = self.rules[node], self.stores[node].setdefault(time, set())
        if key in bucket or not rule.accepts(time):
            return
        bucket.add(key)
        if time < self.now - AGE - 2 * D:
            self.resurrected += 1
        if not isinstance(rule, Median) or rule.delivered.add((key, bytes(12)), 0, 1, time):
            self.deliveries[node, key] = self.deliveries.get((node, key), 0) + 1

    def exchange(self, one: int, other: int) -> None:
        for a, b in ((one, other), (other, one)):
            mine, yours = self.rules[a], self.rules[b]
            mine.meet(yours)
            if isinstance(mine, Median) and isinstance(yours, Median):
                mine.horizon.hear(b, yours.horizon.seconds or 0, yours.lo)
            for time, bucket in list(self.stores[b].items()):
                if yours.accepts(time):
                    for key in sorted(bucket - self.stores[a].get(time, set())):
                        self.insert(a, time, key)

    def tick(self) -> None:
        self.now += 1
        for node in range(N):
            rule, store = self.rules[node], self.stores[node]
            for gone in rule.tick(self.now + self.offsets[node], sorted(store)):
                if gone >= self.now - AGE + 2 * D:
                    self.deleted_live += len(store[gone])
                del store[gone]
        if self.now % 3 == 0:
            self.publish(self.random.randrange(N))
        for node in range(N):
            self.exchange(node, (node + self.random.choice((1, -1))) % N)

    def publish(self, node: int) -> None:
        rule = self.rules[node]
        time = (rule.horizon.now or 0) if isinstance(rule, Median) else self.now
        key = len(self.published)
        self.published[key] = time
        self.insert(node, time, key)

    def run(self, fault: Callable[["World"], None], cure: Callable[["World"], None]) -> None:
        for time in range(END):
            if time == FAULT:
                fault(self)
            if time == FAULT + 20:
                cure(self)
            self.tick()

    def lost(self, node: int) -> float:
        """The part of the keys that should be live everywhere which this node does not show."""
        live = [k for k, t in self.published.items() if self.now - AGE < t < self.now - 5 * D]
        assert live, "a run without live keys shows nothing"
        rule, store = self.rules[node], self.stores[node]
        held = [
            k
            for k in live
            if rule.accepts(self.published[k]) and k in store.get(self.published[k], ())
        ]
        return 1 - len(held) / len(live)


FAULTY = 5


def clock_ahead(world: World) -> None:
    world.offsets[FAULTY] += 10**6


def clock_behind(world: World) -> None:
    world.offsets[FAULTY] = -(10**4)


def stored_horizon(world: World) -> None:
    rule = world.rules[FAULTY]
    rule.lo = 10**7
    if isinstance(rule, Median):
        rule.horizon.lo = 10**7


def most_clocks_ahead(world: World) -> None:
    for node in range(0, N, 5):
        for beside in range(node, min(N, node + 3)):
            world.offsets[beside] += 10**6


def clocks_back(world: World) -> None:
    for node in range(N):
        if world.offsets[node] > 10**5:
            world.offsets[node] -= 10**6


def nothing(world: World) -> None:
    """The fault stays."""


FAULTS = [
    (clock_ahead, nothing),
    (clock_behind, nothing),
    (stored_horizon, nothing),
    (most_clocks_ahead, clocks_back),
]


@pytest.mark.parametrize(("fault", "cure"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
def test_median_loses_nothing_and_delivers_once_under_faulty_clocks(
    fault: Callable[[World], None], cure: Callable[[World], None]
) -> None:
    for seed in range(2):
        world = World(Median, seed)
        world.run(fault, cure)
        assert [world.lost(node) for node in range(N)] == [0.0] * N
        assert world.resurrected == 0
        assert max(world.deliveries.values()) == 1
        assert world.deleted_live == 0, "hidden at most"


def test_rejected_maximum_horizon_loses_everything_for_ever_to_one_clock_or_one_variable() -> None:
    for fault in (clock_ahead, stored_horizon):
        world = World(MaximumHorizon, 0)
        world.run(fault, clocks_back)
        assert [world.lost(node) for node in range(N)] == [1.0] * N


def test_rejected_own_clock_loses_all_at_the_node_with_the_wrong_clock() -> None:
    world = World(OwnClock, 0)
    world.run(clock_ahead, nothing)
    assert world.lost(FAULTY) == 1.0


def test_rejected_own_clock_delivers_again_what_it_dropped_in_error() -> None:
    world = World(OwnClock, 0)
    world.run(most_clocks_ahead, clocks_back)
    assert max(world.deliveries.values()) > 1


def test_rejected_own_clock_resurrects_what_others_let_go() -> None:
    world = World(OwnClock, 0)
    world.run(clock_behind, nothing)
    kept = [time for time in world.stores[FAULTY] if time < world.now - AGE - 2 * D]
    assert kept, "the slow node still serves what has expired"
