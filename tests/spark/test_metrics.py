"""Figures and checks on the rows of a sweep, against values worked out by hand."""

from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from planaria.core.errors import UsageError
from planaria.spark.checks import complete, errors
from planaria.spark.metrics import means, percentiles, shares

pytest_plugins = ("spark_session",)


def test_means_have_students_interval(spark: SparkSession) -> None:
    """t at 97.5% from a printed table, for 4, 9 and 99 degrees of freedom."""
    data = [("five", float(x)) for x in (1, 2, 3, 4, 5)]
    data += [("ten", float(x % 2)) for x in range(10)]
    data += [("hundred", float(x % 2)) for x in range(100)]
    data += [("one", 7.0)]
    rows = spark.createDataFrame([*data, ("five", None)], "name string, value double")
    expected = []
    for name, n, mean, deviation, t in (
        ("five", 5, 3.0, 1.5811388, 2.776445),
        ("ten", 10, 0.5, 0.5270463, 2.262157),
        ("hundred", 100, 0.5, 0.5025189, 1.984217),
    ):
        margin = t * deviation / n**0.5
        expected.append((name, mean, mean - margin, mean + margin, n))
    expected.append(("one", 7.0, None, None, 1))
    schema = "name string, mean double, low double, high double, runs bigint"
    assertDataFrameEqual(
        means(rows, ["name"], "value"),
        spark.createDataFrame(expected, schema),
        rtol=1e-3,
        ignoreNullable=True,
    )


def test_shares_have_wilsons_interval(spark: SparkSession) -> None:
    """Wilson's values for 0 of 10, 5 of 10 and 10 of 10, from his formula by hand."""
    data = [(f"{k}", x < k) for k in (0, 5, 10) for x in range(10)]
    rows = spark.createDataFrame(data, "hits string, value boolean")
    expected = [
        ("0", 0.0, 0.0, 0.27753, 10),
        ("5", 0.5, 0.23659, 0.76341, 10),
        ("10", 1.0, 0.72247, 1.0, 10),
    ]
    schema = "hits string, share double, low double, high double, runs bigint"
    assertDataFrameEqual(
        shares(rows, ["hits"], "value"),
        spark.createDataFrame(expected, schema),
        atol=1e-4,
        ignoreNullable=True,
    )


def test_percentiles_are_exact(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", x) for x in range(101)] + [("b", 3), ("b", None)], "name string, value bigint"
    )
    schema = "name string, p50 double, p99 double, max bigint, runs bigint"
    assertDataFrameEqual(
        percentiles(rows, ["name"], "value"),
        spark.createDataFrame([("a", 50.0, 99.0, 100, 101), ("b", 3.0, 3.0, 3, 1)], schema),
        ignoreNullable=True,
    )


def test_missing_and_double_cells_are_refused_and_others_left_out(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("a",), ("b",), ("b",), ("c",)], "cell string")
    found = Counter("abbc")
    assert complete(rows, found, ["c", "a"]).count() == 2
    with pytest.raises(UsageError, match=r"2 of 3 cells missing.*\(one: x\)"):
        complete(rows, found, ["a", "y", "x"])
    with pytest.raises(UsageError, match=r"1 of 2 cells duplicated \(one: b\)"):
        complete(rows, found, ["a", "b"])


def test_errors_are_counted_with_a_command_that_repeats_one(spark: SparkSession) -> None:
    data = [(2, "E", "two"), (1, "E", "one"), (3, "F", "three"), (4, None, "four")]
    rows = spark.createDataFrame(data, "seed int, error string, replay string")
    expected = spark.createDataFrame(
        [("E", 2, "one"), ("F", 1, "three")], "error string, cells bigint, replay string"
    )
    assertDataFrameEqual(errors(rows), expected, checkRowOrder=True, ignoreNullable=True)
