"""Labels of the skip ring (paper, section 2.1) and the shortcut labels computed from them (3.2.2).

A label l(x) is held as its index x. The map is one to one, so a non-canonical label such as '' or
'10' cannot be represented (errata E8, E12): a label that is not an index is no label. Strings of
bits are for people and for the literal protocols.

Positions r(l(x)) in [0, 1) are 64-bit fixed point: the integer r * 2^64.
"""

from typing import Annotated

from msgspec import Meta

POSITION_BITS = 64
CIRCLE = 1 << POSITION_BITS
LABEL_MAX = (1 << 62) - 1  # labels of at most 62 bits, so positions and their middles are exact

Label = Annotated[int, Meta(ge=0, le=LABEL_MAX)]


def label_bits(index: int) -> str:
    """l(x): the binary digits of x with the leading one moved to the end."""
    digits = f"{index:b}"
    return digits[1:] + digits[0]


def label_index(bits: str) -> int | None:
    """The inverse of l; None for a string of bits that is not in its image."""
    if bits == "0":
        return 0
    if not bits.endswith("1") or set(bits) - {"0", "1"}:
        return None
    return int("1" + bits[:-1], 2)


def length(index: int) -> int:
    """|l(x)|, the number of bits of the label."""
    return index.bit_length() or 1


def position(index: int) -> int:
    """r(l(x)) as 64-bit fixed point: label x of d+1 bits lies in the middle of its level's gap."""
    if index == 0:
        return 0
    size = index.bit_length()
    return (2 * index - (1 << size) + 1) << (POSITION_BITS - size)


def index_at(place: int) -> int | None:
    """The label at a position: the inverse of `position`; None if its label would be too long."""
    place %= CIRCLE
    if place == 0:
        return 0
    trailing = (place & -place).bit_length() - 1
    size = POSITION_BITS - trailing
    if size > LABEL_MAX.bit_length():
        return None
    return ((place >> (trailing + 1)) | 1 << (size - 1)) if size > 1 else 1


def predecessor(index: int, n: int) -> int:
    """The label before `index` on the ring of the labels 0..n-1."""
    return _beside(index, n, -1)


def successor(index: int, n: int) -> int:
    """The label after `index` on the ring of the labels 0..n-1."""
    return _beside(index, n, +1)


def _beside(index: int, n: int, side: int) -> int:
    """The nearest label on one side: the deepest level's slot if it is taken, else one level up."""
    if n < 2:
        return index
    deepest = (n - 1).bit_length()
    here = position(index)
    for size in range(deepest, 0, -1):
        step = CIRCLE >> size
        if size < length(index) and index:
            break
        beside = index_at(here + side * step)
        if beside is not None and beside < n:
            return beside
    raise AssertionError("two labels or more always have neighbours")


def shortcut_labels(own: int, neighbour: int) -> list[int]:
    """The labels of the shortcuts on the side of the ring neighbour `neighbour` (3.2.2).

    While the label beside me is longer than mine, it was inserted between me and the label as far
    behind it: 2 r(neighbour) - r(own). Ends at a label no longer than mine: the level-|own| one.
    """
    found: list[int] = []
    here, mine = position(own), length(own)
    while length(neighbour) > mine and len(found) < POSITION_BITS:
        beyond = index_at(2 * position(neighbour) - here)
        if beyond is None or beyond == own:
            break
        found.append(beyond)
        neighbour = beyond
    return found
