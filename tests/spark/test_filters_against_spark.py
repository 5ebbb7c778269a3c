"""Conditions against Spark SQL on the same rows: the same answer or a refusal, never another one.

An attribute has no declared type and a column of Spark has one. So there is a column of each type,
whose name is an attribute's name, and an attribute `x` of mixed kinds: for Spark it is a column for
each kind, with NULL in the rows where `x` is of another one.
"""

from collections.abc import Callable
from math import inf, nan
from random import Random
from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.filters.filters import Filter, matches
from planaria.filters.matching import MatchingIndex
from planaria.filters.sql import parse
from planaria.filters.timestamps import Timestamp, read_timestamp
from planaria.filters.wording import to_sql

pytest_plugins = ("spark_session",)

ROWS = 60
CONDITIONS = 250  # boolean columns of one job
SCHEMA = (
    "i bigint, d double, s string, t bigint, f boolean, n double, u string, m bigint, g boolean"
)
MIXED = {"number": "n", "text": "u", "time": "m", "flag": "g"}  # the columns that `x` is in Spark
COLUMNS = [("i", "number"), *[("d", "number"), ("s", "text")] * 2, ("t", "time"), ("f", "flag")]
WHOLE = [0, 1, -1, 2, 5, 2**53 - 1, 2**53, 2**53 + 1, 10**18 - 1, 2**63 - 1, -(2**63)]
FLOATS = [
    nan, inf, -inf, 0.0, -0.0, 0.1, 0.5, 1.0, 1.5, -1.0, 2.0**53, 2.0**53 + 2, 1e16, 1e20, 5e-324,
]  # fmt: skip
TEXTS = [
    "", "a", "ab", "abc", "b", "A", "O'Brien", 'a"b', "a\\b", "a%b", "a_b", "%", "a\nb", "é",
    "\U0001f600", "\uffff", "1", "true", "NaN", "Ab", "a\\%",
]  # fmt: skip
TIMES = [
    "2013-01-01", "2013-01-01 05:00", "2013-01-01 05:00:00.000001", "2013-01-01T04:59:59.999999",
    "0001-01-01", "9999-12-31 23:59:59.999999", "2013-01-01 06:30:00+01:30",
    "2012-12-31 23:00:00 -0600", "2013-01-01 05:00:00Z",
]  # fmt: skip
NUMERALS = [
    "0", "1", "-1", "2", "5", "1.0", "0.1", "0.5", ".5", "5.", "1.5", "-0.0", "+1", "- 1", "1e0",
    "1E-1", "5e-324", "(1)", "-(1)", "9007199254740991", "9007199254740992", "9007199254740993",
    "9007199254740992.0", "9007199254740993.0", "9.007199254740992E15", "1e16", "1e18", "1e20",
    "1000000000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "0.99999999999999999999", "4503599627370497.25", "1L", "1.5D", "1.5BD", "1e400", "1_0",
]  # fmt: skip
QUOTED = [
    "''", "'a'", "'ab'", "'b'", "'A'", "'O''Brien'", r"'O\'Brien'", '"O\'Brien"', '"a""b"',
    "'a\"b'", "'a\"\"b'", r"'a\\b'", r"'a\b'", r"'a\%'", r"'a\_b'", "'a%b'", "'%'", r"'a\nb'",
    "'a\nb'", r"'\u0061'", r"'\141'", "'é'", "'\U0001f600'", "r'a\\b'", "'a' 'b'", "'a''b'",
    "'1'", "'true'", "x'61'", r"'\d'", r"'\U0001F600'", r"'\0'", r"'\Z'", r"'\b'",
]  # fmt: skip
PATTERNS = [
    "'a%'", "'A%'", "'%'", "''", "'ab'", "'%b'", "'a_'", "'a%%'", r"'a\%%'", r"'a\\%'", "'O''%'",
    "NULL", "'a%' ESCAPE '/'", "ANY ('a%', 'b%')", "'é%'",
]  # fmt: skip
ODD = [
    "x RLIKE 'a'", "s ILIKE 'A%'", "s NOT ILIKE 'a%'", "i <=> 1", "i IS NULL",
    "NOT i IS NOT NULL", "f IS TRUE", "i IS NOT DISTINCT FROM 1", "i IS DISTINCT FROM 1",
    "i = NULL", "i IN (1, NULL)", "i NOT IN (1, NULL)", "i BETWEEN SYMMETRIC 5 AND 1",
    "i NOT BETWEEN SYMMETRIC 5 AND 1", "i + 1 > 2", "lower(s) = 'a'", "i = d", "i = 1 = TRUE",
    "NOT NOT f", "!f", "!i = 1", "NOT i = 1 AND f", "f = TRUE", "f <> TRUE", "f != FALSE",
    "f IN (TRUE, FALSE)", "f > FALSE", "TRUE", "FALSE", "NULL", "NOT NULL", "i == 1", "i != 1",
    "i IN (1, 'a')", "i BETWEEN 1 AND '5'", "i BETWEEN 5 AND 1", "i NOT BETWEEN 5 AND 1",
    "t > DATE '2013-01-01'", "-i = 1", "t > DATE '2013-01-01 05:00:00'",
    "t = CAST('2013-01-01' AS TIMESTAMP)", "t > TIMESTAMP '2013-01-01 Z'",
    "t = TIMESTAMP_NTZ '2013-01-01 05:00:00'", "t = TIMESTAMP_LTZ '2013-01-01 05:00:00'",
    "s || 'b' = 'ab'", "s COLLATE UTF8_LCASE = 'a'", "s = 'a' COLLATE UTF8_LCASE", "i = 1; f",
    "i = 1 /* one */ -- only", "i IN (SELECT 1)", "EXISTS (SELECT 1)",
    "CASE WHEN f THEN TRUE END", "if(f, TRUE, FALSE)", "s LIKE s", "1 = 1", "'a' = 'a'",
    "1 BETWEEN i AND 5", "s IN ('a')", "s NOT IN ('a', 'b')", "NOT s NOT LIKE 'a%'",
]  # fmt: skip


