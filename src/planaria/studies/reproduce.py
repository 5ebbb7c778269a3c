"""Runs studies of the papers on Spark and writes their tables, figures and one report.

DIR/report.html             everything, in one file
DIR/PAPER/TABLE.parquet     and TABLE.csv: the tables
DIR/PAPER/FIGURE.svg        the figures
DIR/sweeps/PAPER-NAME/      the rows of every simulation, from which all of it is made
"""

import io
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow
from msgspec import Struct
from pyarrow import csv
from pyspark.sql import SparkSession

from planaria.core.errors import UsageError, unknown
from planaria.spark.checks import raised_in
from planaria.spark.progress import Bars
from planaria.spark.store import Store, code_version
from planaria.spark.sweep import Result, Sweep, progress_line
from planaria.spark.watch import Parts, watched
from planaria.studies.facts import Summary, summed
from planaria.studies.report import Page, report
from planaria.studies.study import SCALES, Experiment, Study, find_study, made

REPORT = "report.html"
SWEEPS_AT_ONCE = 2  # where one ends, cores have nothing to do: they begin with the next
Sums = tuple[Summary, list[dict[str, Any]]]  # of one sweep, and what its simulations raised


class Verdict(Struct, frozen=True):
    """How a reproduction ended: the papers' claims, Planaria's own checks, and errors."""

    claims: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    report: str

    @property
    def good(self) -> bool:
        """Do all of Planaria's own checks hold? A claim that does not is no failure."""
        return not self.errors and all(check["holds"] == "yes" for check in self.checks)


class Reproduction:
    """Some studies at one scale, and the directory or URL in which their results are or will be."""

    def __init__(self, studies: Sequence[Study], scale: str, out: str) -> None:
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        self.studies, self.scale = studies, scale
        self.version = version_of(studies, scale)
        self.store = Store(out)
        self.store.claim("reproduce", self.version)
        self.experiments = {study.name: study.experiments(scale) for study in studies}
        self.sweeps = {
            name: {it.name: self._sweep(name, it) for it in them}
            for name, them in self.experiments.items()
        }

    def run(self, spark: SparkSession) -> Verdict:
        """Run what is missing, then rewrite all tables, figures and the report."""
        sweeps = [sweep for sweeps in self.sweeps.values() for sweep in sweeps.values()]
        ended = partial(self._verdict, spark)
        return watched(spark, "reproduce", ended, lambda: progress_line(sweeps, self.store))

    def _verdict(self, spark: SparkSession) -> Verdict:
        pages = self._pages(spark)
        self.store.write(REPORT, report(pages, self.scale, self.version).encode())

        def gathered(name: str) -> list[dict[str, Any]]:
            return [
                {"study": page.study.name, **row} for page in pages for row in page.tables[name]
            ]

        raised = [dict(error) for page in pages for error in page.errors]
        place = f"{self.store.shown}/{REPORT}"
        return Verdict(gathered("claims"), gathered("checks"), raised, place)

    def _pages(self, spark: SparkSession) -> list[Page]:
        """A sweep is summed up, and a page is made, while the next sweeps run."""
        with (
            Bars() as bars,
            ThreadPoolExecutor(SWEEPS_AT_ONCE) as running,
            ThreadPoolExecutor(1) as beside,
            Parts(spark) as parts,
        ):
            pages = []
            for study in self.studies:
                sums = {}
                for it in self.experiments[study.name]:
                    sweep = self.sweeps[study.name][it.name]
                    ran = parts.give(running, sweep.run, spark, bars)
                    sums[it.name] = parts.give(beside, _sums, spark, sweep, it, ran)
                pages.append(parts.give(beside, self._page, study, sums))
        return [it.result() for it in pages]

    def _sweep(self, study: str, experiment: Experiment) -> Sweep:
        work = experiment.work(study)
        place = self.store.below(f"sweeps/{work.name}")
        return Sweep(work, experiment.cells, place, share=experiment.share)

    def _page(self, study: Study, sums: Mapping[str, Future[Sums]]) -> Page:
        """The page of a study that has been summed up; writes its tables and figures."""
        found = {name: it.result()[0] for name, it in sums.items()}
        raised = [error for it in sums.values() for error in it.result()[1]]
        tables = made(study, found)
        for name, table in tables.items():
            self._write(f"{study.name}/{name}", table)
        read = {name: table.to_pylist() for name, table in tables.items()}
        figures = study.figures(read)
        for name, svg in figures.items():
            self.store.write(f"{study.name}/{name}.svg", svg.encode())
        return Page(study, read, figures, raised)

    def _write(self, name: str, table: pyarrow.Table) -> None:
        self.store.write(f"{name}.parquet", table)
        sink = io.BytesIO()
        csv.write_csv(table, sink)
        self.store.write(f"{name}.csv", sink.getvalue())


def _sums(spark: SparkSession, sweep: Sweep, experiment: Experiment, ran: Future[int]) -> Sums:
    ran.result()
    rows = sweep.rows(spark)
    found = summed(rows, experiment.summed)
    raised = raised_in(sweep.work.name, rows, len(sweep.cells)) if found.raised else []
    return found, raised


def version_of(studies: Sequence[Study], scale: str) -> str:
    """The version of all that decides what the simulations of these studies give."""
    runs = [it.run.__module__ for study in studies for it in study.experiments(scale)]
    return code_version(modules=dict.fromkeys(runs))


def one_cell(studies: Sequence[Study], key: str) -> Result:
    """Repeat one cell, alone and here, whatever its scale."""
    for study in studies:
        for scale in SCALES:
            for experiment in study.experiments(scale):
                name = experiment.work(study.name).name
                for cell in experiment.cells:
                    if cell.key(name) == key:
                        return experiment.run(cell)
    raise UsageError(f"unknown cell {key!r} of {', '.join(study.name for study in studies)}")


def chosen(names: Sequence[str]) -> list[Study]:
    """The studies of these names, each once."""
    return [find_study(name) for name in dict.fromkeys(names)]
