"""Errata of paper 4 (leased routing): each literal reading fails, the amended broker holds."""

import pytest

from planaria.core.errors import UsageError
from planaria.filters.filters import filter_id
from planaria.literal.routing import DELAY, Chain, Entry, Printed
from planaria.protocols.routing.leases import Lease, LeaseTable
from planaria.protocols.routing.timing import timing, timing_for, timing_of_each
from planaria.simulator.delays import INTERVAL
from planaria.studies.leases.cases import BOTH, FIRE, PI, RHO, WATER, F, G, Pair


def two_clients(parent_phase: int, pi: int = PI) -> Chain:
    chain = Chain([Printed(), Printed()], pi, [pi, parent_phase])
    chain.client(1, F, 100, RHO)
    chain.client(2, F, 59_000, RHO)
    return chain


def test_erratum_1_flags_lose_entries_without_any_fault() -> None:
    assert two_clients(30_000).missing(1, "f", 200_000) == [(90_200, 119_025)]
    assert two_clients(PI).missing(1, "f", 200_000) == []  # only while all clocks are in phase
    for phases in [(0, 0), (0, 6), (3, 9), (9, 1)]:
        pair = Pair("identity", phases)
        pair.subscribe(0, FIRE)
        pair.simulator.run(2 * INTERVAL)
        pair.subscribe(1, FIRE)
        assert pair.without_fire(60) == 0


@pytest.mark.parametrize("factor", [1.5, 2.3, 3.1])
def test_erratum_1_a_longer_lease_only_makes_unlucky_phases_rarer(factor: float) -> None:
    pi = round(factor * RHO)
    unlucky = [
        phase
        for phase in range(0, pi, 500)
        if two_clients(phase, pi).missing(1, "f", 40 * pi) != []
    ]
    assert unlucky


def test_erratum_2_one_corrupted_clock_never_heals() -> None:
    outages = two_clients(30_000).missing(1, "f", 2_000 * PI)
    assert len(outages) == 7
    assert outages[-1][1] > 1_800 * PI
    pair = Pair("identity")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, FIRE)
    pair.simulator.run(5 * INTERVAL)
    pair.broker(0).table.clock = 5  # as an overrun at another time would leave it
    assert pair.without_fire(100) == 0


def test_erratum_3_unsubscriptions_must_count_all_entries() -> None:
    """Both flags are 0 when one of two identical clients leaves."""
    chain = Chain([Printed(), Printed()], PI, [PI, PI])
    chain.client(1, F, 100, RHO, leaves=PI + 50)
    chain.client(2, F, 50_000, RHO)
    assert chain.missing(1, "f", 4 * PI) == [(PI + 50 + DELAY, 110_000 + DELAY)]
    pair = Pair("identity")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, FIRE)
    pair.simulator.run(5 * INTERVAL)
    for leases in pair.broker(1).table.entries.values():
        for lease in leases.values():
            lease.flag = 0
    pair.unsubscribe(1, FIRE)
    assert pair.without_fire(30) == 0


def test_erratum_4_a_bogus_cover_hides_a_filter_until_its_next_refresh() -> None:
    def restored(chain: Chain) -> int:
        outages = chain.missing(1, "f", 6 * PI)
        return outages[-1][1] if outages else 0

    chain = Chain([Printed(covering=True), Printed(covering=True)], PI, [PI, PI])
    chain.client(1, F, 60_100, RHO)
    chain.brokers[0].table[9] = Entry(F | G, ("client", 9), 1)  # a fault's, never renewed
    chain.brokers[1].table[1] = Entry(F, ("broker", 0), 1)  # what was right before
    assert restored(chain) > 2 * PI + DELAY  # the bound for these two brokers

    pair = Pair("covering")
    pair.subscribe(0, FIRE)
    pair.simulator.run(5 * INTERVAL)
    pair.broker(1).table.entries[-10] = {filter_id(BOTH): Lease(BOTH)}
    pair.broker(1).announcer.changed([0])
    assert pair.without_fire(3 * pair.timing.pi) == 0  # not even a gap: cancel and news are one
    assert not pair.wants("water")


def test_erratum_5_a_merge_ends_with_its_constituents() -> None:
    """As printed 'the refreshing of merged filters must be ensured', so any constituent does it."""
    broker = Printed()
    broker.table[5] = Entry(F | G, ("broker", 0))
    for _ in range(50):
        broker.overrun()
        broker.subscribe(5, F | G, ("broker", 0))  # F alone is alive and renews the merge
    assert broker.wants("g")

    pair = Pair("merging")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, WATER)
    pair.simulator.run(8 * INTERVAL)
    assert [it.filter for it in pair.broker(0).table.of(1).values()] == [BOTH]
    pair.unsubscribe(1, WATER)
    assert pair.without_fire(4) == 0
    assert not pair.wants("water")


