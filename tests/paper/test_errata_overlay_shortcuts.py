"""Errata E4, E5, E12, E17: shortcuts (section 3.2.2, Algorithm 4) as printed."""

from math import ceil, log2
from typing import Any

import pytest

from planaria.literal.skipring.amendments import ALL
from planaria.studies.skipring.literal import Run, ref, without


def _joining_who_know_n(amendments: frozenset[str], n: int) -> Run:
    run = Run.joining(amendments, n)
    for node in run.subscribers:
        node.deepest = ceil(log2(n))
    return run


def _erased(amendments: frozenset[str], n: int) -> Run:
    run = Run.legitimate(amendments, n)
    for node in run.subscribers:
        node.shortcuts = dict.fromkeys(node.shortcuts)
    return run


@pytest.mark.parametrize("n", [5, 9, 10, 12, 17])
def test_e4_lemma_12_fails_even_if_every_node_is_told_n(n: int) -> None:
    """Some level-k node has one neighbour in its shortcuts and the other on the ring."""
    assert _joining_who_know_n(without("E4"), n).heals(60) is None
    assert Run.joining(ALL, n).heals(20) is not None


def test_e4_the_edge_between_0_and_1_is_never_established_for_n_5() -> None:
    run = _joining_who_know_n(without("E4"), 5)
    assert run.heals(60) is None
    found = run.overlay.violations(run.simulator.states(), run.simulator.channel())
    ends = [run.holder("0"), run.holder("1")]
    assert {violation.node for violation in found} == {node.id for node in ends}
    assert [node.shortcuts[other] for node, other in zip(ends, "10", strict=True)] == [None, None]


@pytest.mark.parametrize("n", [9, 11, 13, 17])
def test_e4_taking_the_ring_for_want_of_shortcuts_is_not_enough_either(n: int) -> None:
    """The kindest rule without knowledge of n; it fails on join and after erasing references."""
    assert _erased(without("E4"), n).heals(60) is None
    assert Run.joining(without("E4"), n).heals(60) is None
    assert _erased(ALL, n).heals(20) is not None


def _load(amendments: frozenset[str], n: int, intervals: int = 30) -> float:
    """Messages per node and interval in a legitimate state, once old messages have passed."""
    run = Run.legitimate(amendments, n)
    run.simulator.run(100 * intervals)
    before = run.simulator.sent
    run.simulator.run(1000)
    assert run.is_legitimate()
    return (run.simulator.sent - before) / (10 * n)


def test_e5_linearizing_right_references_costs_two_log_n_messages_per_node() -> None:
    """Finding: closure holds, the load does not stay constant (nor does Theorem 7's)."""
    printed = {n: _load(without("E5", "E17"), n) for n in (16, 32, 64)}
    assert all(load > 2 * log2(n) for n, load in printed.items())
    assert printed[16] + 3 < printed[32] + 1.5 < printed[64]
    assert all(_load(ALL, n) < 4.2 for n in (16, 32, 64))


def test_e12_a_node_labelled_with_the_empty_string_never_returns_from_its_timeout() -> None:
    """'0' is longer than '', and the shortcut behind '0' as seen from '' is '0' again."""
    state: dict[int, dict[str, Any]] = {1: {"label": "0"}, 2: {"label": "", "left": ref("0", 1)}}
    for amendments, hung in ((without("E12"), True), (ALL, False)):
        run = Run.given(amendments, {"0": 1, "1": 2}, state)
        victim = run.subscribers[1]
        victim.on_timeout()
        assert victim.hung is hung
        assert (run.heals(60) is None) is hung


@pytest.mark.parametrize("seed", [330, 442])
def test_e17_a_contested_label_goes_round_for_ever(seed: int) -> None:
    """Theorem 8's 'no infinite chain of corrupted messages' fails; no crashes, no leavers.

    Evidence: of 600 random states (seeds 0..599, n = 1..12) 21 do not heal in 100 intervals, these
    two not in 600; amended, all of the 600 heal, in at most 12.
    """
    assert Run.random(without("E17"), seed).heals(250) is None
    healed = Run.random(ALL, seed).heals(20)
    assert healed is not None