class Pair(NamedTuple):
    """A condition as Planaria reads it and as Spark does."""

    ours: str
    theirs: str


def literal(rng: Random, kind: str) -> str:
    if kind == "number":
        return rng.choice(NUMERALS)
    if kind == "text":
        return rng.choice(QUOTED)
    if kind == "flag":
        return rng.choice(["TRUE", "FALSE"])
    return f"TIMESTAMP '{rng.choice(TIMES)}'"


def comparison(rng: Random) -> Pair:
    """One constraint on an attribute of any kind, in any form."""
    name, kind = rng.choice([*COLUMNS, *(("x", kind) for kind in MIXED)])
    one, two, three = (literal(rng, kind) for _ in range(3))
    sign = rng.choice(["=", "==", "<>", "!=", "<", "<=", ">", ">="])
    negated = rng.choice(["", "NOT "])
    forms = [
        f"@ {sign} {one}",
        f"{one} {sign} @",
        f"@ {negated}IN ({one}, {two}, {three})",
        f"@ {negated}BETWEEN {one} AND {two}",
        "@ IS NOT NULL",
    ]
    if kind == "text":
        forms += [f"@ {negated}LIKE {rng.choice(PATTERNS)}"] * 2
    if kind == "flag":
        forms += ["@", f"@ = {one}"]
    form = rng.choice(forms)
    if name != "x":
        return Pair(form.replace("@", name), form.replace("@", name))
    if form == "@ IS NOT NULL":
        return Pair(
            "x IS NOT NULL",
            f"coalesce({', '.join(f'string({it})' for it in MIXED.values())}) IS NOT NULL",
        )
    return Pair(form.replace("@", "x"), form.replace("@", MIXED[kind]))


def condition(rng: Random, depth: int = 2) -> Pair:
    """Comparisons under AND, OR and NOT."""
    if depth == 0 or rng.random() < 0.3:
        if rng.random() < 0.1:
            odd = rng.choice([it for it in ODD if not it.startswith("x")])
            return Pair(odd, odd)
        return comparison(rng)
    left, right = condition(rng, depth - 1), condition(rng, depth - 1)
    form = rng.choice(
        ["{} AND {}", "{} OR {}", "NOT ({} AND {})", "NOT ({} OR {})", "({} OR {})", "NOT {}"]
    )
    return Pair(form.format(left.ours, right.ours), form.format(left.theirs, right.theirs))


