"""Random numbers by the million for the vectorised experiment, from the stream handed in."""

from math import prod
from random import Random

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_SCALE = 2.0**-53


def uniform(rng: Random, *shape: int) -> Floats:
    """Independent numbers, uniform in [0, 1)."""
    raw = np.frombuffer(rng.randbytes(8 * prod(shape)), dtype="<u8")
    return ((raw >> np.uint64(11)).astype(np.float64) * _SCALE).reshape(shape)


def below(rng: Random, limit: int, *shape: int) -> Ints:
    """Independent whole numbers, uniform in [0, limit)."""
    return (uniform(rng, *shape) * limit).astype(np.int64)


def distinct(rng: Random, rows: int, count: int, limit: int) -> Ints:
    """For each of `rows` rows, `count` different numbers below `limit` (Floyd's algorithm)."""
    chosen = np.empty((count, rows), dtype=np.int64)  # so that a column is in one piece
    for column, top in enumerate(range(limit - count, limit)):
        drawn = below(rng, top + 1, rows)
        taken = (chosen[:column] == drawn).any(axis=0)
        chosen[column] = np.where(taken, top, drawn)
    return chosen.T


def others(rng: Random, rows: int, size: int, count: int) -> Ints:
    """For each member of `rows` groups of `size`, `count` different other members."""
    drawn = distinct(rng, rows * size, count, size - 1).reshape(rows, size, count)
    me = np.arange(size)[None, :, None]
    return drawn + (drawn >= me)
