"""A study without a sweep: cells run here, one after another, and what is made of their rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow
from pyspark.sql import DataFrame, SparkSession

from planaria.spark.grid import Cell
from planaria.spark.sweep import summary_schema
from planaria.studies import study as studies
from planaria.studies.facts import Found, Summary, Summed, summed
from planaria.studies.report import Page, body
from planaria.studies.study import Experiment, Study, Tables

Rows = Mapping[str, DataFrame]


def rows_of(
    spark: SparkSession, study: Study, cells: Mapping[str, Sequence[Cell]]
) -> dict[str, DataFrame]:
    """The rows of these cells of each experiment."""
    experiments = study.experiments("quick")
    return {
        it.name: spark.createDataFrame(ran(it, study, cells[it.name])).cache() for it in experiments
    }


def found_in(study: Study, rows: Rows, scale: str = "quick") -> dict[str, Summary]:
    """Rows of each experiment summed up, as a reproduction does it."""
    return {it.name: summed(rows[it.name], it.summed) for it in study.experiments(scale)}


def made(study: Study, found: Found) -> dict[str, list[dict[str, Any]]]:
    """All tables of the study; each has just the columns that it promises."""
    return {name: table.to_pylist() for name, table in studies.made(study, found).items()}


def page(study: Study, tables: Tables) -> str:
    """The study's page, figures and all."""
    return str(body(Page(study, tables, study.figures(tables), [])))


def summary(
    spark: SparkSession, data: Sequence[tuple[Any, ...]], schema: str, wanted: Summed
) -> Summary:
    """Rows written down, summed up."""
    return summed(spark.createDataFrame(data, schema), wanted)


def ran(experiment: Experiment, study: Study, cells: Sequence[Cell]) -> pyarrow.Table:
    """The summary of these cells; each fills every column."""
    work = experiment.work(study.name)
    rows = []
    for cell in cells:
        found = experiment.run(cell).summary
        assert sorted(found) == sorted(experiment.columns), experiment.name
        rows.append({"cell": cell.key(work.name), "seed": cell.seed, **cell.parameters, **found})
    return pyarrow.Table.from_pylist(rows, summary_schema(work, experiment.cells))
