"""Schedules by name: the built-in ones, and those in files. Their language is `core/scenario`."""

from collections.abc import Mapping
from pathlib import Path

from planaria.core.errors import UsageError
from planaria.core.scenario import (
    ACTIONS,
    ACTIONS_MAX,
    LASTING,
    LIMITS,
    LIVE,
    STATES,
    Action,
    Schedule,
    Value,
    compose,
    parse_schedule,
    print_schedule,
)

__all__ = [
    "ACTIONS",
    "ACTIONS_MAX",
    "EXTRA",
    "LASTING",
    "LIMITS",
    "LIVE",
    "NAMED",
    "STATES",
    "Action",
    "Schedule",
    "Value",
    "compose",
    "load_schedule",
    "parse_schedule",
    "print_schedule",
]

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
