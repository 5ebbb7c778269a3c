"""The sum of nothing, quickly told, hides no false one."""

from planaria.records.record import TIME_MAX
from planaria.records.sums import NOTHING, Sums


def test_a_false_sum_over_nothing_is_shown() -> None:
    """Whoever compares digests sees that something is wrong here, and the audit mends it."""
    sums = Sums()
    assert sums.digest(0, TIME_MAX) == NOTHING
    sums._total = (5, 1)
    assert sums.digest(0, TIME_MAX) == (5, 1)
