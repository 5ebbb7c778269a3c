"""The four overlays and what one would use instead, on one workload with the same faults.

DIR/compare.parquet, .csv   a row for each contender and fault
DIR/compare.svg, .html      the picture, and everything in one file
DIR/sweep/                  the rows of every run, from which all of it is made
"""

import io
from functools import partial
from typing import Any

import pyarrow
from msgspec import Struct
from pyarrow import csv
from pyspark.sql import DataFrame, SparkSession

from planaria.lab.contest.contenders import CONTENDERS, OVERLAYS
from planaria.lab.contest.contest import FAULTS
from planaria.lab.contest.workload import make_workload
from planaria.spark.checks import raised_in
from planaria.spark.grid import Cell, crossed
from planaria.spark.store import Store, code_version
from planaria.spark.sweep import Result, Sweep, Work, progress_line
from planaria.spark.watch import watched
from planaria.studies.advice import advice, broken
from planaria.studies.compare_page import page, picture
from planaria.studies.compare_runs import COLUMNS, contest
from planaria.studies.facts import Summed, summed
from planaria.studies.study import REAL, WHOLE, WORD, Columns

SHARE = 2  # runs of one task: a few seconds
TABLE: Columns = {
    **dict.fromkeys(("contender", "kind", "fault"), WORD),
    **dict.fromkeys(("copies", "messages", "upkeep", "hops", "delay", "repeats", "strays"), REAL),
    "duplicates": WHOLE,
    **dict.fromkeys(("lost", "lost_after", "memory", "memory_max", "settled", "recovered"), REAL),
    "recovery": REAL,
    "recovery_max": WHOLE,
    "seeds": WHOLE,
}
SUMMED = Summed(
    ("contender", "fault"),
    {name: name for name in COLUMNS} | {"recovered": "recovery is not null"},
)


class Verdict(Struct, frozen=True):
    """The table, what follows from it, Planaria's broken promises, runs that raised."""

    table: list[dict[str, Any]]
    advice: list[str]
    broken: list[str]
    errors: list[dict[str, Any]]
    out: str

    @property
    def good(self) -> bool:
        """Was every promise kept?"""
        return not self.broken and not self.errors


class Comparison:
    """One workload, all contenders, all faults; `out` is where the results are or will be."""

    def __init__(self, n: int, topics: int, events: int, seeds: int, out: str = "") -> None:
        make_workload(n, topics, events, 0)  # wrong sizes are an error now
        self.asked = f"--n {n} --topics {topics} --events {events} --seeds {seeds}"
        self.sizes = {"n": n, "topics": topics, "events": events}
        self.version = code_version(modules=[contest.__module__])
        self.store = Store(out or f"out/compare/{self.version}")
        self.cells = crossed(
            {
                "contender": list(CONTENDERS),
                "fault": FAULTS,
                **{name: [size] for name, size in self.sizes.items()},
            },
            range(seeds),
        )

    def work(self) -> Work:
        """What workers need to know."""
        asked = self.asked

        def replay(cell: Cell) -> str:
            return f"planaria compare {asked} --cell {cell.key('compare')}"

        return Work("compare", COLUMNS, contest, replay)

    def sweep(self) -> Sweep:
        """All runs. Raises UsageError if the directory is not ours."""
        self.store.claim("comparison", self.version)
        return Sweep(self.work(), self.cells, self.store.below("sweep"), share=SHARE)

    def one_cell(self, key: str) -> Result | None:
        """Repeat one cell, alone and here; None if it is unknown."""
        found = [cell for cell in self.cells if cell.key("compare") == key]
        return contest(found[0]) if found else None

    def run(self, spark: SparkSession, sweep: Sweep) -> Verdict:
        """Run what is missing, then rewrite the table, the picture and the page."""
        made = partial(self._verdict, spark, sweep)
        return watched(spark, "compare", made, lambda: progress_line([sweep], self.store))

    def _verdict(self, spark: SparkSession, sweep: Sweep) -> Verdict:
        sweep.run(spark)
        rows = sweep.rows(spark).cache()
        raised = raised_in(sweep.work.name, rows, len(sweep.cells))
        found = table(rows)
        made = pyarrow.Table.from_pylist(found, pyarrow.schema(list(TABLE.items())))
        advised = advice(found, _raising(rows))
        verdict = Verdict(found, advised, broken(found), raised, self.store.shown)
        store, sink = self.store, io.BytesIO()
        store.write("compare.parquet", made)
        csv.write_csv(made, sink)
        store.write("compare.csv", sink.getvalue())
        drawn = picture(found)
        store.write("compare.svg", drawn.encode())
        store.write("compare.html", page(verdict, drawn, self.sizes, self.version).encode())
        return verdict


def table(rows: DataFrame) -> list[dict[str, Any]]:
    """Means over seeds; `recovery` is of those runs that recovered, `recovered` says how many."""
    averaged = [name for name in COLUMNS if name not in ("twice", "recovery")]
    found = []
    for at, runs in summed(rows, SUMMED).by("contender", "fault"):
        took = runs["recovery"]
        found.append(
            {
                **at,
                **{name: runs[name].mean for name in (*averaged, "recovered")},
                "kind": "overlay" if at["contender"] in OVERLAYS else "baseline",
                "duplicates": round(runs["twice"].total),
                "recovery": took.mean if took.runs else None,
                "recovery_max": round(took.most) if took.runs else None,
                "seeds": runs["twice"].runs,
            }
        )
    contenders, faults = list(CONTENDERS), list(FAULTS)
    found.sort(key=lambda row: (contenders.index(row["contender"]), faults.index(row["fault"])))
    return [{name: row[name] for name in TABLE} for row in found]


def _raising(rows: DataFrame) -> list[str]:
    """The contenders of which a run raised."""
    named = rows.where("error is not null").select("contender").distinct().collect()
    return sorted((row.contender for row in named), key=list(CONTENDERS).index)
