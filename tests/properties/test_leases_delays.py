"""Leases over links as slow as their overlays promise to bear, and flags that a fault left."""

from math import ceil
from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.routing.leases import Lease, client_destination
from planaria.protocols.routing.messages import Update
from planaria.protocols.routing.overlay import RoutingOverlay, TreeBroker
from planaria.protocols.routing.timing import Timing
from planaria.protocols.routing.workload import random_filter
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.links import Rule

FALSE = 9


class OfContent(RoutingOverlay):
    """A path of brokers that have the leases of `content`."""

    delay_max = ContentOverlay.delay_max

    def _timing(self, n: int) -> Timing:
        return ContentOverlay().timing_of(n)


class CancelsFirst(Rule):
    """What renews a lease takes as long as is allowed, all else no time: cancels overtake."""

    def __init__(self, intervals: float) -> None:
        super().__init__()
        self.ticks = round(intervals * INTERVAL)

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        return [self.ticks if isinstance(message, Update) and message.leases else 1]


def path(overlay: RoutingOverlay, n: int) -> tuple[Simulator, list[TreeBroker]]:
    simulator = Simulator(1)
    brokers = [it for it in overlay.legitimate(n, simulator.rng) if isinstance(it, TreeBroker)]
    for broker in brokers:
        simulator.add(broker)
    return simulator, brokers


@pytest.mark.parametrize(("kind", "n"), [(OfContent, 6), (RoutingOverlay, 8)])
def test_no_cancel_is_forgotten_before_what_it_overtook_has_come(
    kind: type[RoutingOverlay], n: int
) -> None:
    """It was: with D = 8 a false lease came back at every hop, for 257 intervals of 138."""
    overlay = kind("simple", degree=1, subscriptions=0)
    simulator, brokers = path(overlay, n)
    simulator.rules.append(CancelsFirst(overlay.delay_max))
    brokers[0].table.entries[client_destination(1)] = {FALSE: Lease(random_filter(Random(7)))}
    brokers[0].table.clock = 0  # it lives as long as it can
    brokers[0].table.reindex()
    spread, last = 0, 0
    for interval in range(6 * overlay.timing.pi):
        simulator.run_interval()
        having = sum(FALSE in it for one in brokers for it in one.table.entries.values())
        spread, last = max(spread, having), interval if having else last
    assert spread == n, "nobody was told of it"
    assert last <= 2 * overlay.timing.pi + ceil((n - 1) * (overlay.delay_max + 1))


@pytest.mark.parametrize("overlay", [ContentOverlay, RoutingOverlay])
def test_leases_bear_the_delays_that_are_promised(
    overlay: type[ContentOverlay] | type[RoutingOverlay],
) -> None:
    """One renewal is lost with a link, the next takes as long as it may."""
    for rho in (1, 2, 4, 20):
        one = overlay(rho=rho)
        for n in range(2, 40):
            made = one.timing_of(n) if isinstance(one, ContentOverlay) else one._timing(n)
            assert made.pi >= 2 * rho + one.delay_max
            assert made.late > one.delay_max
            one.timing = made
            assert one.calm > made.pi


def test_what_is_right_but_for_its_flags_is_legitimate_for_good_after_a_leasing_period() -> None:
    """The judge cannot know when the next renewal comes: whoever asks it waits, `calm`."""
    overlay = RoutingOverlay("simple", degree=1, subscriptions=4)
    simulator, brokers = path(overlay, 3)
    for broker in brokers:
        broker.table.clock = overlay.timing.pi - 1
        for lease in [it for leases in broker.table.entries.values() for it in leases.values()]:
            lease.flag = 0
    said, calm = [], 0
    for _ in range(overlay.bound(3, 0.5) + overlay.calm + 3 * overlay.timing.pi):
        said.append(bool(overlay.violations(simulator.states(), simulator.channel())))
        calm = 0 if said[-1] and calm < overlay.calm else calm + 1
        assert not (said[-1] and calm >= overlay.calm)
        simulator.run_interval()
    assert said[:2] == [False, True]
    assert calm > overlay.calm
