"""The one right skip ring for a set of members, in plain words. Shares no code with the protocol.

Definition 2 of the paper, from strings of bits; used to judge, never to run.
"""

from functools import lru_cache

from msgspec import Struct

CACHE_MAX = 64  # sizes of networks that one process judges at a time


class RightPlace(Struct, frozen=True):
    """Where label i sits in SR(n): its ring neighbours and its shortcuts, all by label."""

    pred: int | None
    succ: int | None
    shortcuts: frozenset[int]


def bits(index: int) -> str:
    """l(i): the binary digits with the leading one moved to the units place."""
    digits = f"{index:b}"
    return digits[1:] + digits[0]


def ring_position(index: int) -> float:
    """r(l(i)) as a fraction of the circle; exact in a float up to 53 bits."""
    return int(bits(index), 2) / (1 << len(bits(index)))


@lru_cache(CACHE_MAX)
def skip_ring(n: int) -> tuple[RightPlace, ...]:
    """SR(n): for every label its neighbours in the sorted ring over the labels of <= k bits."""
    order = sorted(range(n), key=ring_position)
    size = {index: len(bits(index)) for index in order}
    beside: dict[int, set[int]] = {index: set() for index in order}
    longest = max(size.values(), default=0)
    for k in range(1, longest + 1):
        level = [index for index in order if size[index] <= k]
        for one, other in zip(level, level[1:] + level[:1], strict=True):
            beside[one].add(other)
            beside[other].add(one)
    places = {}
    for rank, index in enumerate(order):
        pred = order[rank - 1] if n > 1 else None
        succ = order[(rank + 1) % n] if n > 1 else None
        places[index] = RightPlace(pred, succ, frozenset(beside[index] - {index, pred, succ}))
    return tuple(places[index] for index in range(n))
