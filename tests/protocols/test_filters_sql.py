"""Conditions as people write them: what they become, and one clear line for what they cannot be."""

import json
import re
from datetime import UTC, datetime
from functools import reduce
from math import nan
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.filters.filters import Filter, conjunction, is_well_formed, matches
from planaria.filters.grammar import CONDITION_BYTES_MAX, UNDERSTOOD, read
from planaria.filters.matching import MatchingIndex
from planaria.filters.ranges import TIMESTAMP_END, TIMESTAMP_MIN
from planaria.filters.sql import parse
from planaria.filters.timestamps import Timestamp, read_timestamp, written
from planaria.filters.values import ANYTHING, Values, either, number, point
from planaria.filters.wording import keywords, to_sql

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("ab\\%_'\"`\0\n"), max_size=4)
NAMES = st.sampled_from(sorted(keywords())) | TEXTS
NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(number) | st.integers(-9, 9)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "strings": TEXTS,
    "numbers": NUMBERS,
    "timestamps": st.integers(TIMESTAMP_MIN, TIMESTAMP_END - 1).map(Timestamp),
    "booleans": st.booleans(),
}


@st.composite
def ranges(draw: st.DrawFn) -> Values:
    """The values of one kind from or after one value to before or after another one."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    ends = [draw(st.sampled_from(getattr(point(draw(KINDS[kind])), kind)[0])) for _ in range(2)]
    everything = getattr(ANYTHING, kind)[0]
    pairs = zip(sorted(ends), everything, strict=True)
    low, high = (draw(st.sampled_from([it, it, end])) for it, end in pairs)
    return structs.replace(Values(), **{kind: ((low, high),) if low < high else ()})


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Any filter: unions of ranges of all kinds, under any names."""
    found = conjunction(
        (name, reduce(either, draw(st.lists(ranges(), min_size=1, max_size=4))))
        for name in draw(st.lists(NAMES.filter(lambda it: it not in ("", "topic")), max_size=3))
    )
    assume(found is not None)
    assert found is not None
    assert is_well_formed(found)
    return found


