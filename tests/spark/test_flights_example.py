"""`examples/flight_delays.py`: the stream's answer is the batch's while nodes are killed."""

import runpy

import pytest
from pyspark.sql import SparkSession

from process_lab import ROOT

pytest_plugins = ("spark_session",)


def test_the_example_counts_each_flight_once_while_nodes_are_killed(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark.version
    example = runpy.run_path(str(ROOT / "examples" / "flight_delays.py"))
    assert example["main"](240)
    said = capsys.readouterr().out
    assert "240 flights" in said
    assert [line for line in said.splitlines() if line[:4] in ("kill", "brin")] == [
        "kill n1", "bring back n1", "kill n4"
    ]  # fmt: skip
