"""Delays have the distribution their name says, and bad ones are refused."""

import pytest

from planaria.core.errors import UsageError
from planaria.simulator.delays import DELAY_MAX, QUANTILES, fixed, heavy, late, parse_delay, uniform


def test_fixed_is_fixed() -> None:
    assert set(fixed(7)) == {7}


def test_uniform_gives_every_tick_alike() -> None:
    table = uniform(1, 50)
    shares = [table.count(tick) for tick in range(1, 51)]
    assert sum(shares) == QUANTILES
    assert max(shares) - min(shares) <= 1


def test_heavy_tail_is_long_and_cut() -> None:
    table = heavy(10)
    assert min(table) == 10
    assert sorted(table)[QUANTILES // 2] < 20
    assert max(table) > 500
    assert max(heavy(10, 0.1)) == DELAY_MAX


def test_late_messages_are_few_and_much_later() -> None:
    table = late(1, 50)
    assert 0.01 < sum(ticks > 50 for ticks in table) / QUANTILES < 0.03
    assert max(table) > 400


@pytest.mark.parametrize(
    "text", ["fixed:10", "uniform:1:50", "heavy:10", "heavy:10:1.5", "late:1:50"]
)
def test_delay_is_read(text: str) -> None:
    assert len(parse_delay(text)) == QUANTILES


@pytest.mark.parametrize(
    "text",
    [
        *("", "fixed", "fixed:", "fixed:x", "fixed:0", "fixed:-3", "fixed:1:2:3:4", "fixed:nan"),
        *("uniform:5", "uniform:50:1", "late:9:2", "late:9", "normal:3", "heavy:5:0"),
        *("fixed:1.0e999", "heavy:1:0.0001"),
    ],
)
def test_bad_delay_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write fixed:TICKS"):
        parse_delay(text)
