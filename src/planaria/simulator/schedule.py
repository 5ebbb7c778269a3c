"""Fault schedules as data: a readable file, one action per line, parsed and printed exactly.

    # at INTERVAL  [for INTERVALS]  ACTION  [name=value ...]
    at 0           crash      share=0.33
    at 2 for 3     partition  groups=2
    at 4.5         corrupt    share=0.5

Times are intervals and may be fractions: a micro-partition is `at 3 for 0.05 partition`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from planaria.core.errors import UsageError

Value = int | float | str | bool

ACTIONS_MAX = 10_000  # a schedule longer than this is a mistake, not an experiment

# Every action with its arguments and their defaults; the type of the default is the type expected.
ACTIONS: Mapping[str, Mapping[str, Value]] = {
    "partition": {"groups": 2, "one_way": False},
    "loss": {"rate": 0.1},
    "duplicate": {"rate": 0.1},
    "reorder": {"rate": 0.2, "intervals": 2.0},
    "crash": {"count": 0, "share": 0.0},
    "restart": {"count": 0, "share": 0.0, "state": "kept"},
    "join": {"count": 1},
    "leave": {"count": 0, "share": 0.0},
    "pause": {"count": 0, "share": 0.0},
    "slow": {"count": 0, "share": 0.0, "factor": 5.0},
    "skew": {"count": 0, "share": 0.0, "seconds": 1000},
    "forge": {"count": 10},
    "replay": {"count": 10},
    "corrupt": {"count": 0, "share": 0.0},
    "damage": {"count": 0, "share": 0.0},
    "scramble": {"share": 0.5},
    "publish": {"count": 10},
}
LASTING = frozenset({"partition", "loss", "duplicate", "reorder", "pause", "slow", "skew"})
STATES = ("kept", "stale", "none")
LIMITS: Mapping[str, tuple[float, float]] = {
    "groups": (1, 1000),
    "rate": (0, 1),
    "share": (0, 1),
    "count": (0, 1e6),
    "factor": (1, 1000),
    "intervals": (0.02, 1000),
    "seconds": (-1e12, 1e12),
}

_LINE = re.compile(r"at\s+(\S+)(?:\s+for\s+(\S+))?\s+([a-z_]+)((?:\s+[a-z_]+=\S+)*)\s*$")


class Action(Struct, frozen=True):
    """One line of a schedule."""

    at: float
    kind: str
    arguments: dict[str, Value]
    duration: float = 0.0

    def __str__(self) -> str:
        lasting = f" for {_written(self.duration)}" if self.kind in LASTING else ""
        values = "".join(f" {name}={_written(value)}" for name, value in self.arguments.items())
        return f"at {_written(self.at)}{lasting} {self.kind}{values}"

    def __getitem__(self, name: str) -> Value:
        """An argument, or its default."""
        return self.arguments.get(name, ACTIONS[self.kind][name])

    def number(self, name: str) -> float:
        """A numeric argument, or its default."""
        value = self[name]
        assert isinstance(value, int | float)  # parsing gave it the type of its default
        return value


Schedule = tuple[Action, ...]


def parse_schedule(text: str, source: str = "schedule") -> Schedule:
    """Read a schedule; a line that is not one raises `UsageError` naming the line."""
    actions = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.split("#", 1)[0].strip()
        if stripped:
            try:
                actions.append(_parse_line(stripped))
            except ValueError as error:
                raise UsageError(f"{source}, line {number}: {error}") from None
    if len(actions) > ACTIONS_MAX:
        raise UsageError(f"{source}: {len(actions)} actions, at most {ACTIONS_MAX}")
    return compose(tuple(actions))


def compose(*schedules: Schedule) -> Schedule:
    """All actions of `schedules` in the order of time; of two at once the one given first."""
    actions = (action for schedule in schedules for action in schedule)
    return tuple(sorted(actions, key=lambda action: action.at))


def print_schedule(schedule: Schedule) -> str:
    """The text that `parse_schedule` reads back as the same schedule."""
    return "".join(f"{action}\n" for action in schedule)


def load_schedule(name: str) -> Schedule:
    """A schedule by file name or by the name of one of the built-in ones."""
    if name in NAMED or name in EXTRA:
        return parse_schedule({**NAMED, **EXTRA}[name], name)
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join([*NAMED, *EXTRA])
        raise UsageError(
            f"nemesis {name!r} is neither a readable file ({error}) nor one of: {known}"
        ) from None
    return parse_schedule(text, name)


def _parse_line(line: str) -> Action:
    match = _LINE.match(line)
    if not match:
        raise ValueError(f"cannot read {line!r}: write `at 2 for 3 partition groups=2`")
    at, duration, kind, rest = match.groups()
    if kind not in ACTIONS:
        raise ValueError(f"no action {kind!r}: one of {', '.join(ACTIONS)}")
    if (duration is not None) != (kind in LASTING):
        raise ValueError(
            f"{kind!r} needs `for INTERVALS`" if kind in LASTING else f"{kind!r} takes no `for`"
        )
    arguments = {}
    for pair in rest.split():
        name, _, raw = pair.partition("=")
        if name not in ACTIONS[kind]:
            raise ValueError(f"{kind!r} has no {name!r}: one of {', '.join(ACTIONS[kind])}")
        arguments[name] = _value(name, raw, ACTIONS[kind][name])
    return Action(_time(at), kind, arguments, _time(duration) if duration else 0.0)


def _time(raw: str) -> float:
    try:
        value = float(raw)
    except ValueError:
        raise ValueError(f"{raw!r} is not a number of intervals") from None
    if not 0 <= value < 1e6:
        raise ValueError(f"{raw!r}: between 0 and a million intervals")
    return value


def _value(name: str, raw: str, default: Value) -> Value:
    if isinstance(default, bool):
        if raw not in ("yes", "no"):
            raise ValueError(f"{name}={raw}: write yes or no")
        return raw == "yes"
    if isinstance(default, str):
        if raw not in STATES:
            raise ValueError(f"{name}={raw}: one of {', '.join(STATES)}")
        return raw
    try:
        value = type(default)(raw)
    except ValueError:
        raise ValueError(f"{name}={raw}: a number is needed") from None
    low, high = LIMITS[name]
    if not low <= value <= high:
        raise ValueError(f"{name}={raw}: between {low:g} and {high:g}")
    return value


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


NAMED: Mapping[str, str] = {
    "none": "",
    "partition": "at 1 for 6 partition groups=2",
    "threeway": "at 1 for 6 partition groups=3",
    "asymmetric": "at 1 for 6 partition groups=2 one_way=yes",
    "blip": "at 1 for 0.2 partition groups=2\nat 2 for 0.2 partition groups=3",
    "crash": "at 1 crash share=0.33",
    "restart": "at 1 restart share=0.5 state=kept\nat 2 restart share=0.5 state=stale\n"
    "at 3 restart share=0.5 state=none",
    "churn": "at 1 join count=2\nat 2 crash count=1\nat 3 leave count=1\nat 4 join count=1\n"
    "at 5 restart count=1 state=none",
    "corrupt": "at 1 corrupt share=1\nat 1 scramble share=0.5\nat 2 forge count=20",
    "bitflip": "at 1 corrupt count=1",
    "replay": "at 3 replay count=20",
    "lossy": "at 0 for 8 loss rate=0.2\nat 0 for 8 duplicate rate=0.2\nat 0 for 8 reorder rate=0.3",
    "slow": "at 1 for 8 slow count=1 factor=8",
    "pause": "at 1 for 5 pause count=1",
    "skew": "at 1 for 8 skew count=1 seconds=1000000",
    # Longer than any patience: what a node took for lost arrives when all has healed without it.
    "late": "at 1 for 4 reorder rate=0.3 intervals=60",
    # Past setters and repairs, caches included: whatever memory can hold.
    "damage": "at 3 damage share=1",
}
# Only when asked for: `all` does not stand for these.
EXTRA: Mapping[str, str] = {
    # More than a mobile node stores, and than one stream or one hand-over of the ring has room for;
    # it takes minutes where the others take a fraction of a second.
    "burst": "at 1 publish count=4200",
}
