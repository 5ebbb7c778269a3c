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
