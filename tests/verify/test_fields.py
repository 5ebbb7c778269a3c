"""Fields in 64 bits: what is put in is found again, also in others, and in the same order."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from planaria.core.errors import UsageError
from planaria.verify.fields import Fields


def packed(fields: Fields, cells: Sequence[int], top: int) -> int:
    return sum(cell << shift for cell, shift in zip(cells, fields.shifts, strict=True)) | (
        top << fields.top
    )


@pytest.mark.parametrize(
    ("n", "rounds", "width"), [(1, False, 64), (1, True, 63), (2, False, 32), (3, True, 20)]
)
def test_equal_fields_use_what_rounds_leave(n: int, rounds: bool, width: int) -> None:
    assert Fields.equal(n, rounds=rounds).widths == (width,) * n


def test_one_field_of_all_bits_holds_every_number() -> None:
    codes = np.array([0, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
    whole = Fields.equal(1, rounds=False)
    assert [whole.place(it, 0) for it in codes.tolist()] == codes.tolist()
    assert (whole.moved(codes, whole) == codes).all()


def test_moved_states_have_the_same_cells_in_the_same_order() -> None:
    narrow = Fields([2, 1, 3])
    wide = narrow.wider([5, 3, 9], rounds=True)
    states = list(product(range(4), range(2), range(8), range(7)))
    codes = np.sort(np.array([packed(narrow, it[:3], it[3]) for it in states], dtype=np.uint64))
    moved = narrow.moved(codes, wide)
    assert (np.diff(moved.astype(object)) > 0).all()
    assert sorted(packed(wide, it[:3], it[3]) for it in states) == moved.tolist()
    for at in range(3):
        assert (wide.of(moved, at) == narrow.of(codes, at)).all()
        assert [wide.place(it, at) for it in moved.tolist()] == wide.of(moved, at).tolist()
        assert (wide.put(wide.of(moved, at), at) & ~moved == 0).all()


def test_who_has_more_cells_gets_more_and_the_rest_is_shared() -> None:
    assert Fields([4, 4]).wider([17, 2], rounds=True).widths == (5 + 28, 1 + 28)
    assert Fields([4, 4]).wider([1 << 32, 1 << 32], rounds=False).widths == (32, 32)


def test_more_cells_than_bits_are_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="no room in 64 bits"):
        Fields([31, 31]).wider([1 << 31, (1 << 31) + 1], rounds=True)
