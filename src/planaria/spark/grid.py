"""What a sweep runs: cells, each one simulation with its parameters and its seed."""

import json
from collections.abc import Mapping, Sequence
from itertools import product

from msgspec import Struct

from planaria.core.chance import combination
from planaria.core.errors import UsageError
from planaria.core.ids import stable_hash

Value = bool | int | float | str
Grid = Mapping[str, Sequence[Value]]

CELLS_MAX = 10_000_000  # each has a row in the driver; more is a sweep of sweeps


class Cell(Struct, frozen=True):
    """One simulation."""

    parameters: dict[str, Value]
    seed: int

    def key(self, experiment: str) -> str:
        """The name of this cell in all tables: the same for the same parameters and seed."""
        text = json.dumps(self.parameters, sort_keys=True)
        return f"{stable_hash(experiment, text, self.seed, bits=64):016x}"


def crossed(grid: Grid, seeds: Sequence[int]) -> tuple[Cell, ...]:
    """Every combination of the values of `grid`, each with every seed."""
    _check_seeds(seeds)
    _check_grid(grid, len(seeds))
    points = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
    return tuple(Cell(point, seed) for point in points for seed in seeds)


def rotated(grid: Grid, seeds: Sequence[int]) -> tuple[Cell, ...]:
    """One cell for each seed; seeds take turns with the combinations, in an order drawn once."""
    _check_seeds(seeds)
    _check_grid(grid, 1)
    axes = list(grid.values())
    return tuple(
        Cell(dict(zip(grid, combination(seed, *axes), strict=True)), seed) for seed in seeds
    )


def parse_numbers(text: str, name: str) -> range:
    """`12` or, inclusive, `1:12`."""
    first, colon, last = text.partition(":")
    if not first.isdecimal() or (colon and not last.isdecimal()):
        raise UsageError(f"{name} {text!r}: write a number, or a range like 1:12")
    low, high = int(first), int(last or first)
    if low > high:
        raise UsageError(f"{name} {text!r}: the range is empty")
    return range(low, high + 1)


def _check_grid(grid: Grid, seeds: int) -> None:
    size = seeds
    if not isinstance(grid, Mapping):
        raise UsageError(f"a grid maps names of parameters to their values, this is {grid!r}")
    for name, values in grid.items():
        _check_axis(name, values)
        size *= len(values)
    if not 0 < size <= CELLS_MAX:
        raise UsageError(f"{size} cells: between 1 and {CELLS_MAX}")


def _check_seeds(seeds: Sequence[int]) -> None:
    if seeds[CELLS_MAX:]:  # a long range has no `len`, and takes for ever to walk
        raise UsageError(f"more than {CELLS_MAX:,} seeds: ask for fewer, or for a part of them")


def _check_axis(name: str, values: Sequence[Value]) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"a parameter is named like a variable, not {name!r}")
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise UsageError(f"parameter {name} needs a list of values, not {values!r}")
    kinds = {type(value) for value in values}
    if len(kinds) > 1 or not issubclass(kinds.pop(), bool | int | float | str):
        raise UsageError(f"parameter {name}: numbers or words, all of one type, not {values!r}")
    if len(dict.fromkeys(values)) < len(values):
        raise UsageError(f"parameter {name} has a value twice: {values!r}")
