"""Links that differ (3.5): each lease lasts as long as its link asks for, and nothing is missed."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.core.node import Publish, Subscribe
from planaria.protocols.routing.arbitrary import scramble
from planaria.protocols.routing.overlay import TreeBroker
from planaria.protocols.routing.timing import Delays, timing, timing_of_each, timing_on_path
from planaria.simulator.delays import INTERVAL, parse_delay
from planaria.simulator.engine import Simulator
from planaria.simulator.worlds.definitions import keep_book

RHO = 2
NEAR: Delays = (0.0, 1.5)  # half an interval on the way, then up to one to the timeout
FAR: Delays = (0.0, 13.0)
LINKS: dict[tuple[NodeId, NodeId], Delays] = {(0, 1): NEAR, (0, 2): FAR}
TREE: dict[NodeId, list[NodeId]] = {0: [1, 2], 1: [0], 2: [0]}
SLOWEST = timing_on_path(RHO, [NEAR, FAR])


class Chain:
    """Brokers 1 - 0 - 2, near and far; a client at each end wants everything."""

    def __init__(self, seed: int, known: dict[tuple[NodeId, NodeId], Delays]) -> None:
        self.simulator = Simulator(seed)
        for end in (0, 2):
            self.simulator.link_delays[end, 2 - end] = parse_delay("uniform:1:1200")
        for id, near in TREE.items():
            delays = {other: it for link, it in known.items() if id in link for other in link}
            rng = Random(id)
            self.simulator.add(TreeBroker(id, near, None, SLOWEST, rng, delays=delays))
        self.lapsed = 0
        self.book = keep_book(self.simulator, within=30)
        for id in (1, 2):
            self.simulator.command(id, Subscribe())
        self.simulator.run(40 * INTERVAL)

    def broker(self, id: NodeId) -> TreeBroker:
        node = self.simulator.nodes[id]
        assert isinstance(node, TreeBroker)
        return node

    def missed(self, intervals: int) -> int:
        """How many deliveries do not arrive; `lapsed` counts the times without an entry."""
        self.book.illegitimate(self.simulator.tick / INTERVAL)
        for number in range(2 * intervals):
            self.simulator.run(INTERVAL // 2)
            self.simulator.command(number % 3, Publish("t", b"%d" % number, {"a": number}))
            self.lapsed += not self.broker(0).table.of(2)
        self.simulator.run(30 * INTERVAL)
        assert self.book.wrong() == []
        return len(self.book.missed(self.simulator.tick / INTERVAL))

    def expiry(self) -> dict[NodeId, int]:
        """Both ends fall silent: after how many intervals has broker 0 forgotten each?"""
        self.simulator.detects_failed_sends = False
        for id in (1, 2):
            self.simulator.remove(id)
        self.simulator.run(13 * INTERVAL)  # what was on its way arrives
        found: dict[NodeId, int] = {}
        for interval in range(13, 13 + 2 * SLOWEST.pi + 2):
            for id in (1, 2):
                if not self.broker(0).table.of(id):
                    found.setdefault(id, interval)
            self.simulator.run_interval()
        return found


def test_a_subscription_over_a_fast_link_expires_earlier(seeds: Callable[[int, int], int]) -> None:
    near, far = timing_on_path(RHO, [NEAR]).pi, timing_on_path(RHO, [FAR]).pi
    for seed in range(seeds(3, 100)):
        chain = Chain(seed, LINKS)
        assert chain.broker(0).table.pis[1] == near < far == chain.broker(0).table.pis[2]
        expired = chain.expiry()
        assert expired[1] <= max(13, 2 * near + 2) < expired[2] <= 13 + 2 * far + 2
        same = Chain(seed, {}).expiry()
        assert same[1] > 2 * near + 2  # one pi for all is that of the slowest way


def test_nothing_is_missed_over_links_that_differ(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(2, 100)):
        chain = Chain(seed, LINKS)
        assert (chain.missed(60), chain.lapsed) == (0, 0)


def test_a_lease_too_short_for_its_link_lapses_without_a_fault() -> None:
    """The far link is taken for one without jitter; only replay saves what is published then."""
    chain = Chain(1, {**LINKS, (0, 2): (0.0, 0.0)})
    chain.missed(600)
    assert chain.lapsed > 0


def test_clocks_of_links_heal_from_any_value() -> None:
    absurd = 0
    for seed in range(5):
        chain = Chain(seed, LINKS)
        scramble(chain.broker(0), [0, 1, 2], Random(seed))
        clocks = chain.broker(0).table.clocks.values()
        absurd += sum(not 0 <= it < SLOWEST.pi for it in clocks)
        chain.simulator.run(2 * SLOWEST.delta * INTERVAL)
        assert chain.missed(20) == 0
    assert absurd > 0


@pytest.mark.parametrize("changing", [True, False])
def test_hop_by_hop_no_lease_is_longer_than_that_of_the_whole_way(changing: bool) -> None:
    """The paper refreshes end to end, and so a subscription waits for the jitter of all links."""
    whole = timing_of_each(RHO, LINKS, [0, 1, 2], changing=changing)
    for (a, b), delays in LINKS.items():
        hop = timing_on_path(RHO, [delays], changing=changing).pi
        assert hop <= min(whole[a].pi, whole[b].pi) <= timing(RHO, FAR, 2, changing=changing).pi