def test_erratum_6_an_unsubscription_by_id_leaves_another_id_behind() -> None:
    """Period k forwards the id of one client, period k + 1 that of the other."""
    chain = Chain([Printed(), Printed()], PI, [PI, PI])
    chain.client(1, F, 100, RHO, leaves=70_000)
    chain.client(2, F, 60_250, RHO, leaves=71_000)
    chain.missing(1, "f", 71_000 + 2 * DELAY)
    assert chain.brokers[0].table == {}
    assert chain.brokers[1].wants("f")  # nobody wants it, and it lives for up to 2 pi more

    pair = Pair("identity")
    pair.subscribe(0, FIRE)
    pair.subscribe(1, FIRE)
    pair.simulator.run(10 * INTERVAL)
    pair.unsubscribe(0, FIRE)
    pair.unsubscribe(1, FIRE)
    pair.simulator.run(2 * INTERVAL)
    assert not pair.wants("fire")


@pytest.mark.parametrize(("reinserts", "healed"), [(True, True), (False, False)])
def test_erratum_7_remove_then_insert_is_what_heals_a_corrupted_filter(
    reinserts: bool, healed: bool
) -> None:
    broker = Printed(reinserts=reinserts)
    broker.table[1] = Entry(G, ("client", 1))  # the id is right, the filter is not
    for _ in range(50):
        broker.overrun()
        broker.subscribe(1, F, ("client", 1))
    assert broker.wants("f") == healed
    assert broker.wants("g") != healed
    table = LeaseTable(4)
    table.entries[-1] = {1: Lease(WATER)}
    table.insert(-1, 1, FIRE)
    assert table.destinations({"kind": "water"}) == []
    assert table.destinations({"kind": "fire"}) == [-1]


def test_erratum_8_the_printed_times_do_not_follow_from_the_printed_rules() -> None:
    """d = 10, delays 5 to 25 ms: printed is delta = 30 s, pi = 14.9 s, rho = 14.7 s."""
    least, most, d = 5, 25, 10
    assert 14_700 + d * (most - least) == 14_900  # and pi must be greater
    assert 2 * 14_900 + d * (most - least) == 30_000  # the formula, with jitter for delay
    assert 2 * 14_900 + d * most > 30_000  # the text: 'a delay of d*dmax must be assumed'
    ours = timing_for(30_000, (least, most), d, changing=False)
    assert ours.delta == 2 * ours.pi + d * most <= 30_000
    assert ours.pi > ours.rho + d * (most - least)
    assert timing(ours.rho + 1, (least, most), d, changing=False).delta > 30_000
    assert timing(60_000, (25, 25), 8, changing=False).pi == 60_001  # constant delay: no 60.2


def test_erratum_14_a_clock_counts_whole_steps() -> None:
    """pi is a number of timeouts; a clock out of range overruns at once, never pi later."""
    for clock in (-(1 << 70), -1, 4, 1 << 70):
        table = LeaseTable(4)
        table.clock = clock
        assert table.tick() == []
        assert [table.tick() for _ in range(4)] == [None, None, None, []]


def test_over_a_changing_tree_a_lease_survives_one_lost_refresh() -> None:
    found = timing(10, (0, 1.5), 8)
    assert found.pi > 2 * 10 + 8 * 1.5
    assert any("lost with a link" in line for line in found.why)
    assert found.delta == 2 * found.pi + 12


def test_lease_times_follow_the_links_of_each_subscription() -> None:
    """3.5: links 0-1 fast, 1-2 slow; publishers at 0 only."""
    links = {(0, 1): (1.0, 2.0), (1, 2): (5.0, 50.0)}
    found = timing_of_each(10, links, [0], changing=False)
    assert [found[id].pi for id in (0, 1, 2)] == [11, 12, 57]
    assert [found[id].delta for id in (0, 1, 2)] == [22, 26, 166]


@pytest.mark.parametrize("arguments", [(0, (0, 1), 1), (1, (2, 1), 1), (1, (-1, 1), 1)])
def test_impossible_times_are_misuse(arguments: tuple[int, tuple[int, int], int]) -> None:
    with pytest.raises(UsageError, match="refresh period"):
        timing(*arguments)
    with pytest.raises(UsageError, match="too slow"):
        timing_for(10, (0, 100), 3)
