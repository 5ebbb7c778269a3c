"""Random streams, one per concern, each derived from a seed and a name.

Adding a draw to one stream shifts no other, so a new kind of fault leaves old runs as they were.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from random import Random
from typing import Any

from planaria.core.ids import stable_hash


def derive(seed: int, *names: int | str) -> int:
    """The seed of the stream called `names` in the run `seed`."""
    return stable_hash(seed, *names, bits=64)


def stream(seed: int, *names: int | str) -> Random:
    """A random stream of its own for `names` in the run `seed`."""
    return Random(derive(seed, *names))


def combination(number: int, *axes: Sequence[Any]) -> tuple[Any, ...]:
    """One value of each axis: the combination whose turn it is.

    As many numbers in a row as there are combinations give each of them once, in an order drawn
    once: no two axes go round together, and few numbers already see all values of each.
    """
    place = _turns(prod(len(axis) for axis in axes))
    rest, chosen = place[number % len(place)], []
    for axis in axes:
        rest, digit = divmod(rest, len(axis))
        chosen.append(axis[digit])
    return (*chosen,)


@lru_cache(maxsize=32)  # campaigns ask for one after the other, each a hundred thousand times
def _turns(size: int) -> Sequence[int]:
    turns = list(range(size))
    stream(0, "combination").shuffle(turns)
    return turns


def any_integer(rng: Random, *near: int) -> int:
    """Whatever a corrupted variable may hold: `near` the values that matter, negative, or huge."""
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(near or (0,)) + rng.randrange(-1, 2)
    if kind < 0.8:
        return rng.choice((-1, 1)) * rng.randrange(100)
    return rng.choice((-1, 1)) * (1 << rng.choice((31, 62, 63, 64, 100))) + rng.randrange(-1, 2)
