"""What a subscriber can tell from its own label and those of its two ring neighbours alone."""

from functools import lru_cache

from msgspec import Struct

from planaria.protocols.skipring.labels import CIRCLE, length, position, shortcut_labels
from planaria.protocols.skipring.messages import WINDOW_MAX

CACHE_MAX = 1 << 17  # neighbourhoods remembered by all members in one process: some 40 MB


class Neighbourhood(Struct, frozen=True, gc=False):
    """The shortcut labels on each side, nearest first, and whether the gaps can be of an SR(n)."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    plausible: bool
    slots: frozenset[int] = frozenset()  # of both sides


ALONE = Neighbourhood((), (), True)
NOWHERE = Neighbourhood((), (), False)


@lru_cache(CACHE_MAX)
def neighbourhood(label: int, pred: int | None, succ: int | None) -> Neighbourhood:
    """Shortcut labels (3.2.2) and plausibility (rule A3) of `label` between `pred` and `succ`."""
    if pred is None or succ is None:
        return ALONE if label == 0 and pred is succ else NOWHERE
    left, right = tuple(shortcut_labels(label, pred)), tuple(shortcut_labels(label, succ))
    return Neighbourhood(left, right, plausible(label, pred, succ), frozenset(left + right))


@lru_cache(CACHE_MAX)
def longest(*labels: int) -> int:
    """The bits of the longest of these labels but those that are longer than any topic needs."""
    sizes = [size for size in map(length, labels) if size <= WINDOW_MAX]
    return max(sizes, default=WINDOW_MAX)


def plausible(label: int, pred: int, succ: int) -> bool:
    """Could these be neighbours in some SR(n)? A ring that passes everywhere is one (rule A3).

    Gaps are powers of two, not above the label's own level, and equal, or the one that is filled
    first (the left one; for label 0 the right one) is half as wide.
    """
    here = position(label)
    before = (here - position(pred)) % CIRCLE
    after = (position(succ) - here) % CIRCLE
    if not before or not after or before & (before - 1) or after & (after - 1):
        return False
    widest = CIRCLE >> length(label)
    if before > widest or after > widest:
        return False
    first, second = (after, before) if label == 0 else (before, after)
    return first == second or 2 * first == second