@pytest.mark.parametrize(
    ("condition", "canonical"),
    [
        ("price > 10 AND symbol IN ('A','B')", ["price > 10 AND symbol IN ('A', 'B')"]),
        ("10 < price", ["price > 10"]),
        ("NOT (a = 1 OR b)", ["(a < 1 OR a > 1) AND NOT b"]),
        ("a = 1 OR a = 2 AND b", ["a = 1", "a = 2 AND b"]),
        ("a > 1 OR a > 2", ["a > 1"]),
        ("x BETWEEN -1 AND 2.5", ["x >= -1 AND x <= 2.5"]),
        ("x NOT BETWEEN 1 AND 2", ["(x < 1 OR x > 2)"]),
        ("x IN (2, 1, 1.0) AND x <> 2", ["x = 1"]),
        ("name LIKE 'ab%' AND name LIKE 'abc%'", ["name LIKE 'abc%'"]),
        ("name LIKE 'ab'", ["name = 'ab'"]),
        ("name NOT LIKE 'A%'", ["(name < 'A' OR name >= 'B')"]),
        ("NOT name NOT LIKE 'A%'", ["name LIKE 'A%'"]),
        ("name = 'O''Brien'", [r"name = 'O\'Brien'"]),
        ('name = "a""b"', ["name = 'a\"b'"]),
        (r"name = 'a\nb\\'", [r"name = 'a\u000ab\\'"]),
        ("a = 1 OR a = 2 OR a > 5", ["(a IN (1, 2) OR a > 5)"]),
        ("x = 1 OR x = 'a' OR x", ["(x = 1 OR x = 'a' OR x)"]),
        ("x = (1) AND y = -(2)", ["x = 1 AND y = -2"]),
        ("x < 1e20 AND y = 10000000000000000.0", ["x < 1e+20 AND y = 10000000000000000"]),
        ("set = 1 AND `order` = 2 AND `if`", ["`if` AND order = 2 AND `set` = 1"]),
        ("x = 1 -- a comment", ["x = 1"]),
        ("name > 'a' AND name <= 'b'", ["name > 'a' AND name <= 'b'"]),
        ("x IS NOT NULL AND x = 1", ["x = 1"]),
        ("flag", ["flag"]),
        ("flag = FALSE", ["NOT flag"]),
        ("flag <> TRUE", ["NOT flag"]),
        ("t = TIMESTAMP '2013-01-31 05:00:00'", ["t = TIMESTAMP '2013-01-31 05:00:00'"]),
        ("t >= DATE '2013-01-31' AND t < TIMESTAMP '2013-01-31 00:00:00.000001Z'",
         ["t = TIMESTAMP '2013-01-31'"]),
        ("topic IN ('a', 'a/+/>')", ["topic = 'a/#'"]),
        ("topic = 'a/#' AND topic = '+/b'", ["topic = 'a/b'"]),
        ("`odd name` = 1 AND t.x = 2", ["`odd name` = 1 AND `t.x` = 2"]),
        ("TRUE", ["TRUE"]),
    ],
)  # fmt: skip
def test_a_condition_has_one_way_to_be_written(condition: str, canonical: list[str]) -> None:
    assert [to_sql(filter) for filter in parse(condition)] == canonical


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("lower(x) = 'a'", "LOWER(x)"),
        ("a = b", "not supported: b"),
        ("a + 1 > 2", "a + 1"),
        ("x LIKE '%a'", "LIKE takes a prefix"),
        ("x LIKE 'a_'", "LIKE takes a prefix"),
        ("x RLIKE 'a'", "RLIKE"),
        ("x IS NULL", "IS NOT NULL"),
        ("NOT x IS NOT NULL", "IS NOT NULL"),
        ("x IN (SELECT 1)", "x IN (SELECT 1)"),
        ("x > 5 AND x < 3", "never true"),
        ("FALSE", "never true"),
        ("flag > TRUE", "no order"),
        ("topic <> 'a'", "MQTT patterns"),
        ("topic LIKE 'a%'", "MQTT patterns"),
        ("topic = 5", "a topic is text"),
        ("topic = 'a/#/b'", "last level"),
        ("x NOT IN (1, 'a')", "one kind"),
        ("x IN (1, 'a')", "one kind"),
        ("x BETWEEN 1 AND 'b'", "one kind"),
        ("x BETWEEN SYMMETRIC 5 AND 1", "SYMMETRIC is unknown here"),
        ("x NOT BETWEEN SYMMETRIC 5 AND 1", "SYMMETRIC is unknown here"),
        ("x LIKE 'a/%' ESCAPE '/'", "ESCAPE '/'"),
        ("x NOT ILIKE 'a%'", "x NOT ILIKE 'a%'"),
        ("x <=> 1", "not supported"),
        ("x = 'a' 'b'", "CONCAT('a', 'b')"),
        ("x = 1; y = 2", "without `;`"),
        ("`` = 1", "without a name"),
        ("x = NULL", "NULL"),
        ("x IN (1, NULL)", "NULL"),
        ("x = 1L", "CAST(1 AS BIGINT)"),
        ("t = CAST('2013-01-01' AS TIMESTAMP)", "CAST("),
        ("t = DATE '2013-01-01 05:00'", "no time of day"),
        ("t = TIMESTAMP_NTZ '2013-01-01'", "TIMESTAMP_NTZ"),
        ("t = TIMESTAMP '2013-01-01Z'", "2013-01-31"),
        ("t = TIMESTAMP '2013-01-01 05:00+19:00'", "18:00"),
        ("x = 9007199254740993", "no float is equal to it"),
        ("x = 9.007199254740992e15", "write 9007199254740992"),
        ("x < 0.99999999999999999999", "the whole number 1"),
        ("x IN (1e0, 1000000000000000000)", "without an exponent"),
        ("x = 1e999", "larger than any float"),
        ("x = " + "1" * 5_000, "number 1111"),
        ("x" + " AND x" * 2_000, "nested too deeply"),
        ("x =", "cannot be read at '='"),
        ("x = 'a", "left open"),
        ("", "nothing to read"),
        ("SELECT 1", "cannot be read at 'SELECT'"),
        ("x > 99999999999999999999", "number"),
        ("t = TIMESTAMP '2013-02-30'", "no such day"),
        ("t = TIMESTAMP 'soon'", "2013-01-31"),
        ("x = 1" + "".join(f" OR x{number} = 1" for number in range(200)), "alternatives"),
        ("x = 1" + "".join(f" OR x = {number}" for number in range(200)), "ranges"),
        ("(" * 150 + "x = 1" + ")" * 150, "parentheses"),
        ("x = '" + "a" * CONDITION_BYTES_MAX + "'", "bytes"),
        ("x IN (" + ", ".join(map(str, range(200))) + ")", "ranges"),
    ],
)
def test_what_cannot_be_is_named_in_one_line(condition: str, named: str) -> None:
    with pytest.raises(UsageError, match=re.escape(named)) as caught:
        parse(condition)
    assert "\n" not in str(caught.value)
    assert not re.search("sqlglot|class|Error", str(caught.value))


