"""What it takes to reproduce a paper: sweeps, tables of their rows, and a page about them.

A study's tables are written as Parquet and CSV under the names and columns that it promises. Two
kinds of tables mean the same in every study:

- `claims`: what the paper claims; `holds` says whether Planaria confirms it. A false claim is a
  finding about the paper. `literal` has the same claims, measured on the paper's text alone.
- `checks`: what Planaria promises. One that does not hold is a failure of Planaria.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import nan
from typing import Any

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from planaria.core.errors import unknown
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result, Work

SCALES = ("quick", "paper", "beyond")
STUDIES: Mapping[str, str] = {
    "skipring": "planaria.studies.skipring.study:STUDY",
    "damulticast": "planaria.studies.damulticast.study:STUDY",
    "dhttree": "planaria.studies.dhttree.study:STUDY",
    "leases": "planaria.studies.leases.study:STUDY",
    "mobile": "planaria.studies.mobile.study:STUDY",
}
CLAIMS = ("claim", "paper", "measured", "holds")
LITERAL = ("claim", "literal", "holds")
CHECKS = ("check", "measured", "bound", "holds")

Rows = Mapping[str, DataFrame]  # of each experiment: its cells that raised nothing
Table = Sequence[Mapping[str, Any]]  # a table as a page reads it


class Experiment(Struct, frozen=True):
    """One sweep of a study: up to `share` of its cells run in one task, a matter of seconds."""

    name: str
    columns: Mapping[str, str]  # of the summary, with their Arrow types
    run: Callable[[Cell], Result]
    cells: Sequence[Cell]
    share: int = 1

    def work(self, study: str) -> Work:
        """What workers need to know."""
        name = f"{study}-{self.name}"

        def replay(cell: Cell) -> str:
            return f"planaria reproduce {study} --cell {cell.key(name)}"

        return Work(name, self.columns, self.run, replay)


class Prose(Struct, frozen=True):
    """Paragraphs of a page, as HTML; figures in it come from the tables."""

    html: str


class Figure(Struct, frozen=True):
    """A picture of a page, also written as NAME.svg."""

    name: str
    caption: str
    svg: str


class Shown(Struct, frozen=True):
    """A table of a page."""

    table: str
    caption: str


Block = Prose | Figure | Shown


class Study(Struct, frozen=True):
    """One paper: what is run at each scale, and what becomes of it."""

    name: str
    title: str
    paper: str  # authors, title and place, as one cites it
    promised: Mapping[str, Sequence[str]]  # the columns of each table
    experiments: Callable[[str], Sequence[Experiment]]
    tables: Callable[[SparkSession, Rows], Mapping[str, DataFrame]]
    page: Callable[[Mapping[str, Table]], Sequence[Block]]


def said(tables: Mapping[str, Table], words: str, table: str = "claims") -> Mapping[str, Any]:
    """The first claim with these words; what nothing is known of is NaN, which can be printed."""
    row = next(row for row in tables[table] if words in row["claim"])
    return {name: nan if value is None else value for name, value in row.items()}


def find_study(name: str) -> Study:
    """The study called `name`. Raises UsageError if it is unknown."""
    if name not in STUDIES:
        raise unknown("paper", name, STUDIES)
    place, _, attribute = STUDIES[name].partition(":")
    study = getattr(import_module(place), attribute)
    assert isinstance(study, Study)
    return study
