"""Runs summed up: moments that add up, and intervals that say neither too much nor too little."""

from math import inf, isclose
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from pyspark.sql import SparkSession

from planaria.studies.facts import (
    Moments,
    Summed,
    exact,
    fraction,
    least,
    mean,
    most,
    ratio,
    scaled,
    share,
    student,
    summed,
    total,
)
from planaria.studies.judge import Fact, exactly

pytest_plugins = ("spark_session",)


def moments(values: list[float]) -> Moments:
    """By the definition."""
    middle = fmean(values)
    squares = sum((it - middle) ** 2 for it in values)
    return Moments(len(values), 0, middle, squares, min(values), max(values))


floats = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20)


@given(floats, floats)
def test_moments_of_parts_add_up_to_those_of_the_whole(
    one: list[float], other: list[float]
) -> None:
    found, wanted = moments(one) + moments(other), moments(one + other)
    assert (found.runs, found.least, found.most) == (wanted.runs, wanted.least, wanted.most)
    assert isclose(found.mean, wanted.mean, abs_tol=1e-6)
    assert isclose(found.squares, wanted.squares, rel_tol=1e-6, abs_tol=1e-3)
    assert moments(one) + Moments(lacking=2) == structs.replace(moments(one), lacking=2)


@pytest.mark.parametrize(("n", "t"), [(5, 2.776445), (10, 2.262157), (100, 1.984217)])
def test_a_mean_has_students_interval(n: int, t: float) -> None:
    """t at 97.5% from a printed table."""
    rng = Random(n)
    values = [rng.random() for _ in range(n)]
    margin = t * stdev(values) / n**0.5
    found = mean(moments(values))
    assert found.low == pytest.approx(fmean(values) - margin, rel=1e-3)
    assert found.high == pytest.approx(fmean(values) + margin, rel=1e-3)
    assert student(n - 1) == pytest.approx(t, rel=1e-3)


@pytest.mark.parametrize(("hits", "low", "high"), [(0, 0.0, 0.27753), (5, 0.23659, 0.76341),
                                                   (10, 0.72247, 1.0)])  # fmt: skip
def test_a_share_has_wilsons_interval(hits: int, low: float, high: float) -> None:
    """Wilson's values for 0, 5 and 10 of 10, from his formula by hand."""
    found = share(Moments(10, 0, hits / 10))
    assert (found.value, found.runs) == (hits / 10, 10)
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_intervals_of_fractions_stay_within_0_and_1_and_are_never_empty(
    values: list[float],
) -> None:
    for found in (fraction(moments(values)), share(moments([float(it > 0.5) for it in values]))):
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.high <= 1
        assert found.low < found.high


def test_runs_that_are_all_alike_leave_room_and_one_run_has_no_interval() -> None:
    assert mean(moments([4.0] * 6)) == Fact(4.0, 2.0, 6.0, 6)
    assert mean(moments([4.0])) == Fact(4.0, runs=1)
    assert mean(Moments(3, 0, inf, inf, 1.0, inf)) == exactly(inf, 3)
    for kind in (exact, most, least, total, mean, fraction, share):
        assert kind(Moments(lacking=4)) == Fact()


def test_facts_in_other_units_and_beside_each_other() -> None:
    one, other = Fact(6.0, 5.0, 7.0, 9), Fact(2.0, 1.0, 3.0, 4)
    assert scaled(one, 0.5) == Fact(3.0, 2.5, 3.5, 9)
    found = ratio(one, other)
    assert found.value == 3.0
    assert found.low == pytest.approx(3 - (1 + 9) ** 0.5 / 2)
    assert ratio(one, Fact()) == Fact()


def test_rows_are_summed_up_by_parameters_without_those_that_raised(spark: SparkSession) -> None:
    data = [
        ("a", 4, 1.0, True, None), ("a", 4, 3.0, False, None), ("a", 8, 5.0, True, None),
        ("b", 4, None, True, None), ("b", 4, 2.0, True, None), ("b", 8, 9.0, True, "KeyError"),
    ]  # fmt: skip
    schema = "who string, n int, cost double, good boolean, error string"
    wanted = Summed(("who", "n"), {"cost": "2 * cost", "good": "good", "ends": "cost"}, ("ends",))
    found = summed(spark.createDataFrame(data, schema), wanted)
    assert [at for at, _ in found.by("who", "n")] == [
        {"who": "a", "n": 4}, {"who": "a", "n": 8}, {"who": "b", "n": 4},
    ]  # fmt: skip
    cost = found.where(who="a")["cost"]
    assert (cost.runs, cost.mean, cost.least, cost.most, cost.total) == (3, 6.0, 2.0, 10.0, 18.0)
    assert cost.squares == pytest.approx(32.0)
    assert found.where(who="b")["cost"].lacking == 1
    assert most(found.where(who="b")["ends"]) == exactly(inf, 2)
    assert share(found.where(n=[4])["good"]).value == 0.75
    assert found.raised == 1
    assert found.where(n=lambda n: n > 9)["cost"] == Moments()
    sizes = found.where(who="a").sized(exact, "cost")
    assert {n: fact.value for n, fact in sizes.items()} == {4: 4.0, 8: 10.0}


def test_percentiles_are_exact(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("a", x) for x in range(101)], "name string, value bigint")
    found = summed(rows, Summed(("name",), {"value": "value"}, percentiles=True))
    assert found["value"].percentiles == (50.0, 99.0)
