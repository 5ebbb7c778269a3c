"""Sketches against plain set differences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.core.chance import stream
from planaria.protocols.publications.sketch import (
    CELL_BYTES,
    TUG_OF_WAR_BYTES,
    Cells,
    estimate_difference,
    id_array,
    pack_tug_of_war,
    sketch_size,
    tug_of_war,
)


def cells_of(ids: list[int], size: int) -> Cells:
    cells = Cells(size)
    cells.fold(id_array(ids), 1)
    return cells


def random_ids(count: int, *names: int | str) -> list[int]:
    chance = stream(11, *names)
    return [chance.getrandbits(64) for _ in range(count)]


id_sets = st.sets(st.integers(0, 2**64 - 1), max_size=40)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(id_sets, id_sets, id_sets)
def test_enough_cells_give_back_the_set_difference(
    ours: set[int], theirs: set[int], common: set[int]
) -> None:
    one, two = ours | common, theirs | common
    size = 3 * len(one ^ two) + 30
    decoded = cells_of(sorted(one), size).minus(cells_of(sorted(two), size)).decode()
    assert decoded is not None
    assert (set(decoded[0]), set(decoded[1])) == (one - two, two - one)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(id_sets, id_sets, st.integers(1, 60))
def test_few_cells_give_back_the_set_difference_or_nothing(
    one: set[int], two: set[int], size: int
) -> None:
    decoded = cells_of(sorted(one), size).minus(cells_of(sorted(two), size)).decode()
    if decoded is not None:
        assert (set(decoded[0]), set(decoded[1])) == (one - two, two - one)


@pytest.mark.parametrize("difference", [1, 10, 100, 1000])
def test_estimated_size_decodes_in_most_cases(difference: int) -> None:
    decoded = 0
    for seed in range(40):
        ids = random_ids(difference, difference, seed)
        ours, theirs = ids[: difference // 2], ids[difference // 2 :]
        packed = pack_tug_of_war(tug_of_war(id_array(theirs)))
        estimate = estimate_difference(tug_of_war(id_array(ours)), packed)
        assert estimate is not None
        assert difference / 4 < estimate < difference * 4
        size = sketch_size(estimate)
        decoded += cells_of(ours, size).minus(cells_of(theirs, size)).decode() is not None
    assert decoded >= 24


def test_one_corrupted_cell_never_gives_a_silent_result() -> None:
    for seed in range(300):
        chance = stream(seed, "cell")
        ids = random_ids(40, "cell", seed)
        size = sketch_size(20)
        mine, theirs = cells_of(ids[:30], size), cells_of(ids[10:], size)
        place = chance.randrange(size)
        kind = chance.randrange(3)
        if kind == 0:
            theirs.ids[place] ^= 1 << chance.randrange(63)
        elif kind == 1:
            theirs.checks[place] ^= 1 << chance.randrange(31)
        else:
            theirs.counts[place] ^= 1 << chance.randrange(8)
        assert mine.minus(theirs).decode() is None, seed


def test_random_cells_never_decode_and_never_hang() -> None:
    for seed in range(200):
        raw = stream(seed, "noise").randbytes(CELL_BYTES * (1 + seed % 50))
        cells = Cells(0).extended(raw)
        assert cells is not None
        assert cells.decode() is None


def test_cells_made_of_one_pure_cell_repeated_end_undecoded() -> None:
    cells = cells_of([5], 1)
    longer = Cells(0).extended(cells.pack())
    for _ in range(20):
        assert longer is not None
        longer = longer.extended(cells.pack())
    assert longer is not None
    assert longer.decode() is None


def test_sketches_are_linear() -> None:
    one, two = random_ids(50, "one"), random_ids(70, "two")
    both = cells_of(one + two, 64)
    total = cells_of(one, 64)
    total.add(cells_of(two, 64))
    assert total.pack() == both.pack()
    sums = tug_of_war(id_array(one)) + tug_of_war(id_array(two))
    assert (sums == tug_of_war(id_array(one + two))).all()
    both.fold(id_array(two), -1)
    assert both.pack() == cells_of(one, 64).pack()


@pytest.mark.parametrize("size", [1, 2, 64, 3000])
def test_few_ids_are_folded_in_as_many_are(size: int) -> None:
    ids = [*random_ids(60, "few"), 0, 2**64 - 1]
    together = cells_of(ids, size)
    one_by_one = Cells(size)
    for id in ids:
        one_by_one.fold(id_array([id]), 1)
    assert one_by_one.pack() == together.pack()
    for id in ids:
        one_by_one.fold(id_array([id]), -1)
    assert one_by_one.pack() == Cells(size).pack()


def test_prefix_of_a_longer_sketch_is_the_shorter_sketch() -> None:
    ids = random_ids(100, "prefix")
    long = cells_of(ids, 300)
    short = cells_of(ids, 100)
    joined = short.extended(long.pack(100))
    assert joined is not None
    assert joined.pack() == long.pack()


def test_bytes_that_are_no_sketch_are_refused() -> None:
    for size in (0, 1, CELL_BYTES - 1, CELL_BYTES + 1):
        assert Cells(0).extended(bytes(size)) is None
    assert estimate_difference(tug_of_war(id_array([1])), bytes(TUG_OF_WAR_BYTES - 1)) is None


def test_sketch_is_the_same_on_every_machine() -> None:
    cells = cells_of(list(range(100)), 20)
    assert cells.pack(15).hex()[:64] == GOLDEN_CELLS
    assert pack_tug_of_war(tug_of_war(id_array(range(100)))).hex()[:32] == GOLDEN_SUMS


GOLDEN_CELLS = "6a0000000000000042000000000000000e000000000000001500000000000000"
GOLDEN_SUMS = "f8af00fa8f000680fef4efff02e0ff00"
