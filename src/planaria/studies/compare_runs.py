"""What one cell of the comparison runs: whatever decides its result is imported here."""

from msgspec import structs

from planaria.lab.contest.contest import Contest
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result

COLUMNS = {
    "copies": "float64",
    "messages": "float64",
    "upkeep": "float64",
    "hops": "float64",
    "delay": "float64",
    "repeats": "float64",
    "strays": "float64",
    "memory": "float64",
    "memory_max": "float64",
    "twice": "int64",
    "lost": "float64",
    "lost_after": "float64",
    "settled": "int64",
    "recovery": "int64",
}


def contest(cell: Cell) -> Result:
    """One contender, one fault, one seed."""
    asked = cell.parameters
    n, topics, events = (int(asked[name]) for name in ("n", "topics", "events"))
    run = Contest(str(asked["contender"]), str(asked["fault"]), n, topics, events, cell.seed)
    return Result(structs.asdict(run.run()))
