"""One Spark session for all tests of a run: `pytest_plugins = ("spark_session",)`."""

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from planaria.spark.sessions import LABORATORY, session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[SparkSession]:
    if worker_id != "master":  # of several workers only one may need Java
        (tmp_path_factory.getbasetemp().parent / "spark").mkdir()
    with session("local[2]", {**LABORATORY, "spark.driver.memory": "1g"}) as started:
        yield started


@pytest.fixture
def plain_ctrl_c() -> Iterator[None]:
    """Without PySpark's handler, which cancels all jobs of the session, whosesoever they are."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
