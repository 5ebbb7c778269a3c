"""Leased routing from arbitrary states: legitimate within 2 pi + d*dmax, and then for good."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.chance import combination
from planaria.filters.filters import EVERYTHING, filter_id
from planaria.protocols.routing.leases import LeaseTable
from planaria.protocols.routing.messages import Update
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.routing.timing import timing
from planaria.simulator.schedule import load_schedule, parse_schedule
from planaria.simulator.trial import Outcome, Spec, Trial, must_heal

VARIANTS = [(strategy, up) for strategy in STRATEGIES for up in (False, True)]


def heal(overlay: RoutingOverlay, spec: Spec) -> Outcome:
    """Must heal within the bound that the timing states for this tree."""
    outcome = must_heal(overlay, spec)
    assert outcome.intervals <= overlay.timing.delta
    return outcome


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_arbitrary_state_heals_within_the_stated_bound(
    strategy: str, up: bool, seeds: Callable[[int, int], int]
) -> None:
    """Tables, flags, clocks, ids, filters, memories and messages in flight are all arbitrary."""
    slowest, first = 0, VARIANTS.index((strategy, up)) * 3  # together they try every combination
    for seed in range(seeds(3, 2_000)):
        n, degree = combination(first + seed, range(1, 15), (2, 3))
        overlay = RoutingOverlay(strategy, up, degree=degree, subscriptions=20)
        spec = Spec(n=n, seed=seed, closure=2 * 14)
        slowest = max(slowest, heal(overlay, spec).intervals)
    assert slowest > 2  # the states were worth healing


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_legitimate_state_stays_legitimate_and_can_be_reached_from_nothing(
    strategy: str, up: bool
) -> None:
    overlay = RoutingOverlay(strategy, up)
    assert heal(overlay, Spec(13, 1, "legitimate", closure=60)).intervals == 0
    assert heal(overlay, Spec(13, 1, "fresh", closure=30)).intervals <= 10


@pytest.mark.parametrize("nemesis", ["lossy", "partition", "replay", "pause", "slow"])
def test_routing_heals_after(nemesis: str) -> None:
    for strategy in ("identity", "merging"):
        overlay = RoutingOverlay(strategy)
        must_heal(overlay, Spec(13, 3, "legitimate", faults=load_schedule(nemesis)))


def test_a_bit_flip_in_one_broker_heals_within_the_bound(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(4, 100)):
        overlay = RoutingOverlay("covering")
        faults = parse_schedule("at 1 corrupt count=1")
        heal(overlay, Spec(13, seed, "legitimate", faults=faults, closure=30))


def test_a_lease_that_its_cancel_overtook_does_not_come_back() -> None:
    """Found at the scale of the paper: it did, and lived for another 2 pi, 40 intervals of 37."""
    faults = parse_schedule("at 1 corrupt count=1")
    heal(RoutingOverlay("merging"), Spec(40, 1, "legitimate", faults=faults, closure=30))
    table = LeaseTable(10, late=3)
    assert not table.cancel(2, 7, stamp=30)
    assert not table.insert(2, 7, EVERYTHING, stamp=29)
    assert table.insert(3, 7, EVERYTHING, stamp=29)  # of another neighbour
    assert table.insert(2, 7, EVERYTHING, stamp=31)
    assert not table.cancel(2, 7, stamp=30)  # the cancel came late
    assert table.cancel(2, 7, stamp=32)
    for _ in range(3):
        assert not table.insert(2, 7, EVERYTHING, stamp=31)
        table.tick()
    assert table.cancelled == {}
    table.cancelled[2, 7] = (40, 1 << 40)  # after a fault
    table.tick()
    assert table.insert(2, 7, EVERYTHING, stamp=31)


def test_who_begins_anew_is_not_bound_by_its_former_cancels() -> None:
    broker = Broker(1, timing(4, (0, 1.5), 1), Random(0))
    broker.link_up(0)
    id = filter_id(EVERYTHING)
    broker.on_message(Update(0, 500, (), (id,), session=1))
    broker.on_message(Update(0, 1, ((id, EVERYTHING),), session=1))
    assert broker.table.of(0) == {}
    broker.on_message(Update(0, 1, ((id, EVERYTHING),), session=2))
    assert [lease.filter for lease in broker.table.of(0).values()] == [EVERYTHING]
    broker.on_message(Update(0, 900, ((id, EVERYTHING),), session=2))
    broker.on_message(Update(0, 2, (), session=3))
    broker.on_message(Update(0, 3, (), (id,), session=3))  # numbers of before mean nothing
    assert broker.table.of(0) == {}


def test_a_lease_keeps_the_newest_number_that_renewed_it() -> None:
    """A late renewal gave it an older one: a cancel from between the two then ended it."""
    table = LeaseTable(10)
    for stamp in (9, 5):
        table.insert(2, 7, EVERYTHING, stamp)
    assert not table.cancel(2, 7, stamp=7)
    assert table.get(2, 7) is not None
    lease = table.of(2)[7]
    lease.stamp, lease.flag = 1 << 30, 0  # a fault: at the next overrun it is not believed
    table.insert(2, 7, EVERYTHING, 10)
    assert table.cancel(2, 7, stamp=11)


def test_a_cancel_that_was_never_sent_is_not_legitimate() -> None:
    overlay = RoutingOverlay("covering")
    trial = Trial(overlay, Spec(7, 1, "legitimate"))
    assert trial.violations() == []
    broker, parent = trial.simulator.nodes[1], trial.simulator.nodes[0]
    assert isinstance(broker, Broker)
    assert isinstance(parent, Broker)
    broker.table.cancelled[0, 5] = (parent.announcer.stamp + 1, 3)
    assert [it.invariant for it in trial.violations()] == ["cancelled"]
    trial.simulator.run_interval()
    broker.table.cancelled[0, 5] = (parent.announcer.stamp, 3)
    assert trial.violations() == []


def test_imperfect_merging_never_misses_what_is_wanted(seeds: Callable[[int, int], int]) -> None:
    """With a waste of half it may forward more than is wanted; it must not forward less."""
    for seed in range(seeds(2, 50)):
        faults = parse_schedule("at 0 publish count=50")
        heal(RoutingOverlay("merging", waste=0.5), Spec(13, seed, faults=faults, closure=30))
