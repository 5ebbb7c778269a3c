"""What holds for the study of every paper."""

import pytest

from planaria.spark.sweep import summary_schema
from planaria.studies.study import SCALES, STUDIES, find_study


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", STUDIES)
def test_every_scale_runs_the_same_experiments_and_no_cell_twice(name: str, scale: str) -> None:
    study = find_study(name)
    found = study.experiments(scale)
    assert [it.name for it in found] == [it.name for it in study.experiments("quick")]
    for experiment in found:
        keys = [cell.key(experiment.name) for cell in experiment.cells]
        assert keys
        assert len({*keys}) == len(keys)
        assert summary_schema(experiment.work(name), experiment.cells)
