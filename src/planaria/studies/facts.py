"""From the rows of a sweep to facts: one Spark job sums up the runs, the rest is plain Python.

A sweep is summed up by some of its parameters: of each measure the number of runs, their mean,
deviation, least and most. Such sums add up, so every table and every fact of the study is made of
them, here, without another job.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite, sqrt
from typing import Any

import pyspark.sql.functions as sql
from msgspec import Struct, structs
from pyspark.sql import DataFrame

from planaria.spark.metrics import T_FEW, Z
from planaria.studies.judge import UNKNOWN, Fact, Sized, exactly

RARE = 3.0  # what was not seen in n runs has, at 95%, at most a chance of 3 / n
PERCENTS = (0.5, 0.99)

At = Mapping[str, Any]  # parameters of a cell, with their values


class Summed(Struct, frozen=True):
    """How a sweep is summed up: by which columns, and which measures, as SQL over a row.

    A run whose measure is null gave no figure; `endless` are those of which that is infinity.
    """

    by: Sequence[str]
    measures: Mapping[str, str]
    endless: Sequence[str] = ()
    percentiles: bool = False


def named(*columns: str) -> dict[str, str]:
    """Measures that are columns."""
    return {name: name for name in columns}


class Moments(Struct, frozen=True):
    """One measure of some runs; `lacking` gave none."""

    runs: int = 0
    lacking: int = 0
    mean: float = 0.0
    squares: float = 0.0  # the sum of squared deviations
    least: float = inf
    most: float = -inf
    percentiles: tuple[float, ...] = ()  # of one group alone: they do not add up

    def __add__(self, other: "Moments") -> "Moments":
        runs = self.runs + other.runs
        lacking = self.lacking + other.lacking
        if not self.runs or not other.runs:
            one = self if self.runs else other
            return structs.replace(one, lacking=lacking)
        apart = other.mean - self.mean
        return Moments(
            runs,
            lacking,
            self.mean + apart * other.runs / runs,
            self.squares + other.squares + apart * apart * self.runs * other.runs / runs,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    @property
    def total(self) -> float:
        """The sum over all runs."""
        return self.mean * self.runs

    def over(self, unit: float) -> "Moments":
        """The same measure in parts of `unit`, which must be positive."""
        ends = (self.least / unit, self.most / unit)
        return Moments(self.runs, self.lacking, self.mean / unit, self.squares / unit / unit, *ends)


def moments(values: Iterable[float]) -> Moments:
    """Single figures, one of each run."""
    return sum((Moments(1, 0, it, 0.0, it, it) for it in values), Moments())


Kind = Callable[[Moments], Fact]


class Group(Struct, frozen=True):
    """The runs with the same parameters."""

    at: At
    measures: Mapping[str, Moments]


class Summary:
    """A sweep summed up, or a part of it; `raised` of its cells ended in an exception."""

    def __init__(self, groups: Sequence[Group], raised: int = 0) -> None:
        self.groups, self.raised = groups, raised

    def where(self, **at: Any) -> "Summary":
        """The runs with these parameters; of a list any value will do, or what a function likes."""
        return Summary([it for it in self.groups if all(_is(it.at[k], v) for k, v in at.items())])

    def by(self, *names: str) -> Iterator[tuple[dict[str, Any], "Summary"]]:
        """The runs apart by some parameters, in their order."""
        found: dict[tuple[Any, ...], list[Group]] = {}
        for group in self.groups:
            found.setdefault(tuple(group.at[name] for name in names), []).append(group)
        for key in sorted(found):
            yield dict(zip(names, key, strict=True)), Summary(found[key])

    def __getitem__(self, measure: str) -> Moments:
        """One measure of all these runs together."""
        parts = [it.measures[measure] for it in self.groups if measure in it.measures]
        return sum(parts, Moments()) if len(parts) != 1 else parts[0]

    def sized(self, kind: Kind, measure: str, size: str = "n") -> Sized:
        """A fact for each size."""
        return {at[size]: kind(part[measure]) for at, part in self.by(size)}


def _is(value: Any, wanted: Any) -> bool:
    if callable(wanted):
        return bool(wanted(value))
    return value in wanted if isinstance(wanted, list | tuple) else bool(value == wanted)


Found = Mapping[str, Summary]  # of each experiment of a study


def summed(rows: DataFrame, wanted: Summed) -> Summary:
    """Sum up the rows of a sweep in one job; those that raised an exception are only counted."""
    each = [
        sql.struct(sql.lit(name).alias("measure"), sql.expr(text).cast("double").alias("value"))
        for name, text in wanted.measures.items()
    ]
    raised = sql.expr("error is not null" if "error" in rows.columns else "false")
    long = rows.select(*wanted.by, raised.alias("raised"), sql.inline(sql.array(*each)))
    fine = ~sql.col("raised")
    value = sql.when(fine, sql.col("value"))
    columns = {
        "runs": sql.count(value),
        "lacking": sql.count_if(fine & value.isNull()),
        "raised": sql.count_if("raised"),
        "mean": sql.avg(value),
        "squares": sql.var_pop(value) * sql.count(value),
        "least": sql.min(value),
        "most": sql.max(value),
    }
    if wanted.percentiles:
        shares = sql.array(*map(sql.lit, PERCENTS))
        columns["percentiles"] = sql.percentile(value, shares)
    found = long.groupBy(*wanted.by, "measure").agg(*(it.alias(k) for k, it in columns.items()))
    return gathered(found.toArrow().to_pylist(), wanted)


def gathered(sums: Sequence[Mapping[str, Any]], wanted: Summed) -> Summary:
    """The rows of sums as a summary."""
    groups: dict[tuple[Any, ...], dict[str, Moments]] = {}
    first = next(iter(wanted.measures))
    raised = sum(row["raised"] for row in sums if row["measure"] == first)
    for row in sums:
        if row["runs"] or row["lacking"]:  # else all of its cells raised
            place = tuple(row[name] for name in wanted.by)
            groups.setdefault(place, {})[row["measure"]] = _moments(row, wanted)
    them = [Group(dict(zip(wanted.by, at, strict=True)), it) for at, it in groups.items()]
    return Summary(them, raised)


def _moments(row: Mapping[str, Any], wanted: Summed) -> Moments:
    if row["lacking"] and row["measure"] in wanted.endless:
        return Moments(row["runs"] + row["lacking"], 0, inf, inf, row["least"] or 0.0, inf)
    if not row["runs"]:
        return Moments(lacking=row["lacking"])
    names = ("runs", "lacking", "mean", "squares", "least", "most")
    found = {name: row[name] for name in names}
    return Moments(**found, percentiles=tuple(row.get("percentiles") or ()))


# Kinds of facts


def exact(found: Moments) -> Fact:
    """What is the same in every run, without error; the mean if it is not after all."""
    return exactly(found.mean, found.runs) if found.runs else UNKNOWN


def most(found: Moments) -> Fact:
    """The largest of all runs."""
    return exactly(found.most, found.runs) if found.runs else UNKNOWN


def least(found: Moments) -> Fact:
    """The smallest of all runs."""
    return exactly(found.least, found.runs) if found.runs else UNKNOWN


def total(found: Moments) -> Fact:
    """The sum over all runs."""
    return exactly(found.total, found.runs) if found.runs else UNKNOWN


def mean(found: Moments) -> Fact:
    """The mean with Student's interval; runs that are all alike leave it as wide as 3 / n."""
    if not found.runs:
        return UNKNOWN
    if not isfinite(found.mean):
        return exactly(inf, found.runs)
    if found.runs == 1:
        return Fact(found.mean, runs=1)
    error = sqrt(found.squares / (found.runs - 1) / found.runs)
    margin = student(found.runs - 1) * error
    if found.least == found.most:
        margin = RARE / found.runs * max(1.0, abs(found.mean))
    return Fact(found.mean, found.mean - margin, found.mean + margin, found.runs)


