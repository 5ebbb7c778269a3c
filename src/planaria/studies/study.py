"""What it takes to reproduce a paper: sweeps, facts, claims, tables, figures and a page.

A study's tables are written as Parquet and CSV under the names and columns that it promises. Three
tables mean the same in every study, and the one judge makes them (`planaria.studies.judge`):

- `claims`: what the paper claims; `holds` says whether Planaria confirms it, and `meaning` what a
  `no` means. A claim that does not hold is a finding.
- `literal`: the same claims, measured on the paper's text alone.
- `checks`: what Planaria promises. One that does not hold is a failure of Planaria.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import nan
from typing import Any

import pyarrow
from msgspec import Struct

from planaria.core.errors import PlanariaError, unknown
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result, Work
from planaria.studies import judge
from planaria.studies.facts import Found, Summed
from planaria.studies.judge import Asked, Facts

SCALES = ("quick", "paper", "beyond")
STUDIES: Mapping[str, str] = {
    "skipring": "planaria.studies.skipring.study:STUDY",
    "damulticast": "planaria.studies.damulticast.study:STUDY",
    "dhttree": "planaria.studies.dhttree.study:STUDY",
    "leases": "planaria.studies.leases.study:STUDY",
    "mobile": "planaria.studies.mobile.study:STUDY",
}
REAL, WHOLE, WORD, TRUTH = "float64", "int64", "string", "bool"
INTERVAL = {"low": REAL, "high": REAL}
JUDGED = {"relation": WORD, "meaning": WORD, "cause": WORD}
CLAIMS = {"claim": WORD, "paper": REAL, "measured": REAL, "holds": WORD, **INTERVAL, "runs": WHOLE}
CLAIMS |= JUDGED
LITERAL = {"claim": WORD, "literal": REAL, "holds": WORD, **INTERVAL, "runs": WHOLE}
CHECKS = {"check": WORD, "measured": REAL, "bound": REAL, "holds": WORD, "relation": WORD}
VERDICTS = {"claims": CLAIMS, "literal": LITERAL, "checks": CHECKS}

Row = Mapping[str, Any]
Table = Sequence[Row]
Tables = Mapping[str, Table]
Columns = Mapping[str, str]  # of a table, with their Arrow types


class StudyBroken(PlanariaError):
    """A study lacks what it promised: a mistake in the study."""


class Experiment(Struct, frozen=True):
    """One sweep of a study: up to `share` of its cells run in one task, a matter of seconds."""

    name: str
    columns: Mapping[str, str]  # of the summary, with their Arrow types
    run: Callable[[Cell], Result]
    cells: Sequence[Cell]
    summed: Summed
    share: int = 1

    def work(self, study: str) -> Work:
        """What workers need to know."""
        name = f"{study}-{self.name}"

        def replay(cell: Cell) -> str:
            return f"planaria reproduce {study} --cell {cell.key(name)}"

        return Work(name, self.columns, self.run, replay)


def nothing(_: Tables) -> Mapping[str, Any]:
    """No numbers but those of the tables."""
    return {}


class Study(Struct, frozen=True):
    """One paper: what is run at each scale, and what becomes of it."""

    name: str
    title: str
    paper: str  # authors, title and place, as one cites it
    promised: Mapping[str, Columns]  # of each table
    experiments: Callable[[str], Sequence[Experiment]]
    asked: Callable[[Found], Asked]  # the claims and checks
    facts: Callable[[Found], Facts]
    tables: Callable[[Found], Tables]  # beside the three of the judge
    figures: Callable[[Tables], Mapping[str, str]]  # as SVG, by name
    page: str  # a template
    numbers: Callable[[Tables], Mapping[str, Any]] = nothing  # for the page, beside the tables


def made(study: Study, found: Found) -> dict[str, pyarrow.Table]:
    """All tables of a study. Raises StudyBroken unless they are just what it promises."""
    asked = study.asked(found)
    missing: dict[str, judge.Sized] = {name: {} for name in asked.names()}  # no run came to its end
    facts = {**missing, **study.facts(found)}
    tables = {
        **study.tables(found),
        "claims": judge.claims(asked.claim, facts),
        "literal": judge.literal(asked.claim, facts),
        "checks": judge.checks(asked.check, facts),
    }
    if sorted(tables) != sorted(study.promised):
        promised = sorted(study.promised)
        raise StudyBroken(f"{study.name} promises {promised}, it made {sorted(tables)}")
    return {name: _typed(study, name, rows) for name, rows in tables.items()}


def _typed(study: Study, name: str, rows: Table) -> pyarrow.Table:
    columns = study.promised[name]
    for column in columns:
        if any(column not in row for row in rows):
            raise StudyBroken(f"{study.name}/{name} has no column {column}")
    schema = pyarrow.schema(list(columns.items()))
    return pyarrow.Table.from_pylist([{it: row[it] for it in columns} for row in rows], schema)


def said(tables: Tables, words: str, table: str = "claims") -> Row:
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
