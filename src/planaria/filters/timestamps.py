"""Points in time as whole microseconds from 1970-01-01 UTC, read from and written as ISO 8601."""

import re

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.filters.ranges import TIMESTAMP_END, TIMESTAMP_MIN

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?\s*(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_OFFSET_MAX = 18 * 60  # minutes; no place on earth is further from UTC than 14 hours
_DAY = 86_400_000_000


class Timestamp(Struct, frozen=True, order=True, array_like=True, gc=False):
    """A value of an attribute that is a point in time."""

    microseconds: int

    def __str__(self) -> str:
        return written(self.microseconds)


def read_timestamp(text: str) -> Timestamp:
    """`2013-01-31`, `2013-01-31 05:00[:00[.000000]]`, with `Z` or `+01:00`; without: UTC."""
    match = _ISO.fullmatch(text.strip())
    if not match:
        raise UsageError(f"timestamp {text!r}: write '2013-01-31 05:00:00', UTC unless '+01:00'")
    year, month, day = (int(part) for part in match.groups()[:3])
    hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
    if not (1 <= month <= 12 and 1 <= day <= _days_in(year, month)):
        raise UsageError(f"timestamp {text!r}: there is no such day")
    if hour > 23 or minute > 59 or second > 59:
        raise UsageError(f"timestamp {text!r}: there is no such time of day")
    value = _days(year, month, day) * _DAY
    value += ((hour * 60 + minute) * 60 + second) * 1_000_000
    value += int((match[7] or "").ljust(6, "0")) - _offset(match[8])
    if not TIMESTAMP_MIN <= value < TIMESTAMP_END:
        raise UsageError(f"timestamp {text!r}: years 1 to 9999")
    return Timestamp(value)


def written(microseconds: int) -> str:
    """The shortest text that `read_timestamp` reads as this point in time."""
    days, rest = divmod(microseconds, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    date = "{:04d}-{:02d}-{:02d}".format(*_date(days))
    if not rest:
        return date
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{date} {time}" + (f".{fraction:06d}".rstrip("0") if fraction else "")


def _offset(zone: str | None) -> int:
    if zone in (None, "Z", ""):
        return 0
    assert zone is not None  # the pattern leaves nothing else
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    if minutes > _OFFSET_MAX or int(digits[2:]) > 59:
        raise UsageError(f"time zone {zone!r}: at most 18:00 from UTC")
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000_000


def _days_in(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 28 + leap if month == 2 else 30 if month in (4, 6, 9, 11) else 31


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the proleptic Gregorian calendar, counting years from March."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _date(days: int) -> tuple[int, int, int]:
    era, day = divmod(days + 719_468, 146_097)
    of_era = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    of_year = day - (365 * of_era + of_era // 4 - of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + of_era + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1
