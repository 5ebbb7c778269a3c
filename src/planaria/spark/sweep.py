"""Sweeps: every cell of an experiment once, as Spark tasks that can be interrupted and resumed.

A task runs a batch of cells in one worker, writes their results itself (a batch write of Spark is
all or nothing: one failing task would lose every finished simulation) and reports one row. Nothing
of Spark reaches a simulation, so a cell gives the same bytes in a worker and in any other process.
"""

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
from msgspec import Struct, field
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from planaria.core.errors import UsageError
from planaria.core.ids import stable_hash
from planaria.spark.checks import complete
from planaria.spark.grid import Cell
from planaria.spark.progress import Bars, Meter
from planaria.spark.store import SUMMARY, Store, code_version
from planaria.spark.watch import WorkerDied, watched

BATCHES_PER_CORE = 8  # at least, if there are cells enough: an even load, and progress to be seen
_ARROW = {bool: "bool", int: "int64", float: "float64", str: "string"}


class Result(Struct):
    """What one cell gave: a row of the summary, tables, and whether it counts as a failure."""

    summary: dict[str, Any]
    tables: dict[str, pyarrow.Table] = field(default_factory=dict)
    failed: bool = False


class Work(Struct, frozen=True):
    """What a worker needs to know of an experiment."""

    name: str
    columns: Mapping[str, str]  # of the summary, with their Arrow types
    run: Callable[[Cell], Result]
    replay: Callable[[Cell], str]  # the command that repeats a cell
    modules: tuple[str, ...] = ()  # that `run` finds by their names

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that decide, with all that they import, what a cell gives."""
        return getattr(self.run, "func", self.run).__module__, *self.modules


class Report(Struct, frozen=True):
    """The row that a task returns."""

    batch: str
    cells: int
    failed: int


class Sweep:
    """An experiment's cells, and the directory in which their results are or will be.

    `share` is how many cells may share a task: as many as run in a few seconds. `sources` are
    files, beyond this package, that decide what a cell gives.
    """

    def __init__(
        self,
        work: Work,
        cells: Sequence[Cell],
        out: str,
        *,
        share: int = 1,
        sources: Sequence[Path] = (),
    ) -> None:
        self.work, self.share, self.store = work, share, Store(out)
        self.cells = {cell.key(work.name): cell for cell in cells}
        if len(self.cells) < len(cells):
            raise UsageError(f"{work.name}: {len(cells) - len(self.cells)} cells occur twice")
        self.schema = summary_schema(work, cells)
        self.rate = 0.0  # cells a minute, of the last run
        self.store.claim(work.name, code_version(sources, work.imports))

    def missing(self) -> list[str]:
        """The cells that have no result yet."""
        done = self._done()
        return [key for key in self.cells if key not in done]

    def alone(self, key: str) -> Result:
        """Repeat one cell, here, without writing its results or catching its exceptions."""
        if key not in self.cells:
            raise UsageError(f"{self.work.name} has no cell {key!r}")
        return self.work.run(self.cells[key])

    def run(self, spark: SparkSession, bars: Bars | None = None) -> int:
        """Run what is missing and return how many cells that were.

        `bars` are those of all sweeps that run at once, if several do.
        """
        if bars is None:
            with Bars() as ours:
                return self.run(spark, ours)
        todo = first = self.missing()
        while todo:
            marked = self.store.marked()
            batches = self._batches(todo, spark.sparkContext.defaultParallelism)
            before = len(self.cells) - len(todo)
            with Meter(self.work.name, len(self.cells), before, bars) as meter:
                try:
                    self._act(spark, batches, meter)
                except WorkerDied:
                    if self.store.marked() == marked:
                        raise
                self.rate = meter.per_minute(len(todo))
            todo = self.missing()  # nothing, unless two cells of one batch kill their workers
        return len(first)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The summary of all cells, after the data was found to be complete and without doubles.

        Every action reads it anew: whoever has several caches it.
        """
        table = self.store.table(spark, SUMMARY, self.schema)
        return complete(table, self._done(), list(self.cells))

    def _done(self) -> Counter[str]:
        """How often each cell has a result."""
        batches = self.store.batches()
        return Counter(key for it in batches for key in self.store.column(it, "cell"))

    def _batches(self, todo: Sequence[str], cores: int) -> list[list[Cell]]:
        size = max(1, min(self.share, -(-len(todo) // (BATCHES_PER_CORE * cores))))
        cells = [self.cells[key] for key in todo]
        return [cells[first : first + size] for first in range(0, len(cells), size)]

    def _act(self, spark: SparkSession, batches: list[list[Cell]], meter: Meter) -> None:
        context = spark.sparkContext
        done, failed = context.accumulator(0), context.accumulator(0)
        work, store = self.work, self.store

        def task(parts: Iterable[list[Cell]]) -> Iterator[Report]:
            context = TaskContext.get()
            for part in parts:
                report = run_batch(work, store, part, context.attemptNumber() if context else 0)
                done.add(report.cells)
                failed.add(report.failed)
                yield report

        watched(
            spark,
            work.name,
            lambda: context.parallelize(batches, len(batches)).mapPartitions(task).collect(),
            lambda: progress_line([self], store),
            lambda: meter.show(done.value, failed.value),
        )


def progress_line(sweeps: Iterable[Sweep], store: Store) -> str:
    """Progress of `sweeps`, in one line."""
    left = cells = 0
    for sweep in sweeps:
        left += len(sweep.missing())
        cells += len(sweep.cells)
    done = f"{cells - left:,} of {cells:,} simulations are done in {store.shown}"
    return f"{done}; run it again to resume"


def run_batch(work: Work, store: Store, cells: Sequence[Cell], attempt: int = 0) -> Report:
    """Run cells one after another and write what they gave; the same cells, the same files.

    In the second attempt, as the first worker died, each cell is marked while it runs; in the
    third, a cell that is still marked killed the second worker, and gets an error for a result.
    """
    killers = store.marked() if attempt > 1 else []
    rows: list[dict[str, Any]] = []
    tables: dict[str, list[pyarrow.Table]] = {}
    failed = 0
    for cell in cells:
        row, result = _run_marked(work, store, cell, killers) if attempt else _run_cell(work, cell)
        rows.append(row)
        failed += result is None or result.failed
        for name, table in (result.tables if result else {}).items():
            key = pyarrow.array([row["cell"]] * len(table), "string")
            tables.setdefault(name, []).append(table.add_column(0, "cell", key))
    batch = batch_file([row["cell"] for row in rows])
    for name, pieces in tables.items():
        store.write(f"{name}/{batch}", pyarrow.concat_tables(pieces))
    schema = summary_schema(work, cells)
    store.write(f"{SUMMARY}/{batch}", pyarrow.Table.from_pylist(rows, schema))
    for row in rows:
        if row["cell"] in killers:
            store.unmark(row["cell"])
    return Report(batch, len(cells), failed)


def batch_file(cells: Sequence[str]) -> str:
    """The name of the file, in the directory of each table, with what these cells gave."""
    return f"{stable_hash(*cells, bits=64):016x}.parquet"


def summary_schema(work: Work, cells: Sequence[Cell]) -> pyarrow.Schema:
    """The columns of a summary: the cell, its parameters, its results, and what went wrong."""
    if not cells:
        raise UsageError(f"{work.name}: a sweep needs at least one cell")
    parameters = {name: _ARROW[type(it)] for name, it in cells[0].parameters.items()}
    ours = ("cell", "seed", "error", "replay")
    twice = [name for name in work.columns if name in parameters or name in ours]
    twice += [name for name in parameters if name in ours]
    if twice:
        raise UsageError(f"{work.name}: {twice[0]} is the name of two columns")
    columns = {"cell": "string", "seed": "int64", **parameters, **work.columns}
    return pyarrow.schema([*columns.items(), ("error", "string"), ("replay", "string")])


def _run_marked(
    work: Work, store: Store, cell: Cell, killers: Sequence[str]
) -> tuple[dict[str, Any], Result | None]:
    """A simulation that kills its worker is a result too."""
    row = _cell_row(work, cell)
    if row["cell"] in killers:
        return row | {"error": "the worker died", "replay": work.replay(cell)}, None
    store.mark(row["cell"])
    found = _run_cell(work, cell)
    store.unmark(row["cell"])
    return found


def _cell_row(work: Work, cell: Cell) -> dict[str, Any]:
    return {"cell": cell.key(work.name), "seed": cell.seed, **cell.parameters}


def _run_cell(work: Work, cell: Cell) -> tuple[dict[str, Any], Result | None]:
    """A simulation that raises is a result too: it would raise again, so the sweep goes on."""
    row = _cell_row(work, cell)
    try:
        result = work.run(cell)
        row |= {name: result.summary[name] for name in work.columns}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        text = f"{type(error).__name__}: {error} in {where}"
        return row | {"error": text, "replay": work.replay(cell)}, None
    return row | {"replay": work.replay(cell)}, result