def rows(rng: Random) -> list[tuple[Any, ...]]:
    """Values of every column; of those that are `x` in Spark at most one is not NULL."""
    instants = [read_timestamp(it).microseconds + shift for it in TIMES[:4] for shift in (-1, 0, 1)]
    found = []
    for _ in range(ROWS):
        mixed: list[Any] = [None] * len(MIXED)
        place = rng.randrange(len(MIXED) + 1)
        if place < len(MIXED):
            pools: list[list[Any]] = [FLOATS, TEXTS, instants, [True, False]]
            mixed[place] = rng.choice(pools[place])
        plain = [rng.choice([None, *it]) for it in (WHOLE, FLOATS, TEXTS, instants, [True, False])]
        found.append((*plain, *mixed))
    return found


def attributes(row: tuple[Any, ...]) -> dict[str, Any]:
    """The same row as a notification."""
    i, d, s, t, f, n, u, m, g = row
    given = {"i": i, "d": d, "s": s, "t": _time(t), "f": f}
    given["x"] = next((it for it in (n, u, _time(m), g) if it is not None), None)
    return {name: value for name, value in given.items() if value is not None}


def _time(microseconds: int | None) -> Timestamp | None:
    return None if microseconds is None else Timestamp(microseconds)


def answers(table: DataFrame, conditions: list[Pair]) -> list[list[bool]]:
    """What Spark says of each row; what it cannot read or compute is found by halving."""
    texts = [f"coalesce(({it.theirs}\n), false) AS c{k}" for k, it in enumerate(conditions)]
    try:
        return [list(row) for row in table.selectExpr(*texts).collect()]
    except PySparkException as error:
        if len(conditions) == 1:
            pytest.fail(f"Spark refuses what Planaria accepts: {conditions[0]}: {str(error)[:300]}")
        half = len(conditions) // 2
        for part in (conditions[:half], conditions[half:]):
            answers(table, part)
        raise


def understood(condition: str) -> tuple[Filter, ...] | None:
    """The filters of a condition, none if it is never true; None if it is refused, in one line."""
    try:
        return parse(condition)
    except UsageError as error:
        if "\n" in str(error):
            pytest.fail(f"more than one line: {error}")
        return () if str(error).startswith("never true") else None


def compare(spark: SparkSession, drawn: list[Pair], rng: Random) -> int:
    """How many conditions were understood, and meant the same to Spark in every row."""
    read = [(pair, understood(pair.ours)) for pair in dict.fromkeys(drawn)]
    kept = [(pair, filters) for pair, filters in read if filters is not None]
    data = rows(rng)
    table = spark.createDataFrame(data, SCHEMA)
    table = table.withColumns({it: _instants(spark, it) for it in ("t", "m")}).coalesce(1)
    index = MatchingIndex()
    for number, (_, filters) in enumerate(kept):
        for filter in filters:
            index.add((number, filter), filter)
            assert parse(to_sql(filter)) == (filter,), to_sql(filter)
    said = answers(table, [pair for pair, _ in kept])
    for row, expected in zip(data, said, strict=True):
        given = attributes(row)
        found = {key[0] for key in index.match(given)}  # type: ignore[index]
        for number, ((pair, filters), wanted) in enumerate(zip(kept, expected, strict=True)):
            got = any(matches(filter, given) for filter in filters)
            assert got == wanted == (number in found), (pair, given)
    return len(kept)


def _instants(spark: SparkSession, name: str) -> Any:
    from pyspark.sql import functions as sql

    return sql.timestamp_micros(name)


def test_conditions_mean_what_they_mean_to_spark(
    spark: SparkSession, seeds: Callable[[int, int], int]
) -> None:
    """Drawn from all operators, literals and forms of SQL that people try."""
    for seed in range(seeds(1, 400)):
        rng = stream(seed, "conditions")
        drawn = [condition(rng) for _ in range(CONDITIONS)]
        assert compare(spark, drawn, rng) > CONDITIONS / 4, seed


def test_every_odd_form_is_read_as_spark_reads_it_or_refused(spark: SparkSession) -> None:
    """Each form and each literal by itself, so that none hides behind one that is refused."""
    drawn = [Pair(it, it) for it in ODD]
    drawn += [Pair(f"{name} {sign} {it}", f"{name} {sign} {it}")
              for name in "id" for sign in ("=", "<", ">=") for it in NUMERALS]  # fmt: skip
    drawn += [Pair(f"s {sign} {it}", f"s {sign} {it}") for sign in ("=", ">") for it in QUOTED]
    drawn += [
        Pair(f"s {sign} {it}", f"s {sign} {it}") for sign in ("LIKE", "NOT LIKE") for it in PATTERNS
    ]
    assert compare(spark, drawn, stream(0, "rows")) > len(drawn) / 2
