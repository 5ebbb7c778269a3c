"""Errata E13, E14, E18, E19, E21: who asks the supervisor, when, and about whom."""

from fractions import Fraction

import pytest

from planaria.literal.skipring.amendments import ALL, E13_TEXT, E14_TEXT
from planaria.studies.skipring.literal import LONG, Run, expected_requests, ref, without


def test_e13_every_reading_of_action_iii_heals_and_reporting_all_is_quickest() -> None:
    """Finding: no failure under any reading (600 random states each, 0 of 600).

    Means over those states: `<` 5.08 intervals, `<=` 5.05, every displaced neighbour 4.72.
    """
    means = []
    for amendments in (without("E13"), without("E13") | {E13_TEXT}, ALL):
        found = [Run.random(amendments, seed).heals(60) for seed in range(96)]
        assert None not in found
        means.append(sum(intervals or 0 for intervals in found) / len(found))
    assert means[2] < means[0]
    assert means[2] < means[1]


def _closed_form(n: int, *, halved: bool, both: bool) -> Fraction:
    """The same from the counts of labels by length alone, as exact fractions."""
    total = Fraction(1, 2)
    for index in range(0 if both else 1, n):
        k = max(1, index.bit_length())
        total += Fraction(1, 2 ** (k + halved) * k * k)
    return total


@pytest.mark.parametrize(
    ("amendments", "halved", "both"),
    [
        (without("E14"), False, False),
        (without("E14") | {E14_TEXT}, False, True),
        (ALL, True, False),
    ],
    ids=["printed", "prose", "amended"],
)
def test_e14_the_rule_and_the_closed_form_agree(
    amendments: frozenset[str], halved: bool, both: bool
) -> None:
    for n, expected in enumerate(expected_requests(amendments, 1024), 1):
        if n & (n - 1) == 0 or n < 40:
            assert expected == pytest.approx(float(_closed_form(n, halved=halved, both=both)))


def test_e14_theorem_5_fails_for_every_n_from_2_on() -> None:
    """There are two labels of length 1, not one, and label 0 runs action (iv) in any state."""
    printed = expected_requests(without("E14"), 1024)
    assert printed[0] == 0.5
    assert printed[1] == 1.0
    assert printed[3] == 1.125
    assert min(printed[1:]) >= 1
    assert printed[-1] == pytest.approx(1.2749, abs=1e-4)
    prose = expected_requests(without("E14") | {E14_TEXT}, 1024)
    assert min(prose) >= 1
    assert prose[-1] == pytest.approx(1.7749, abs=1e-4)


def test_e14_half_the_probability_keeps_the_load_below_one_for_every_n() -> None:
    amended = expected_requests(ALL, 1024)
    assert amended[1] == 0.75
    assert amended[-1] == pytest.approx(0.8874, abs=1e-4)
    # Labels of length k >= 2 add 1/(4 k^2) in all; the whole series is pi^2/24 - 1/4 + 3/4.
    assert max(amended) < 0.9113


def test_e14_measured_requests_follow_the_rule() -> None:
    """SR(16), 500 intervals; the standard error is about 0.04."""
    for amendments in (without("E14"), ALL):
        run = Run.legitimate(amendments, 16, seed=3)
        run.simulator.run(500 * 100)
        assert run.is_legitimate()
        measured = run.overlay.metrics(run.simulator.states())["requests_per_interval"]
        expected = expected_requests(amendments, 16)[-1]
        assert measured == pytest.approx(expected, abs=0.12)
        assert (measured > 1) is (amendments != ALL)


def _with_one_crash(amendments: frozenset[str], seed: int) -> int | None:
    run = Run.legitimate(amendments, 8, seed, detection=3.0)
    run.simulator.remove(1 + seed % 8)
    return run.heals(100)


def test_e18_an_old_neighbour_that_is_linearized_again_keeps_the_dead_alive() -> None:
    """The crashed node is closer than the new neighbour, so it is adopted again at once."""
    seeds = range(8)
    assert [_with_one_crash(without("E18"), seed) for seed in seeds] == [None] * 8
    assert None not in [_with_one_crash(ALL, seed) for seed in seeds]


def test_e19_a_sorted_ring_of_long_labels_without_label_0_is_never_recorded() -> None:
    """Three live nodes, database empty, nobody called '0'."""
    a, b, c = (ref(bits + LONG[2:], id) for id, bits in enumerate(("00", "01", "10"), 1))
    state = {
        1: {"label": a.label, "right": b, "ring": c},
        2: {"label": b.label, "left": a, "right": c},
        3: {"label": c.label, "left": b, "ring": a},
    }
    literal = Run.given(without("E19"), {}, state)
    assert literal.heals(200) is None
    assert literal.supervisor.requests == 0
    assert Run.given(ALL, {}, state).heals(20) is not None


def test_e21_a_live_node_whose_only_neighbour_has_crashed_is_never_found() -> None:
    """Not minimal in its own view, and nobody knows it: no failure detector is there to notice."""
    state = {1: {"label": LONG, "left": ref("0" + LONG[1:-2] + "01", 2)}}
    literal = Run.given(without("E21"), {}, state)
    assert literal.heals(200) is None
    assert literal.supervisor.requests == 0
    assert Run.given(ALL, {}, state).heals(20) is not None


@pytest.mark.parametrize("seed", [19, 268, 311])
def test_e21_shows_in_random_states_with_crashes(seed: int) -> None:
    """Evidence: 5 of 600 random states (seeds 0..599) do not heal in 100 intervals without it."""
    assert Run.random(without("E21"), seed).heals(100) is None
    assert Run.random(ALL, seed).heals(20) is not None


def test_e21_costs_nothing_in_a_legitimate_state() -> None:
    sent = []
    for amendments in (without("E21"), ALL):
        run = Run.legitimate(amendments, 12, seed=5)
        run.simulator.run(60 * 100)
        sent.append(run.simulator.sent)
    assert sent[0] == sent[1]