@pytest.mark.parametrize("understood", sorted(UNDERSTOOD, key=str))
def test_an_argument_that_a_later_sqlglot_invents_is_refused(
    understood: type[exp.Expr], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `negate` of LIKE was: a filter that ignored it selected the opposite."""
    text = (
        "NOT (a = 1 OR a <> 2 OR a < 3 OR a <= 4 OR a > -5 OR a >= 6 AND b BETWEEN 1 AND 2"
        " OR c IN (1, 2) OR d LIKE 'x%' OR e IS NULL OR f = TRUE OR g = TIMESTAMP '2013-01-01')"
    )
    tree = read(text)
    node = next(it for it in tree.walk() if type(it) is understood)
    node.set("reversed", True)
    monkeypatch.setattr(Spark.Parser, "parse_into", lambda *_: [tree])
    with pytest.raises(UsageError, match="REVERSED is unknown here"):
        parse(text)


@given(filters())
def test_a_filter_reads_back_from_its_words(filter: Filter) -> None:
    assert parse(to_sql(filter)) == (filter,)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_usage_error(text: str) -> None:
    try:
        parse(text)
    except UsageError:
        return


@given(st.text("x=<>()'1 ANDORNIT%", max_size=30))
def test_any_text_made_of_the_right_letters_is_a_condition_or_a_usage_error(text: str) -> None:
    try:
        parse(text)
    except UsageError:
        return


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)))
def test_timestamps_agree_with_the_standard_library(moment: datetime) -> None:
    exact = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = (exact.days * 86_400 + exact.seconds) * 1_000_000 + exact.microseconds
    assert read_timestamp(moment.isoformat()) == Timestamp(microseconds)
    assert read_timestamp(written(microseconds)) == Timestamp(microseconds)
    assert str(Timestamp(microseconds)) == written(microseconds)


def test_a_time_zone_is_counted() -> None:
    assert read_timestamp("2013-01-01 01:30+01:30") == read_timestamp("2013-01-01")
    assert read_timestamp("2012-12-31T22:30:00-0130") == read_timestamp("2013-01-01")


@pytest.mark.parametrize("value", ["61", True, None])
def test_a_value_of_another_kind_satisfies_nothing(value: Any) -> None:
    attributes = {} if value is None else {"delay": value}
    assert not matches(parse("delay > 0")[0], attributes)
    assert not matches(parse("delay <> 5")[0], attributes)


@pytest.mark.parametrize(
    ("condition", "selected"),
    [
        ("x > 5", True),
        ("x >= 1e300", True),
        ("x <> 5", True),
        ("x NOT BETWEEN 1 AND 2", True),
        ("NOT x < 5", True),
        ("x IS NOT NULL", True),
        ("x < 5", False),
        ("x = 5", False),
        ("x IN (1, 2)", False),
    ],
)
def test_nan_is_greater_than_every_number_as_in_spark(condition: str, selected: bool) -> None:
    (filter,) = parse(condition)
    assert matches(filter, {"x": nan}) is selected
    index = MatchingIndex()
    for key in range(100):  # enough for rows of bits
        index.add(key, filter)
    assert (len(index.match({"x": nan})) == 100) is selected


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["filter", *words])
    return code, capsys.readouterr().out


def test_explain_answers_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    condition = "price > 10 AND symbol IN ('A','B') OR t >= TIMESTAMP '2013-01-01'"
    code, text = run(capsys, "explain", condition)
    assert code == 0
    assert "filter 1 of 2: price > 10 AND symbol IN ('A', 'B')" in text
    code, text = run(capsys, "explain", condition, "--json")
    found = json.loads(text)
    assert [one["example"] for one in found["filters"]] == [
        {"price": 11, "symbol": "A"},
        {"t": "2013-01-01"},
    ]


@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        (["covers", "price > 10", "price > 20 AND symbol = 'A'"], 0, {"covers": True}),
        (["covers", "price > 20", "price > 10"], 1, {"covers": False}),
        (["covers", "a = 1 OR b = 1", "b = 1 OR a = 1 AND c"], 0, {"covers": True}),
        (["overlaps", "a > 1", "a < 2"], 0, {"overlaps": True}),
        (["overlaps", "a > 1", "a < 1"], 1, {"overlaps": False}),
        (["merge", "a = 1 AND b", "a = 2 AND b"], 0, {"detail": "a IN (1, 2) AND b"}),
        (["merge", "a = 1 AND b", "a = 2 AND c"], 1, {"merges": False}),
    ],
)
def test_questions_about_two_filters_are_answered_with_an_exit_code(
    words: list[str], code: int, answer: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    got, text = run(capsys, *words, "--json")
    assert got == code
    assert json.loads(text).items() >= answer.items()
    got, text = run(capsys, *words)
    assert text.startswith("yes" if code == 0 else "no")


def test_a_wrong_condition_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["filter", "explain", "lower(x) = 'a'"]) == 2
    assert "LOWER(x)" in capsys.readouterr().err


@pytest.mark.parametrize("condition", [5, None, b"a = 1", "a = '\ud800'", "\ud800 = 1"])
def test_what_is_no_text_is_no_condition(condition: Any) -> None:
    with pytest.raises(UsageError, match="condition") as caught:
        parse(condition)
    assert "\n" not in str(caught.value)