def fraction(found: Moments) -> Fact:
    """The mean of parts of a whole: as `mean`, within 0 and 1."""
    it = mean(found)
    if it.low is None or it.high is None:
        return it
    return Fact(it.value, max(0.0, it.low), min(1.0, it.high), it.runs)


def share(found: Moments) -> Fact:
    """The share of runs in which something is true, with Wilson's interval."""
    if not found.runs:
        return UNKNOWN
    n, p, square = found.runs, found.mean, Z * Z
    centre = (p + square / (2 * n)) / (1 + square / n)
    margin = Z / (1 + square / n) * sqrt(p * (1 - p) / n + square / (4 * n * n))
    low = 0.0 if p == 0 else max(0.0, centre - margin)
    high = 1.0 if p == 1 else min(1.0, centre + margin)
    return Fact(p, low, high, n)


def student(freedom: int) -> float:
    """Student's t at 97.5%: Cornish and Fisher's expansion, exact values where there are few."""
    if freedom in T_FEW:
        return T_FEW[freedom]
    z, v = Z, float(freedom)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )


def row_of(fact: Fact, name: str = "mean") -> dict[str, float | int | None]:
    """A fact as columns of a table."""
    return {name: fact.value, "low": fact.low, "high": fact.high, "runs": fact.runs}


def scaled(fact: Fact, factor: float) -> Fact:
    """A fact in other units."""
    ends = (fact.value, fact.low, fact.high)
    value, low, high = (None if end is None else end * factor for end in ends)
    return Fact(value, low, high, fact.runs)


def ratio(one: Fact, other: Fact) -> Fact:
    """One fact in parts of another, which must be positive; errors add up."""
    ends = (one.low, one.high, other.low, other.high)
    if one.value is None or not other.value or any(end is None for end in ends):
        return UNKNOWN
    low, high, least, most = (float(end or 0.0) for end in ends)
    wide = sqrt((high - low) ** 2 + (one.value / other.value * (most - least)) ** 2)
    margin = wide / 2 / other.value
    value = one.value / other.value
    return Fact(value, value - margin, value + margin, min(one.runs, other.runs))
