"""Scenarios as data: what applications ask for and what goes wrong, in one readable file.

    # at INTERVAL  [for INTERVALS]  ACTION  [name=value ...]
    at 0           subscribe  pattern=news/# node=3
    at 1           publish    topic=news/today payload="it heals" count=5
    at 2 for 3     partition  groups=2
    at 4.5         corrupt    share=0.5

Times are intervals and may be fractions: a micro-partition is `at 3 for 0.05 partition`. A value
with blanks is written as JSON writes it, in double quotes. Parsed and printed exactly, and the same
for every driver: what runs in a simulation can be asked of a network.
"""

import json
import re
from collections.abc import Mapping

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NODE_ID_MAX

Value = int | float | str | bool | dict[str, int | float | str | bool]

ACTIONS_MAX = 10_000  # a schedule longer than this is a mistake, not an experiment
ANYBODY = -1  # the `node` of what any node may do that can

# Every action with its arguments and their defaults; the type of the default is the type expected.
WORKLOAD: Mapping[str, Mapping[str, Value]] = {
    "subscribe": {"pattern": "#", "where": "", "ordered": False, "client": 0, "node": ANYBODY},
    "unsubscribe": {"pattern": "#", "where": "", "client": 0, "node": ANYBODY},
    "publish": {
        "count": 1,
        "topic": "",
        "payload": "",
        "attributes": {},
        "key": "",
        "headers": {},
        "timestamp": 0,
        "node": ANYBODY,
    },
    "leave": {"count": 0, "share": 0.0, "node": ANYBODY},
}
FAULTS: Mapping[str, Mapping[str, Value]] = {
    "partition": {"groups": 2, "one_way": False},
    "loss": {"rate": 0.1},
    "duplicate": {"rate": 0.1},
    "reorder": {"rate": 0.2, "intervals": 2.0},
    "crash": {"count": 0, "share": 0.0, "node": ANYBODY},
    "restart": {"count": 0, "share": 0.0, "state": "kept", "node": ANYBODY},
    "powercut": {"count": 0, "share": 0.0, "moment": "before"},
    "join": {"count": 1},
    "pause": {"count": 0, "share": 0.0},
    "slow": {"count": 0, "share": 0.0, "factor": 5.0},
    "busy": {"count": 0, "share": 0.0},
    "skew": {"count": 0, "share": 0.0, "seconds": 1000},
    "forge": {"count": 10},
    "replay": {"count": 10},
    "corrupt": {"count": 0, "share": 0.0},
    "damage": {"count": 0, "share": 0.0},
    "scramble": {"share": 0.5},
}
# What only a running network has: files, sockets, processes.
LIVE: Mapping[str, Mapping[str, Value]] = {
    "flip": {"count": 0, "share": 0.0, "bits": 16},
    "truncate": {"count": 0, "share": 0.0, "keep": 0.5},
    "garbage": {"count": 0, "share": 0.0, "connections": 10},
    "flood": {"count": 0, "share": 0.0, "requests": 5000},
}
ACTIONS: Mapping[str, Mapping[str, Value]] = {**FAULTS, **LIVE, **WORKLOAD}
LASTING = frozenset("partition loss duplicate reorder powercut pause slow busy skew".split())
STATES = ("kept", "stale", "none")
CHOICES: Mapping[str, tuple[str, ...]] = {"state": STATES, "moment": ("before", "after")}
LIMITS: Mapping[str, tuple[float, float]] = {
    "groups": (1, 1000),
    "rate": (0, 1),
    "share": (0, 1),
    "count": (0, 1e6),
    "factor": (1, 1000),
    "intervals": (0.02, 1000),
    "seconds": (-1e12, 1e12),
    "client": (0, 2**31),
    "node": (ANYBODY, NODE_ID_MAX),
    "timestamp": (-(2**62), 2**62),
    "bits": (1, 1e6),
    "keep": (0, 1),
    "connections": (1, 1000),
    "requests": (1, 1e6),
}

_LINE = re.compile(r"at\s+(\S+)(?:\s+for\s+(\S+))?\s+([a-z_]+)(?:\s+(.*))?$")
_WORD = re.compile(r'(?:([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"]\S*)|(#.*))(?:\s+|$)')
_BARE = re.compile(r'[^\s"]\S*')


class Action(Struct, frozen=True):
    """One line of a scenario."""

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
    """Read a scenario; a line that is not one raises `UsageError` naming the line."""
    actions = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
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
    for name, raw in _pairs(rest or "", line):
        if name not in ACTIONS[kind]:
            raise ValueError(f"{kind!r} has no {name!r}: one of {', '.join(ACTIONS[kind])}")
        arguments[name] = _value(name, raw, ACTIONS[kind][name])
    return Action(_time(at), kind, arguments, _time(duration) if duration else 0.0)


def _pairs(text: str, line: str) -> list[tuple[str, str]]:
    """The `name=value` pairs of a line, up to its comment."""
    found, place = [], 0
    while place < len(text):
        word = _WORD.match(text, place)
        if not word:
            raise ValueError(f"cannot read {line!r}: write name=value after the action")
        name, raw, comment = word.groups()
        if comment is not None:
            break
        found.append((name, json.loads(raw, strict=False) if raw.startswith('"') else raw))
        place = word.end()
    return found


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
    if isinstance(default, dict):
        return _table(name, raw)
    if isinstance(default, str):
        if name in CHOICES and raw not in CHOICES[name]:
            raise ValueError(f"{name}={raw}: one of {', '.join(CHOICES[name])}")
        return raw
    try:
        value = type(default)(raw)
    except ValueError:
        raise ValueError(f"{name}={raw}: a number is needed") from None
    low, high = LIMITS[name]
    if not low <= value <= high:
        raise ValueError(f"{name}={raw}: between {low:g} and {high:g}")
    return value


def _table(name: str, raw: str) -> dict[str, int | float | str | bool]:
    """A JSON object of plain values."""
    try:
        found = json.loads(raw, parse_constant=_no_number)
    except ValueError:
        found = None
    plain = isinstance(found, dict) and all(
        isinstance(it, int | float | str) for it in found.values()
    )
    if not plain:
        raise ValueError(f'{name}={raw}: write {{"name":"value"}} with texts, numbers, true, false')
    return dict(found)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, dict):
        value = json.dumps(value, separators=(",", ":"))
    text = str(value)
    return text if _BARE.fullmatch(text) and text.isprintable() else json.dumps(text)
