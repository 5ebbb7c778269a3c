"""Columns of bytes as records have them: a table of offsets, and cells that follow each other."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import sub
from struct import Struct as Layout
from struct import pack, unpack_from

_BOUNDS = Layout("<II")  # of one cell

Headers = tuple[tuple[str, bytes], ...]


def cells_of(data: bytes, table: int, start: int, lo: int, hi: int) -> list[bytes]:
    """The cells `lo` to before `hi` of a column."""
    if hi - lo == 1:
        a, b = _BOUNDS.unpack_from(data, table + 4 * lo)
        return [data[start + a : start + b]]
    bounds = unpack_from(f"<{hi - lo + 1}I", data, table + 4 * lo)
    return [data[start + a : start + b] for a, b in pairwise(bounds)]


def table_of(cells: Sequence[bytes] | Sequence[Headers]) -> bytes:
    """The offsets of a column with these cells."""
    return pack(f"<{len(cells) + 1}I", *accumulate(map(len, cells), initial=0))


def check_table(what: str, data: bytes, table: int, entries: int, largest: int) -> list[int]:
    """Check the offsets of one column; returns the lengths of its cells, or raises ValueError."""
    bounds = unpack_from(f"<{entries + 1}I", data, table)
    lengths = list(map(sub, bounds[1:], bounds))
    if bounds[0] != 0 or min(lengths) < 0:
        raise ValueError(f"{what} offsets do not ascend from 0")
    if max(lengths) > largest:
        raise ValueError(f"{what} of {max(lengths)}: at most {largest}")
    return lengths


def ascends(data: bytes, table: int, entries: int, end: int) -> bool:
    """Do the offsets of a column ascend from 0 to `end`?

    20 ns each. numpy needs fewer, and a client that reads a past would wait for it to load for as
    long as five million of them take.
    """
    bounds = unpack_from(f"<{entries + 1}I", data, table)
    return bounds[0] == 0 and bounds[-1] == end and list(bounds) == sorted(bounds)


def check_validity(validity: bytes, lengths: list[int]) -> None:
    """Raise ValueError if there are bits without a row, or a key where there is none."""
    bits = int.from_bytes(validity, "little")
    if bits >> len(lengths):
        raise ValueError("validity bits beyond the last publication")
    if any(length and not bits >> row & 1 for row, length in enumerate(lengths)):
        raise ValueError("a key where there is none")


def check_names(names: bytes, lengths: list[int]) -> None:
    """Raise ValueError unless names are UTF-8, and none begins inside a character."""
    try:
        names.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"header names: {error.reason}") from None
    starts = accumulate(lengths[:-1])
    if any(names[at : at + 1] and 0x80 <= names[at] < 0xC0 for at in starts):
        raise ValueError("a header name begins inside a character")
