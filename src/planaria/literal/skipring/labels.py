"""Labels as strings of bits (section 2.1), '' and '10' included: the text does not exclude them."""

from typing import Annotated

from msgspec import Meta

LABEL_BITS_MAX = 64  # positions are 64-bit fixed point, so that every sum and difference is exact
CIRCLE = 1 << LABEL_BITS_MAX

Bits = Annotated[str, Meta(max_length=LABEL_BITS_MAX, pattern="^[01]*$")]


class Endless(Exception):
    """A loop of the printed text that never ends: whoever enters it does nothing ever after."""


def label(index: int) -> str:
    """l(x): the leading bit of x moved to the end."""
    digits = f"{index:b}"
    return digits[1:] + digits[0]


def inverse(bits: str) -> int | None:
    """The inverse of l; None outside its image, where the text still uses it (E8)."""
    if bits == "0":
        return 0
    return int("1" + bits[:-1], 2) if bits.endswith("1") else None


def position(bits: str) -> int:
    """r(label) times 2^64."""
    return int(bits, 2) << (LABEL_BITS_MAX - len(bits)) if bits else 0


def label_at(place: int) -> str:
    """The label at a position, taken mod 1 (the text forgets that): the shortest but never ''."""
    return f"{place % CIRCLE:0{LABEL_BITS_MAX}b}".rstrip("0") or "0"


def chain(own: str, neighbour: str) -> list[str]:
    """The shortcut labels on the side of one ring neighbour (3.2.2), nearest first.

    Each step takes at least one bit off, so it ends for every label but '' (E12).
    """
    found: list[str] = []
    while len(own) < len(neighbour):
        neighbour = label_at(2 * position(neighbour) - position(own))
        found.append(neighbour)
        if len(found) > LABEL_BITS_MAX:
            raise Endless
    return found
