"""How many are we? The members with the smallest hashed ids, with ages, estimate a group's size.

Each member puts itself in with age 0; ages grow by one per interval and the smaller wins. What
nobody renews dies out, so any content heals. Below `SKETCH_SIZE` members the count is exact; above
it the relative error is about 1 / sqrt(SKETCH_SIZE - 2).
"""

from collections.abc import Iterable

from planaria.core.ids import NodeId

SKETCH_SIZE = 32  # 18 % error: 0.2 in ln S, and g of 5 relays off by one
SKETCH_AGE_MAX = 64  # news crosses a group in O(log S) exchanges, and is older at each

_SPACE = 1 << 64
_MASK = _SPACE - 1


def rank(id: NodeId) -> int:
    """A hash of `id`, uniform over 64 bits, the same everywhere (splitmix64)."""
    x = (id + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def merge(sketch: dict[NodeId, int], news: Iterable[tuple[NodeId, int]]) -> None:
    """Take `news` into `sketch`: the smallest ranks stay, each with its smallest age.

    News of others is one older than they say: otherwise it would not age on its way.
    """
    grown = False
    for id, told in news:
        age = told + 1
        known = sketch.get(id)
        if known is None:
            if 0 <= age <= SKETCH_AGE_MAX:
                sketch[id] = age
                grown = True
        elif 0 <= age < known:
            sketch[id] = age
    if grown and len(sketch) > SKETCH_SIZE:
        for id in sorted(sketch, key=rank)[SKETCH_SIZE:]:
            del sketch[id]


def grow_old(sketch: dict[NodeId, int], me: NodeId) -> dict[NodeId, int]:
    """The sketch one interval later, with `me` renewed."""
    aged = {id: age + 1 for id, age in sketch.items() if 0 <= age < SKETCH_AGE_MAX}
    merge(aged, [(me, -1)])
    return aged


def estimate(sketch: dict[NodeId, int]) -> int:
    """The size of the group that `sketch` samples; at least 1, for oneself."""
    if len(sketch) < SKETCH_SIZE:
        return max(1, len(sketch))
    largest = max(map(rank, sketch))
    return max(SKETCH_SIZE, round((SKETCH_SIZE - 1) * _SPACE / (largest + 1)))
