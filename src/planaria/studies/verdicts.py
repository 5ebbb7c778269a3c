"""Does it hold? Claims, literal readings and checks as tables, computed from facts.

Facts are one row of figures with names, aggregated from the rows of sweeps. A fact that is missing
(no cell gave it) makes nothing hold.
"""

import operator
from collections.abc import Callable, Mapping, Sequence

import pyspark.sql.functions as sql
from msgspec import Struct
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType


class Claim(Struct, frozen=True):
    """What a paper says, and the facts that answer: `measured` by us, `literal` by its text alone.

    `paper` is its number or the name of a fact; `relation` is how a figure must stand to it, with
    `within` as slack in parts of it.
    """

    text: str
    paper: float | str
    relation: str
    measured: str
    literal: str = ""
    within: float = 0.0


ORDERS: Mapping[str, Callable[[Column, Column], Column]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Check(Struct, frozen=True):
    """What Planaria promises: how the fact `measured` must stand to `bound`."""

    text: str
    measured: str
    relation: str
    bound: float | str


def settle(spark: SparkSession, *facts: DataFrame) -> DataFrame:
    """The facts of several sweeps, a row each, in one row; computed once, here and now.

    What nothing is known of, because its simulations raised, is null, and does not hold.
    """
    rows = [frame.first() or (None,) * len(frame.columns) for frame in facts]
    schema = StructType([field for frame in facts for field in frame.schema])
    return spark.createDataFrame([tuple(it for row in rows for it in row)], schema)


def claims(facts: DataFrame, asked: Sequence[Claim]) -> DataFrame:
    """The table of that name: claim, paper, measured, holds."""
    return _rows(
        facts,
        [
            {
                "claim": sql.lit(it.text),
                "paper": _figure(it.paper),
                "measured": _figure(it.measured),
                "holds": _holds(it.measured, it.relation, it.paper, it.within),
            }
            for it in asked
        ],
    )


def literal(facts: DataFrame, asked: Sequence[Claim]) -> DataFrame:
    """The table of that name, of the claims that have a literal reading: claim, literal, holds."""
    return _rows(
        facts,
        [
            {
                "claim": sql.lit(it.text),
                "literal": _figure(it.literal),
                "holds": _holds(it.literal, it.relation, it.paper, it.within),
            }
            for it in asked
            if it.literal
        ],
    )


def checks(facts: DataFrame, asked: Sequence[Check]) -> DataFrame:
    """The table of that name: check, measured, bound, holds."""
    return _rows(
        facts,
        [
            {
                "check": sql.lit(it.text),
                "measured": _figure(it.measured),
                "bound": _figure(it.bound),
                "holds": _holds(it.measured, it.relation, it.bound, 0.0),
            }
            for it in asked
        ],
    )


def _rows(facts: DataFrame, rows: Sequence[dict[str, Column]]) -> DataFrame:
    structs = [sql.struct(*(it.alias(name) for name, it in row.items())) for row in rows]
    return facts.select(sql.explode(sql.array(*structs)).alias("row")).select("row.*")


def _figure(it: float | str) -> Column:
    return (sql.col(it) if isinstance(it, str) else sql.lit(float(it))).cast("double")


def _holds(measured: str, relation: str, bound: float | str, within: float) -> Column:
    one, other = _figure(measured), _figure(bound)
    slack = sql.abs(other) * within
    if relation == "=":
        found = sql.abs(one - other) <= slack
    else:
        found = ORDERS[relation](one, other + slack if relation[0] == "<" else other - slack)
    return sql.coalesce(found, sql.lit(False))
