"""Numbers as conditions write them: those that mean the same for whole numbers and for floats.

Spark compares `9007199254740993` exactly with a whole number and rounded with a float, and `1e16`
the other way round. A filter cannot know which of them an attribute will be, so a literal for which
it matters is refused.
"""

import re
from fractions import Fraction
from math import isinf

from planaria.core.errors import UsageError
from planaria.filters.values import EXACT_MAX, Number, number

WHOLE_MAX = 2**63 - 1  # what a whole number may be on the wire
DIGITS_MAX = 400  # of a literal; the largest float has 309 before its point

_WRITTEN = re.compile(r"\d+(\.\d*)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def read_number(text: str) -> Number:
    """The number that a literal without its sign stands for. Raises UsageError."""
    match = _WRITTEN.fullmatch(text)
    if match is None or len(text) > DIGITS_MAX:
        raise UsageError(f"number {text[:40]}: unknown; write 1, 2.5 or 1e-3")
    if match[2]:
        return _exponential(text)
    exact = Fraction(text)
    if abs(exact) > WHOLE_MAX:
        raise UsageError(f"number {text}: at most {WHOLE_MAX}")
    rounded = float(exact)
    if exact.denominator == 1:
        if rounded != exact:
            raise UsageError(f"number {text}: no float is equal to it; use text for such an id")
        return int(exact)
    if rounded.is_integer():
        raise UsageError(f"number {text}: a float would be the whole number {int(rounded)}")
    return rounded


def write_number(value: Number) -> str:
    """A literal that `read_number` reads as `value`; a minus sign goes before it."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= WHOLE_MAX
    return repr(int(value) if whole else value)


def _exponential(text: str) -> Number:
    value = float(text)
    if isinf(value):
        raise UsageError(f"number {text}: larger than any float")
    if EXACT_MAX <= value <= WHOLE_MAX:
        raise UsageError(f"number {text}: write {int(value)}")
    return number(value)
