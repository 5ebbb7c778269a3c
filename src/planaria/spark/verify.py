"""A search too large for one process: its first states in parts, each searched by a Spark task.

A part holds all that its first states reach, so whatever it finds is found as in a search of the
whole: no component spans two parts without lying in both. What several parts reach is searched by
each of them. So that it is counted once, tasks write a name of every state they visited.
"""

import json
from itertools import pairwise
from typing import Any

import pyarrow
import pyspark.sql.functions as sql
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from planaria.core.errors import UsageError
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result, Sweep, Work
from planaria.verify import check
from planaria.verify.cases import Case
from planaria.verify.check import Finding, Search
from planaria.verify.counterexample import counterexample
from planaria.verify.model import constants

PARTS_MAX = 100_000
COLUMNS = {
    "starts": "int64",
    "states": "int64",
    "local_steps": "int64",
    "thinned": "bool",
    "findings": "string",  # as JSON: kind, detail and counterexample
}
STATES = pyarrow.schema(
    {
        "cell": "string",
        "state": "binary",
        "legitimate": "bool",
        "expanded": "bool",
        "steps": "int64",
        "cut": "int64",
    }
)
FAULTS = pyarrow.schema({"cell": "string", "kind": "string", "what": "binary"})


class Share(Struct, frozen=True):
    """What every worker knows: the case, and how many states a part may have."""

    case: Case
    states: int

    def search_cell(self, cell: Cell) -> Result:
        """Search one part, and name all that was visited and found."""
        search, result = self.searched(_part(cell))
        found = [
            {"kind": it.kind, "detail": it.detail, "example": counterexample(search, it)}
            for it in result.findings
        ]
        summary = {
            "starts": result.starts,
            "states": result.states,
            "local_steps": result.local_steps,
            "thinned": result.thinned,
            "findings": json.dumps(found),
        }
        tables = {"states": _visited(search), "faults": _faults(search)}
        return Result(summary, tables, failed=bool(found))

    def searched(self, part: tuple[int, int]) -> tuple[Search, check.Result]:
        """The search of one part, done."""
        search = self.case.search(part)
        return search, search.run(self.states)

    def replay(self, cell: Cell) -> str:
        """The command that searches this part alone."""
        first, end = _part(cell)
        return f"planaria verify {self.case} --states {self.states} --part {first}:{end}"


class Covered(Struct):
    """What all parts together covered and found, each state and each finding once."""

    result: check.Result
    parts: int
    visited: int  # states, by all parts: those that several reach count for each
    examples: list[dict[str, Any]]  # counterexamples, one for each finding
    errors: list[tuple[str, str]]  # of parts that could not be searched, and how to repeat them


class Spread:
    """A case in so many parts, and the directory in which what they gave is or will be."""

    def __init__(self, share: Share, parts: int, out: str) -> None:
        self.share, self.parts = share, parts
        cells = [_cell(share, part) for part in divided(share.case, parts)]
        work = Work("verify", COLUMNS, share.search_cell, share.replay)
        self.sweep = Sweep(work, cells, out)

    def covered(self, spark: SparkSession) -> Covered:
        """Search the parts that are missing, and join what all of them gave."""
        self.sweep.run(spark)
        rows = self.sweep.rows(spark).orderBy("first").collect()
        done = [row for row in rows if row.error is None]
        found = [it for row in done for it in json.loads(row.findings)]
        counts = self._counts(spark) if found else {}
        findings = [Finding(it["kind"], counts[it["kind"]], it["detail"], []) for it in found]
        result = self._result(spark, done, findings)
        errors = [(row.error, row.replay) for row in rows if row.error is not None]
        visited = sum(row.states for row in done)
        examples = [it["example"] for it in found]
        return Covered(result, len(rows), visited, examples, errors)

    def _counts(self, spark: SparkSession) -> dict[str, int]:
        faults = self._table(spark, "faults", FAULTS).select("kind", "what").distinct()
        return {row["kind"]: row["count"] for row in faults.groupBy("kind").count().collect()}

    def _result(
        self, spark: SparkSession, done: list[Any], findings: list[Finding]
    ) -> check.Result:
        """The result of the whole: every state once, as its best part has it."""
        search = self.share.case.search()
        every = sql.max("legitimate").cast("int").alias("legitimate")
        best = [sql.max(name).alias(name) for name in ("steps", "cut")]
        known = sql.max("expanded").cast("int").alias("expanded")
        states = self._table(spark, "states", STATES).groupBy("state").agg(every, known, *best)
        sums = [sql.sum(name) for name in ("expanded", "steps", "legitimate", "cut")]
        row = states.agg(sql.count("*"), *sums).collect()[0]
        model = search.model
        return check.Result(
            model.name,
            model.n,
            model.covered,
            str(search.schedule),
            dict(model.constants),
            sum(it.starts for it in done),
            row[0],
            row[1] or 0,
            row[2] or 0,
            max((it.local_steps for it in done), default=0),
            row[3] or 0,
            row[4] or 0,
            any(it.thinned for it in done),
            findings,
        )

    def _table(self, spark: SparkSession, name: str, schema: pyarrow.Schema) -> DataFrame:
        return self.sweep.store.table(spark, name, schema)


def divided(case: Case, parts: int) -> list[tuple[int, int]]:
    """The first states in so many runs of neighbours, which reach much that is the same."""
    model = case.search().model
    with constants(model.constants):
        starts = sum(1 for _ in model.firsts())
    if not 1 <= parts <= min(starts, PARTS_MAX):
        raise UsageError(f"{parts} parts of {starts:,} starts: 1 to {min(starts, PARTS_MAX):,}")
    ends = [starts * it // parts for it in range(parts + 1)]
    return list(pairwise(ends))


def _cell(share: Share, part: tuple[int, int]) -> Cell:
    first, end = part
    return Cell({"case": str(share.case), "most": share.states, "first": first, "end": end}, 0)


def _part(cell: Cell) -> tuple[int, int]:
    return int(cell.parameters["first"]), int(cell.parameters["end"])


def _visited(search: Search) -> pyarrow.Table:
    """Every state with what is counted of it."""
    graph, cuts = search.graph, search.graph.cuts
    known = graph.expanded
    steps = [sum(len(it) for _, it in graph.actions(s)) for s in range(known)]
    rest = [0] * (len(graph) - known)
    columns: dict[str, list[Any]] = {
        "state": [graph.space.digest(it) for it in graph.states],
        "legitimate": [not it for it in search.bad],
        "expanded": [s < known for s in range(len(graph))],
        "steps": steps + rest,
        "cut": [*cuts, *rest],
    }
    return pyarrow.table(columns, pyarrow.schema(list(STATES)[1:]))


def _faults(search: Search) -> pyarrow.Table:
    """Everything found, by a name that is the same in every part that finds it."""
    graph = search.graph

    def named(number: int) -> bytes:
        return graph.space.digest(graph.states[number])

    def taken(action: int) -> bytes:
        return check.action_name(graph, action).encode()

    found = [("exception", named(it.state) + taken(it.action)) for it in graph.troubles]
    found += [("safety", named(number)) for number, _ in search.broken]
    found += [("closure", named(s) + named(t) + taken(it)) for s, it, t in search.left]
    found += [("trap", named(it)) for it in search.stuck]
    found += [("livelock", min(map(named, it.states))) for it in search.components]
    columns = {"kind": [it[0] for it in found], "what": [it[1] for it in found]}
    return pyarrow.table(columns, pyarrow.schema(list(FAULTS)[1:]))
