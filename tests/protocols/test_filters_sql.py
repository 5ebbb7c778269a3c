"""Conditions as people write them: what they become, and one clear line for what they cannot be."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.protocols.routing.filters import matches
from planaria.protocols.routing.sql import CONDITION_BYTES_MAX, parse
from planaria.protocols.routing.timestamps import Timestamp, read_timestamp, written
from planaria.protocols.routing.wording import to_sql


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
        ("x =", "not a condition"),
        ("", "not a condition"),
        ("SELECT 1", "not supported"),
        ("x > 99999999999999999999", "number"),
        ("t = TIMESTAMP '2013-02-30'", "no such day"),
        ("t = TIMESTAMP 'soon'", "2013-01-31"),
        ("x = 1" + " OR x = 1" * 200, "alternatives"),
        ("(" * 150 + "x = 1" + ")" * 150, "parentheses"),
        ("x = '" + "a" * CONDITION_BYTES_MAX + "'", "bytes"),
        ("x IN (" + ", ".join(map(str, range(200))) + ")", "ranges"),
    ],
)
def test_what_cannot_be_is_named_in_one_line(condition: str, named: str) -> None:
    with pytest.raises(UsageError, match=re.escape(named)) as caught:
        parse(condition)
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize("value", ["61", True, None, float("nan")])
def test_a_value_of_another_kind_satisfies_nothing(value: Any) -> None:
    attributes = {} if value is None else {"delay": value}
    assert not matches(parse("delay > 0")[0], attributes)
    assert not matches(parse("delay <> 5")[0], attributes)


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
