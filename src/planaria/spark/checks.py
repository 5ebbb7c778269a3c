"""Is the data what it claims to be? Asked before any figure is drawn from it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyspark.sql.functions as sql
from pyspark.sql import DataFrame

from planaria.core.errors import PlanariaError, UsageError


class NothingMeasured(PlanariaError):
    """No simulation of a sweep came to its end: there is nothing to make tables of."""


def complete(rows: DataFrame, found: Counter[str], cells: Sequence[str]) -> DataFrame:
    """The rows of `cells`. Raises UsageError if one of them is missing or occurs twice.

    `found` says how often each is among the rows: the driver counts, in files that it reads anyway
    (0060).
    """
    for what, wrong in (
        ("duplicated", [cell for cell in cells if found[cell] > 1]),
        ("missing: run it again", [cell for cell in cells if not found[cell]]),
    ):
        if wrong:
            raise UsageError(f"{len(wrong):,} of {len(cells):,} cells {what} (one: {min(wrong)})")
    if len(found) == len(cells):
        return rows
    asked = rows.sparkSession.createDataFrame([(cell,) for cell in cells], "cell string")
    return rows.join(asked, "cell", "left_semi")


def errors(rows: DataFrame) -> DataFrame:
    """How many cells of each kind of error, most first, each with one command that repeats it."""
    return (
        rows.where("error is not null")
        .groupBy("error")
        .agg(sql.count("*").alias("cells"), sql.min_by("replay", "seed").alias("replay"))
        .orderBy(sql.desc("cells"), "error")
    )


def raised_in(name: str, rows: DataFrame, cells: int) -> list[dict[str, Any]]:
    """What simulations of a sweep raised, by kind; `NothingMeasured` if all of them did."""
    kinds = [row.asDict() for row in errors(rows).collect()]
    if sum(kind["cells"] for kind in kinds) == cells:
        first = kinds[0]
        summary = f"{name}: all {cells:,} simulations raised {first['error']}"
        raise NothingMeasured(f"{summary}; replay: {first['replay']}")
    return kinds
