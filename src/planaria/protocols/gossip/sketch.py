"""How many are we? The smallest hashes of the members' ids, with ages, estimate a group's size.

Each member puts its own hash in with age 0; ages grow by one per interval and hop, and news that
is clearly younger wins. What nobody renews dies out, so any content heals. Below `SKETCH_SIZE`
members the count is exact; above it the relative error is about 1 / sqrt(SKETCH_SIZE - 2).
Ids and their hashes stay, so a group's error does too: it is not noise that averages out.
"""

from collections.abc import Iterable, Sequence

from planaria.core.ids import NodeId
from planaria.protocols.gossip.messages import SKETCH_SIZE, SLOWEST

SKETCH_AGE_MAX = 48  # news crosses a group in O(log S) exchanges, and is older at each
ROUND_TRIP = 2 * SLOWEST

Sketch = dict[int, int]  # hash of an id to the age of its news

_SPACE = 1 << 63  # hashes fit the ids' own range, and so the same fields of messages
_MASK = (1 << 64) - 1


def rank(id: NodeId) -> int:
    """A hash of `id`, uniform over 63 bits, the same everywhere (splitmix64)."""
    x = (id + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)) >> 1


def exact(members: Sequence[NodeId]) -> Sketch:
    """The sketch of a group whose members are known."""
    return dict.fromkeys(sorted(map(rank, members))[:SKETCH_SIZE], 0)


def merge(sketch: Sketch, news: Iterable[tuple[int, int]]) -> None:
    """Take `news` into `sketch`: the smallest hashes stay, renewed by younger news.

    News of others is one older than they say: otherwise it would not age on its way. It must be
    younger than mine by more than it takes there and back: else two members with slow links keep
    what is false young between them.
    """
    grown = False
    for hashed, stated in news:
        age = stated + 1
        known = sketch.get(hashed)
        if known is None:
            if 0 <= age <= SKETCH_AGE_MAX and 0 <= hashed < _SPACE:
                sketch[hashed] = age
                grown = True
        elif 0 <= age < known - ROUND_TRIP:
            sketch[hashed] = age
    if grown and len(sketch) > SKETCH_SIZE:
        for hashed in sorted(sketch)[SKETCH_SIZE:]:
            del sketch[hashed]


def grow_old(sketch: Sketch, me: NodeId) -> Sketch:
    """The sketch one interval later, with `me` renewed; what none may hold is gone."""
    aged = {
        hashed: age + 1
        for hashed, age in sketch.items()
        if 0 <= age < SKETCH_AGE_MAX and 0 <= hashed < _SPACE
    }
    aged.pop(rank(me), None)
    merge(aged, [(rank(me), -1)])
    return aged


def repair(sketch: Sketch) -> Sketch:
    """`sketch` without what none may hold: impossible hashes and ages, more than the smallest."""
    if len(sketch) <= SKETCH_SIZE:
        ages = sketch.values()
        if not sketch or (
            0 <= min(ages) <= max(ages) <= SKETCH_AGE_MAX
            and 0 <= min(sketch) <= max(sketch) < _SPACE
        ):
            return sketch
    mended: Sketch = {}
    merge(mended, ((hashed, age - 1) for hashed, age in sketch.items()))
    return mended


def estimate(sketch: Sketch) -> int:
    """The size of the group that a sound `sketch` samples; at least 1, for oneself."""
    if len(sketch) < SKETCH_SIZE:
        return max(1, len(sketch))
    return max(SKETCH_SIZE, round((SKETCH_SIZE - 1) * _SPACE / (max(sketch) + 1)))
