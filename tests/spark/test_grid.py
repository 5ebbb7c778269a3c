"""Grids become cells, and what is no grid is refused in one line."""

from collections import Counter
from itertools import combinations
from math import prod
from typing import Any

import pytest

from planaria.core.errors import UsageError
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED
from planaria.spark.grid import CELLS_MAX, Cell, Grid, crossed, parse_numbers, rotated

GRID: Grid = {"n": [1, 2, 3], "word": ["a", "b"]}


def test_crossed_has_every_combination_with_every_seed() -> None:
    cells = crossed(GRID, range(4))
    assert len({cell.key("x") for cell in cells}) == len(cells) == 3 * 2 * 4
    assert cells[0] == Cell({"n": 1, "word": "a"}, 0)


def test_rotated_has_one_cell_per_seed_and_comes_round_to_every_combination() -> None:
    cells = rotated(GRID, range(12))
    assert [cell.seed for cell in cells] == list(range(12))
    points = [tuple(cell.parameters.values()) for cell in cells]
    assert points[:6] == points[6:]
    assert len(set(points)) == 6


def test_a_hunt_tries_every_combination_equally_often_and_soon_every_pair() -> None:
    """The axes share factors: taken modulo each of them, seeds would try a twelfth of it all."""
    grid: Grid = {
        "start": ["corrupt", "legitimate"],
        "n": range(1, 9),
        "scheduler": SCHEDULERS,
        "nemesis": list(NAMED),
        "silent": [False, True],
    }
    period = prod(len(values) for values in grid.values())
    points = [tuple(cell.parameters.values()) for cell in rotated(grid, range(2 * period))]
    assert {*Counter(points).values()} == {2}
    assert len(Counter(points)) == period
    few = [tuple(cell.parameters.values()) for cell in rotated(grid, range(1000))]
    for one, other in combinations(range(5), 2):
        pairs = {(point[one], point[other]) for point in points}
        assert len({(point[one], point[other]) for point in few}) >= 0.95 * len(pairs)


def test_more_seeds_leave_the_cells_of_the_first_ones_alone() -> None:
    assert rotated(GRID, range(50))[:7] == rotated(GRID, range(7))


def test_a_part_of_the_seeds_has_the_cells_that_it_has_in_the_whole() -> None:
    assert rotated(GRID, range(50))[31:40] == rotated(GRID, range(31, 40))


def test_a_key_depends_on_experiment_parameters_and_seed_alone() -> None:
    cell = Cell({"a": 1, "b": "x"}, 5)
    assert cell.key("e") == Cell({"b": "x", "a": 1}, 5).key("e") == "48dddb233aedb7e0"
    others = [Cell({"a": 1, "b": "x"}, 6), Cell({"a": 2, "b": "x"}, 5), Cell({"a": 1}, 5)]
    assert len({cell.key("e"), cell.key("f"), *(it.key("e") for it in others)}) == 5


@pytest.mark.parametrize(
    ("grid", "complaint"),
    [
        ([1, 2], "maps names"),
        ({"n": []}, "a list of values"),
        ({"n": 5}, "a list of values"),
        ({"n": "abc"}, "a list of values"),
        ({"n": [1, "a"]}, "all of one type"),
        ({"n": [1, True]}, "all of one type"),
        ({"n": [[1]]}, "all of one type"),
        ({"n": [None]}, "all of one type"),
        ({"n": [1, 1]}, "twice"),
        ({"not a name": [1]}, "named like a variable"),
        ({"a": range(4000), "b": range(4000)}, "16000000 cells"),
    ],
)
def test_what_is_no_grid_is_refused(grid: Any, complaint: str) -> None:
    for make in (crossed, rotated):
        with pytest.raises(UsageError, match=complaint):
            make(grid, range(1))


@pytest.mark.parametrize("seeds", [range(CELLS_MAX + 1), range(10**11), range(5, 10**30)])
def test_more_seeds_than_a_driver_has_room_for_are_refused_at_once(seeds: range) -> None:
    for make in (crossed, rotated):
        with pytest.raises(UsageError, match="more than 10,000,000 seeds"):
            make(GRID, seeds)


def test_numbers_are_one_or_an_inclusive_range() -> None:
    assert list(parse_numbers("3", "n")) == [3]
    assert list(parse_numbers("2:4", "n")) == [2, 3, 4]
    for wrong in ("", "a", "1:", ":3", "4:2", "1:2:3", "-1", "1.5"):
        with pytest.raises(UsageError, match="n "):
            parse_numbers(wrong, "n")
