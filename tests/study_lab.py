"""Rows of a study without a sweep: cells run here, one after another."""

from collections.abc import Mapping, Sequence

import pyarrow
from pyspark.sql import DataFrame, SparkSession

from planaria.spark.experiments.study import Experiment, Study
from planaria.spark.grid import Cell
from planaria.spark.sweep import summary_schema


def rows_of(
    spark: SparkSession, study: Study, cells: Mapping[str, Sequence[Cell]]
) -> dict[str, DataFrame]:
    """The rows of these cells of each experiment."""
    found = {}
    for experiment in study.experiments("quick"):
        found[experiment.name] = spark.createDataFrame(
            ran(experiment, study, cells[experiment.name])
        )
    return found


def ran(experiment: Experiment, study: Study, cells: Sequence[Cell]) -> pyarrow.Table:
    """The summary of these cells; each fills every column."""
    work = experiment.work(study.name)
    rows = []
    for cell in cells:
        summary = experiment.run(cell).summary
        assert sorted(summary) == sorted(experiment.columns), experiment.name
        rows.append({"cell": cell.key(work.name), "seed": cell.seed, **cell.parameters, **summary})
    return pyarrow.Table.from_pylist(rows, summary_schema(work, experiment.cells))
