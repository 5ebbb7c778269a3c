"""Random initial states: as printed almost none stabilises, with all amendments all of them do."""

from collections.abc import Callable

import pytest

from planaria.literal.skipring.amendments import ALL, E22
from planaria.studies.skipring.literal import Run


@pytest.mark.parametrize(
    ("amendments", "healing_max"),
    [(frozenset[str](), 0), (frozenset({"E18"}), 6)],
    ids=["old-neighbours-linearized", "old-neighbours-dropped"],
)
def test_most_random_states_do_not_stabilise_as_printed(
    amendments: frozenset[str], healing_max: int, seeds: Callable[[int, int], int]
) -> None:
    """States of n = 1..12; what becomes of an old neighbour is not said, so both readings.

    Linearizing it, 0 of 96 heal, most because messages multiply without bound: a node that is its
    own neighbour (E2) reports itself with every configuration, and each report brings another
    one. Dropping it, 3 of 96. Runs end after 60 intervals or when messages multiply.
    """
    found = [Run.random(amendments, seed).heals(60) for seed in range(seeds(36, 96))]
    assert len([intervals for intervals in found if intervals is not None]) <= healing_max


def test_all_random_states_stabilise_with_all_amendments(seeds: Callable[[int, int], int]) -> None:
    """The same states and more, a third with crashes and a third with leavers among them."""
    failed = [seed for seed in range(seeds(240, 20_000)) if Run.random(ALL, seed).heals(60) is None]
    assert failed == []


@pytest.mark.parametrize("scheduler", ["lifo", "newest", "starve", "priority"])
def test_adversarial_schedules_are_survived_once_e22_is_amended_too(scheduler: str) -> None:
    """With E1-E21 alone they are not: `test_e22_one_false_label_lives_for_ever_...`."""
    amendments = ALL | {E22}
    found = [Run.random(amendments, seed, scheduler).heals(100) for seed in range(60)]
    assert None not in found


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17])
def test_legitimate_states_stay_legitimate_with_all_amendments(n: int) -> None:
    assert Run.legitimate(ALL, n, seed=n).illegitimate_ends(40) == 0
