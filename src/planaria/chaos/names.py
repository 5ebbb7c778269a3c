"""Schedules for running networks: single faults by name, the simulator's own, and files."""

from collections.abc import Mapping
from pathlib import Path

from planaria.core.errors import UsageError
from planaria.core.scenario import FAULTS, LASTING, LIVE, Schedule, parse_schedule
from planaria.simulator.schedule import EXTRA, NAMED

USUAL = 6  # intervals that a fault lasts if nothing else is said

# What needs the driver's hand on every message or variable, and whoever brings its applications.
SIMULATED = ("powercut", "damage", "subscribe", "unsubscribe")

SINGLE: Mapping[str, str] = {
    "kill": "at 0 crash count=1",
    "stop": "at 0 for 6 pause count=1",
    "restart": "at 0 restart count=1 state=kept",
    "stale": "at 0 restart count=1 state=stale",
    "wipe": "at 0 restart count=1 state=none",
    "partition": "at 0 for 6 partition groups=2",
    "threeway": "at 0 for 6 partition groups=3",
    "asymmetric": "at 0 for 6 partition groups=2 one_way=yes",
    "blip": "at 0 for 0.2 partition groups=2",
    "slow": "at 0 for 6 slow count=1 factor=4",
    "loss": "at 0 for 6 loss rate=0.2",
    "duplicate": "at 0 for 6 duplicate rate=0.3",
    "reorder": "at 0 for 6 reorder rate=0.3",
    "busy": "at 0 for 6 busy count=1",
    "skew": "at 0 for 6 skew count=1 seconds=1000000",
    "flip": "at 0 flip count=1",
    "truncate": "at 0 truncate count=1",
    "corrupt": "at 0 corrupt count=1",
    "scramble": "at 0 scramble share=0.5",
    "forge": "at 0 forge count=100",
    "replay": "at 0 replay count=100",
    "garbage": "at 0 garbage count=1",
    "flood": "at 0 flood count=1",
    # No new nodes, as in the simulator's: who left comes back.
    "churn": "at 1 crash count=1\nat 3 leave count=1\nat 5 join count=2\n"
    "at 7 restart count=1 state=none",
}


def load(name: str) -> Schedule:
    """The schedule of this name, or in this file; raises UsageError."""
    known = {**NAMED, **EXTRA, **SINGLE, "join": "at 0 join count=1"}
    if name in known:
        return checked(parse_schedule(known[name], name))
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        words = ", ".join(sorted({*SINGLE, *(it for it in NAMED if _live(NAMED[it]))} - {"none"}))
        raise UsageError(f"{name!r} is no readable file ({error}) and none of: {words}") from None
    return checked(parse_schedule(text, name))


def checked(schedule: Schedule) -> Schedule:
    """Raises UsageError for what only a simulation can do, and for a return of nobody."""
    ended = False
    for action in schedule:
        if action.kind in SIMULATED:
            raise UsageError(f"{action.kind!r} needs a simulation: planaria sim")
        if action.kind == "join" and not ended:
            raise UsageError(
                f"{action}: brings back who a crash or leave before it ended, and there is none; "
                "`planaria node --dir DIR` starts a node again"
            )
        ended = ended or action.kind in ("crash", "leave")
    return schedule


def kinds() -> list[str]:
    """All faults that a running network can suffer."""
    return [kind for kind in (*FAULTS, *LIVE) if kind not in SIMULATED]


def lasting(kind: str, intervals: float = USUAL) -> str:
    """The `for` of an action, if it has one."""
    return f" for {intervals:g}" if kind in LASTING else ""


def _live(text: str) -> bool:
    return not any(word in text for word in SIMULATED)
