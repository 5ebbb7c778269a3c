"""First states drawn at random, and what they say of all of them where those are too many."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import comb

import numpy as np
from msgspec import Struct

from planaria.core.chance import stream
from planaria.verify.model import First, Model, constants
from planaria.verify.wide import Judged

CONFIDENCE = 0.95
HALVINGS = 60  # until an interval of shares is narrower than any that is printed


class Sample(Struct, frozen=True):
    """Starts drawn, each as likely as any other and with replacement, and what they lead to.

    `not_clean`: how many lead to something that must not be; `share`: with the stated confidence
    fewer of all the starts do. `size`: how many states all starts reach, at least, as two halves of
    the sample let expect.
    """

    drawn: int
    of: int
    not_clean: int
    share: float
    size: int

    def __str__(self) -> str:
        return (
            f"  sample     {self.drawn:,} starts of {self.of:,}, drawn with replacement: "
            f"{self.not_clean:,} lead to a fault\n"
            f"             with {CONFIDENCE:.0%} confidence fewer than {self.share:.2%} of all do\n"
            f"  size       {self.size:,} states at least, as two halves of the sample let expect"
        )


def count(model: Model) -> int:
    """How many first states there are."""
    with constants(model.constants):
        return sum(1 for _ in model.firsts())


def draws(total: int, count: int, seed: int) -> list[int]:
    """Numbers of first states, drawn with replacement."""
    rng = stream(seed, "sample")
    return [rng.randrange(total) for _ in range(count)]


def chosen(model: Model, numbers: Iterable[int]) -> Iterator[First]:
    """The first states with these numbers, in the order of the model; repeated ones once."""
    at, firsts = 0, model.firsts()
    for number in sorted(set(numbers)):
        yield from islice(firsts, number - at, number - at + 1)
        at = number + 1


def share_below(found: int, drawn: int, confidence: float = CONFIDENCE) -> float:
    """The least share of which so few or fewer would be drawn with a chance of 1 - confidence.

    Exact, of the binomial distribution (Clopper and Pearson), one-sided.
    """
    if found >= drawn:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        share = (low + high) / 2
        terms = (
            comb(drawn, it) * share**it * (1 - share) ** (drawn - it) for it in range(found + 1)
        )
        low, high = (share, high) if sum(terms) > 1 - confidence else (low, share)
    return high


def least_size(first: int, second: int, both: int) -> int:
    """How many there are of which two independent samples have so many, and so many in common.

    Lincoln, Petersen and Chapman. Where some are met more easily than others, as here, fewer than
    there are are to be expected: (sum of p)^2 <= N (sum of p^2).
    """
    return (first + 1) * (second + 1) // (both + 1) - 1


def sampled(judged: Judged, numbers: Sequence[int], total: int) -> Sample:
    """What the search from these first states says of all `total` of them."""
    steps = judged.steps
    leads = steps.reaching(np.logical_or.reduce(list(judged.wrong.values())))
    order = sorted(set(numbers))
    place_of = [int(judged.starts[bisect_left(order, it)]) for it in numbers]
    not_clean = sum(bool(leads[it]) for it in place_of)
    halves = []
    for half in (place_of[::2], place_of[1::2]):
        start = np.zeros(steps.size, dtype=np.bool_)
        start[half] = True
        halves.append(steps.reached(start))
    both = int((halves[0] & halves[1]).sum())
    size = least_size(int(halves[0].sum()), int(halves[1].sum()), both)
    return Sample(len(numbers), total, not_clean, share_below(not_clean, len(numbers)), size)
