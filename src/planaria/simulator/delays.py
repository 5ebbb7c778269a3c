"""How long a message takes: distributions over whole ticks, as tables of quantiles.

One table look-up per message serves every distribution at the same price.
"""

from collections.abc import Callable
from functools import lru_cache

from planaria.core.errors import UsageError

INTERVAL = 100  # ticks in which every live node runs its timeout once
DELAY_MAX = 100 * INTERVAL  # cuts the heavy tail: 'eventually' must end within a run
QUANTILES = 1024

Delay = tuple[int, ...]


def _table(quantile: Callable[[float], float]) -> Delay:
    points = ((i + 0.5) / QUANTILES for i in range(QUANTILES))
    return tuple(min(DELAY_MAX, max(1, round(quantile(p)))) for p in points)


def fixed(ticks: int) -> Delay:
    """Every message takes `ticks`."""
    return _table(lambda _: ticks)


def uniform(low: int, high: int) -> Delay:
    """Between `low` and `high` ticks, all alike; messages overtake each other."""
    return _table(lambda p: low - 0.5 + p * (high - low + 1))


def heavy(low: int, shape: float = 1.5) -> Delay:
    """Pareto from `low` on: most are quick, a few take many intervals."""
    return _table(lambda p: low * (1 - p) ** (-1 / shape))


def late(low: int, high: int, share: float = 0.02, factor: int = 10) -> Delay:
    """Uniform, but a `share` of the messages takes `factor` times as long."""

    def quantile(p: float) -> float:
        if p >= 1 - share:
            return factor * (low + (p - 1 + share) / share * (high - low))
        return low + p / (1 - share) * (high - low)

    return _table(quantile)


def parse_phases(text: str) -> tuple[int, ...]:
    """`1,51`: the ticks of an interval at which nodes run their timeouts, as on a command line."""
    phases = [int(word) if word.isdecimal() else 0 for word in text.split(",")] if text else []
    if not all(1 <= phase <= INTERVAL for phase in phases):
        raise UsageError(f"phases {text!r}: ticks between 1 and {INTERVAL}, with commas between")
    return (*phases,)


DEFAULT_DELAY = uniform(1, INTERVAL // 2)


@lru_cache(maxsize=16)  # a table takes as long as a small trial sends messages
def parse_delay(text: str) -> Delay:
    """`fixed:10`, `uniform:1:50`, `heavy:10[:1.5]` or `late:1:50`, as written on a command line."""
    name, *numbers = text.split(":")
    makers: dict[str, Callable[..., Delay]] = {
        "fixed": fixed,
        "uniform": uniform,
        "heavy": heavy,
        "late": late,
    }
    try:
        arguments = [float(number) if "." in number else int(number) for number in numbers]
        if any(argument <= 0 for argument in arguments):
            raise ValueError
        if name in ("uniform", "late") and arguments[0] > arguments[1]:
            raise ValueError
        return makers[name](*arguments)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError):
        raise UsageError(
            f"delay {text!r}: write fixed:TICKS, uniform:LOW:HIGH, heavy:LOW[:SHAPE] or "
            f"late:LOW:HIGH with positive numbers ({INTERVAL} ticks are one interval)"
        ) from None
