"""A small world of notifications for trials: few values, many overlapping filters.

Small on purpose: a judge can try every notification there is.
"""

from itertools import product
from random import Random
from typing import Any

from planaria.filters.filters import Filter, conjunction
from planaria.filters.ranges import ALL_NUMBERS
from planaria.filters.values import ANYTHING, Values, either, point

TOPIC = "elements"  # on which all of it is published
KINDS = ("air", "earth", "fire", "water")
LEVELS = range(10)

UNIVERSE: tuple[dict[str, Any], ...] = tuple(
    {"kind": kind, "level": level, "urgent": urgent}
    for kind, level, urgent in product(KINDS, LEVELS, (False, True))
)


def random_attributes(rng: Random) -> dict[str, Any]:
    """One of the notifications that can be published here."""
    return dict(rng.choice(UNIVERSE))


def random_filter(rng: Random) -> Filter:
    """A conjunction of up to three constraints of all the forms that a condition can have."""
    constraints: list[tuple[str, Values]] = []
    if rng.random() < 0.6:
        wanted = point(rng.choice(KINDS))
        if rng.random() < 0.3:
            wanted = either(wanted, point(rng.choice(KINDS)))
        constraints.append(("kind", wanted))
    if rng.random() < 0.7 or not constraints:
        low = rng.choice([*LEVELS, None])
        high = rng.choice([*LEVELS, None])
        (first, end) = ALL_NUMBERS[0]
        if low is not None and high is not None and low > high:
            low, high = high, low
        span = (first if low is None else (low, 0), end if high is None else (high, 1))
        constraints.append(("level", Values(numbers=(span,))))
    if rng.random() < 0.2:
        constraints.append(("urgent", rng.choice([point(True), ANYTHING])))
    found = conjunction(constraints)
    assert found is not None  # constraints on different attributes never exclude each other
    return found
