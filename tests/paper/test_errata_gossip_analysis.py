"""Errata 2.5, 2.7-2.14 of the second paper: the formulas as printed and as corrected."""

from math import exp, inf, log
from random import Random

import pytest

from planaria.lab.gossip import analysis
from planaria.lab.gossip.baselines import Work, compare, multicast_interested
from planaria.literal import gossip_analysis as printed
from planaria.protocols.gossip.parameters import Parameters

DIALS = Parameters()
SIZES = (10, 100, 1000)


def test_errata_5_and_7_t_groups_have_t_minus_1_links() -> None:
    """With one group there is no link, so nothing is lost against multicast or broadcast."""
    for pit in (0.9999, 0.99):
        assert analysis.c_like_multicast(2.0, pit, 1) == 2.0
        assert analysis.c_like_broadcast(2.0, pit, 1) == 2.0
        assert printed.c_like_multicast(2.0, pit) > 2.0
        assert printed.c_like_broadcast(2.0, pit, 1) > 2.0


@pytest.mark.parametrize("t", [2, 3, 5])
def test_equations_16_23_28_corrected_solve_what_they_say(t: int) -> None:
    """The reliabilities that the equations set equal are equal; printed, they are not."""
    c, pit, clusters = 2.0, 0.999, 30
    ours = [
        analysis.c_like_multicast(c, pit, t),
        analysis.c_like_broadcast(c, pit, t),
        analysis.c_like_hierarchical(c, pit, t, clusters),
    ]
    theirs = [
        exp(-t * exp(-c)),
        exp(-exp(-c)),
        exp(-(clusters + 1) * exp(-c)),
    ]
    literal = [
        printed.c_like_multicast(c, pit),
        printed.c_like_broadcast(c, pit, t),
        printed.c_like_hierarchical(c, pit, t, clusters),
    ]
    for good, bad, wanted in zip(ours, literal, theirs, strict=True):
        assert exp(-t * exp(-good)) * pit ** (t - 1) == pytest.approx(wanted, rel=1e-9)
        assert exp(-t * exp(-bad)) * pit ** (t - 1) > wanted * (1 + 1e-9)


def test_equations_19_25_30_corrected_are_where_the_tables_are_equal() -> None:
    c, pit, t, size, n, clusters, m = 2.0, 0.999, 3, 100.0, 5000.0, 30, 40.0
    z = analysis.z_below_multicast(size, c, pit, t)
    assert log(size) + analysis.c_like_multicast(c, pit, t) + z == pytest.approx(
        t * (log(size) + c)
    )
    z = analysis.z_below_broadcast(n, size, c, pit, t)
    assert log(size) + analysis.c_like_broadcast(c, pit, t) + z == pytest.approx(log(n) + c)
    z = analysis.z_below_hierarchical(size, m, c, pit, t, clusters)
    ours = log(size) + analysis.c_like_hierarchical(c, pit, t, clusters) + z
    assert ours == pytest.approx(log(m) + c + log(clusters) + c)


def test_erratum_8_the_link_sum_counts_the_root_and_not_the_bottom() -> None:
    busy = Parameters(g=50)
    alike = [DIALS, DIALS, DIALS]
    at_root, at_bottom = [busy, DIALS, DIALS], [DIALS, DIALS, busy]
    base = printed.messages(SIZES, alike, 1.0)
    assert printed.messages(SIZES, at_root, 1.0) > base  # the root sends to nobody above
    assert printed.messages(SIZES, at_bottom, 1.0) == base  # and the bottom's relays are free
    within = sum(size * DIALS.fanout(size) for size in SIZES)
    assert analysis.messages(SIZES, DIALS) == within + 5 + 5 + 1


def test_erratum_9_messages_called_sent_are_those_received() -> None:
    assert printed.super_messages(1000, DIALS, 0.85) == pytest.approx(4.25)
    sent = analysis.messages((100, 1000), DIALS) - sum(s * DIALS.fanout(s) for s in (100, 1000))
    assert sent == pytest.approx(5 + 1)  # g, and the publisher's


def test_erratum_10_the_bound_needs_ln_s_of_at_least_1() -> None:
    middle, bound = printed.messages_bound(3, 2, 5.0, 3.0)
    assert middle > bound
    middle, bound = printed.messages_bound(3, 3, 5.0, 3.0)
    assert middle <= bound


def test_erratum_11_memory_is_not_always_smaller() -> None:
    t2, t1 = printed.memory(1000, DIALS), printed.memory(100, DIALS)
    assert (round(t2, 2), round(t1, 2)) == (14.91, 12.61)
    assert round(printed.memory_broadcast(1110, 5.0), 2) == 12.01
    assert t2 > t1 > printed.memory_broadcast(1110, 5.0)
    assert t2 > printed.memory_multicast([1000], 5.0)  # at the bottom multicast has one table
    for t in range(1, 8):  # the chain is the whole system: never a gain over broadcast
        assert analysis.z_below_broadcast(t * 100.0, 100.0, 2.0, 0.999, t) <= 1e-12


def test_erratum_12_the_table_is_b_plus_1_times_ln_s() -> None:
    assert analysis.memory(1000, DIALS) == 31
    assert round(printed.memory(1000, DIALS)) == 15


def test_erratum_13_upper_limits_for_c_are_strict() -> None:
    pit = 0.99
    limit = -log(-log(pit))
    with pytest.raises(ValueError, match="math domain"):
        printed.c_like_multicast(limit + 1e-9, pit)
    assert printed.c_like_multicast(limit - 1e-9, pit) > 20  # diverges on the way there
    assert analysis.c_like_multicast(10.0, pit, 3) == inf


def test_erratum_13_equation_30_takes_clusters_to_be_as_large_as_groups() -> None:
    c, pit, t, clusters = 2.0, 0.999, 3, 30
    alike = analysis.z_below_hierarchical(100, 100, c, pit, t, clusters)
    smaller = analysis.z_below_hierarchical(100, 10, c, pit, t, clusters)
    assert smaller < alike - 2
    assert printed.z_below_hierarchical(c, pit, t, clusters) == pytest.approx(alike, abs=0.01)


def test_erratum_14_memory_and_messages_of_multicast_belong_to_different_patterns() -> None:
    """With a table per subtopic an event uses one group of 1110 and has one factor."""
    work = Work(runs=150)
    one = multicast_interested(work, Random(1))
    assert one.messages.mean > 1.08 * printed.messages_multicast(SIZES, 5.0)
    assert one.p_all.mean > 0.95
    assert one.memory > printed.memory_multicast([1000], 5.0) * 2


@pytest.mark.parametrize("level", [-1, 1, 0])
def test_baselines_on_the_same_work(level: int) -> None:
    found = compare(Work(level=level, runs=60), Random(2))
    ours, broadcast = found["daMulticast"], found["broadcast"]
    hierarchical = found["hierarchical broadcast"]
    for name, each in found.items():
        assert each.of_interested.mean > 0.99, name
        wasteful = each in (broadcast, hierarchical) and level != -1
        assert (each.parasites.mean > 1000) == wasteful, name
    if level != -1:  # in the paper's own setting everybody wants the event
        assert ours.messages.mean < broadcast.messages.mean / 10
    assert ours.messages.mean < hierarchical.messages.mean
