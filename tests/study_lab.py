"""A study without a sweep: cells run here, one after another, and the tables made of their rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow
from pyspark.sql import DataFrame, SparkSession

from planaria.spark.grid import Cell
from planaria.spark.sweep import summary_schema
from planaria.studies.study import Experiment, Study


def rows_of(
    spark: SparkSession, study: Study, cells: Mapping[str, Sequence[Cell]]
) -> dict[str, DataFrame]:
    """The rows of these cells of each experiment."""
    experiments = study.experiments("quick")
    return {
        it.name: spark.createDataFrame(ran(it, study, cells[it.name])).cache() for it in experiments
    }


def made(
    spark: SparkSession, study: Study, rows: Mapping[str, DataFrame]
) -> dict[str, list[dict[str, Any]]]:
    """All tables of the study; each has just the columns that it promises."""
    tables = study.tables(spark, rows)
    for name, table in tables.items():
        assert tuple(table.columns) == tuple(study.promised[name]), name
    return {name: table.toArrow().to_pylist() for name, table in tables.items()}


def ran(experiment: Experiment, study: Study, cells: Sequence[Cell]) -> pyarrow.Table:
    """The summary of these cells; each fills every column."""
    work = experiment.work(study.name)
    rows = []
    for cell in cells:
        summary = experiment.run(cell).summary
        assert sorted(summary) == sorted(experiment.columns), experiment.name
        rows.append({"cell": cell.key(work.name), "seed": cell.seed, **cell.parameters, **summary})
    return pyarrow.Table.from_pylist(rows, summary_schema(work, experiment.cells))
