"""States as numbers: what is put in is found again, also in other fields, and in the same order."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytest

from planaria.core.errors import UsageError
from planaria.verify.fields import Fields


def packed(fields: Fields, cells: Sequence[int], had: int) -> int:
    return sum(cell * unit for cell, unit in zip(cells, fields.units, strict=True)) + (
        had * fields.top
    )


@pytest.mark.parametrize(
    ("n", "rounds", "bits"), [(1, False, 63), (1, True, 63), (2, False, 31), (3, True, 20)]
)
def test_equal_fields_use_what_rounds_leave(n: int, rounds: bool, bits: int) -> None:
    assert Fields.equal(n, rounds=rounds).sizes == (1 << bits,) * n


def test_the_largest_number_is_taken_apart_and_put_together_again() -> None:
    fields = Fields([3, (1 << 61) // 3 - 5])
    codes = np.array([0, (1 << 64) - 1], dtype=np.uint64)
    together = fields.had(codes) * np.uint64(fields.top)
    for at in range(2):
        cells = fields.of(codes, at)
        assert cells.tolist() == [fields.place(it, at) for it in codes.tolist()]
        together += fields.put(cells, at)
    assert (together == codes).all()


def test_a_cell_that_is_changed_by_a_difference_changes_no_other() -> None:
    fields = Fields([4, 7, 5])
    for before, after in product(range(7), repeat=2):
        code = np.array([packed(fields, (3, before, 2), 6)], dtype=np.uint64)
        code += fields.put(np.array([after - before]), 1)
        assert code.tolist() == [packed(fields, (3, after, 2), 6)]


def test_moved_states_have_the_same_cells_in_the_same_order() -> None:
    narrow = Fields([4, 2, 7])
    wide = narrow.wider([5, 3, 9], rounds=True)
    states = list(product(range(4), range(2), range(7), range(7)))
    codes = np.sort(np.array([packed(narrow, it[:3], it[3]) for it in states], dtype=np.uint64))
    moved = narrow.moved(codes, wide)
    assert (np.diff(moved.astype(object)) > 0).all()
    assert sorted(packed(wide, it[:3], it[3]) for it in states) == moved.tolist()
    for at in range(3):
        assert (wide.of(moved, at) == narrow.of(codes, at)).all()


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("counts", [[17, 2], [1 << 29, 1 << 29, 5], [1 << 62]])
def test_there_is_room_for_all_cells_and_what_is_left_is_shared(
    counts: list[int], rounds: bool
) -> None:
    sizes, n = Fields([1] * len(counts)).wider(counts, rounds=rounds).sizes, len(counts)
    assert all(size >= count for size, count in zip(sizes, counts, strict=True))
    room = 1 << 64 - max(1, n * rounds)
    assert 0.9 * room < prod(sizes) <= room or room < 2 * prod(counts)
    more = [size / count for size, count in zip(sizes, counts, strict=True)]
    assert max(more) < 1.3 * min(more)


def test_more_cells_than_numbers_are_refused_in_one_line() -> None:
    assert Fields([1, 1]).wider([1 << 31, 1 << 31], rounds=True).sizes == (1 << 31, 1 << 31)
    with pytest.raises(UsageError, match="no room in 64 bits"):
        Fields([1, 1]).wider([1 << 31, (1 << 31) + 1], rounds=True)
