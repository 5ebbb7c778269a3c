"""Random streams, one per concern, each derived from a seed and a name.

Adding a draw to one stream shifts no other, so a new kind of fault leaves old runs as they were.
"""

from random import Random

from planaria.core.ids import stable_hash


def derive(seed: int, *names: int | str) -> int:
    """The seed of the stream called `names` in the run `seed`."""
    return stable_hash(seed, *names, bits=64)


def stream(seed: int, *names: int | str) -> Random:
    """A random stream of its own for `names` in the run `seed`."""
    return Random(derive(seed, *names))


def any_integer(rng: Random, *near: int) -> int:
    """Whatever a corrupted variable may hold: `near` the values that matter, negative, or huge."""
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(near or (0,)) + rng.randrange(-1, 2)
    if kind < 0.8:
        return rng.choice((-1, 1)) * rng.randrange(100)
    return rng.choice((-1, 1)) * (1 << rng.choice((31, 62, 63, 64, 100))) + rng.randrange(-1, 2)
