"""SR(n) by Definition 2, from strings and fractions; shares no code with the protocol."""

from fractions import Fraction
from typing import NamedTuple


class Stored(NamedTuple):
    """What the holder of one label must store, all of it as labels."""

    left: str | None
    right: str | None
    ring: str | None
    shortcuts: frozenset[str]


def reference_labels(n: int) -> list[str]:
    """The labels l(0) ... l(n-1)."""
    return [bin(x)[3:] + bin(x)[2] for x in range(n)]


def value(bits: str) -> Fraction:
    """r(label)."""
    return sum((Fraction(int(bit), 2**i) for i, bit in enumerate(bits, 1)), Fraction(0))


def sorted_rings(n: int) -> list[list[str]]:
    """The sorted rings over K_1, K_2, ..., the last one over all labels: E_S, then E_R.

    The levels of E_S end at ceil(log n) - 1; the whole ring stands for level ceil(log n).
    """
    everyone = sorted(reference_labels(n), key=value)
    levels = range(1, (n - 1).bit_length())
    return [*([bits for bits in everyone if len(bits) <= i] for i in levels), everyone]


def skip_ring(n: int) -> dict[str, Stored]:
    """What each label must store in SR(n).

    A neighbour in K_i that is also the ring neighbour on the same side is held by the ring alone:
    section 3.2.2 computes no shortcut for it.
    """
    rings = sorted_rings(n)
    line = rings[-1]
    places = {}
    for index, bits in enumerate(line):
        left, right = (line[index - 1], line[(index + 1) % n]) if n > 1 else (None, None)
        shortcuts = {
            other
            for level in rings[:-1]
            if bits in level
            for step, beside in ((-1, left), (1, right))
            if (other := level[(level.index(bits) + step) % len(level)]) != beside
        }
        first, last = index == 0, index == n - 1
        ring = left if first else right if last else None
        places[bits] = Stored(
            None if first else left, None if last else right, ring, frozenset(shortcuts)
        )
    return places


def skip_ring_edges(n: int) -> set[tuple[str, str]]:
    """The undirected edges of SR(n), straight from Definition 2."""
    edges = set()
    for ring in sorted_rings(n):
        for index, bits in enumerate(ring):
            other = ring[(index + 1) % len(ring)]
            if other != bits:
                edges.add((min(bits, other), max(bits, other)))
    return edges
