"""One Spark session for all tests of a process: `pytest_plugins = ("spark_session",)`."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from planaria.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", {"spark.driver.memory": "1g"}) as started:
        yield started
