"""Hierarchical topics and topic filters in MQTT form: `a/b/c`, `+` for one level, `#` for the rest.

Other dialects are accepted on input (`*` for `+`; `>` and `**` for `#`) and printed as MQTT.
"""

import re
from functools import lru_cache

from planaria.core.errors import UsageError

TOPIC_BYTES_MAX = 1024  # MQTT allows 65,535; a topic travels in every message of its overlay
LEVELS_MAX = 32  # bounds every walk along a topic's ancestors
RESERVED = "$SYS"

# MQTT 5.0 lets one refuse them (1.5.4): a name must not move a cursor, nor forge a line of a log.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

_ONE = {"+": "+", "*": "+"}
_REST = {"#": "#", ">": "#", "**": "#"}


def check_topic(topic: str) -> str:
    """Return `topic` if one can publish on it, else raise `UsageError` that says why not."""
    levels = _levels(topic)
    for level in levels:
        if level in _ONE or level in _REST or "+" in level or "#" in level:
            raise UsageError(f"topic {topic!r} has a wildcard: subscribe to it, publish elsewhere")
    if levels[0] == RESERVED:
        raise UsageError(f"topic {topic!r}: {RESERVED}/ is reserved for Planaria's own topics")
    return topic


def check_filter(pattern: str) -> str:
    """Return the MQTT form of the topic filter `pattern`, or raise `UsageError`."""
    levels = _levels(pattern)
    canonical = []
    for position, level in enumerate(levels):
        if level in _REST:
            if position != len(levels) - 1:
                raise UsageError(f"filter {pattern!r}: {level!r} may only be the last level")
            canonical.append("#")
        elif level in _ONE:
            canonical.append("+")
        elif "+" in level or "#" in level:
            raise UsageError(f"filter {pattern!r}: a wildcard must be a whole level, not {level!r}")
        else:
            canonical.append(level)
    return "/".join(canonical)


def has_wildcard(pattern: str) -> bool:
    """Does the (canonical) filter `pattern` select more than one topic?"""
    return any(level in ("+", "#") for level in pattern.split("/"))


def matches(pattern: str, topic: str) -> bool:
    """Does the (canonical) filter `pattern` select `topic`? `a/#` selects `a` too, as in MQTT.

    A wildcard in the first level does not select topics that start with `$`.
    """
    if pattern == topic:
        return True
    wanted, levels = pattern.split("/"), topic.split("/")
    if levels[0].startswith("$") and wanted[0] in ("+", "#"):
        return False
    for position, level in enumerate(wanted):
        if level == "#":
            return True
        if position == len(levels) or level not in ("+", levels[position]):
            return False
    return len(wanted) == len(levels)


def covers(general: str, special: str) -> bool:
    """Does every topic that `special` selects also match `general`?"""
    wide, narrow = general.split("/"), special.split("/")
    if narrow[0].startswith("$") and wide[0] in ("+", "#"):
        return False
    if special in ("#", "/#"):  # no topic is empty, so here `#` stands for one level or more
        narrow.insert(-1, "+")
    for position, level in enumerate(wide):
        if level == "#":
            return True
        if position == len(narrow) or narrow[position] == "#":
            return False
        if level != "+" and level != narrow[position]:
            return False
    # `a` is selected by `a/#`, so `a/+/#` still has the shorter `a/+` to cover: lengths must agree.
    return len(wide) == len(narrow)


def parent(topic: str) -> str | None:
    """The direct supertopic of `topic`; None for a top-level topic, as `a` and `/a` are."""
    return topic.rpartition("/")[0] or None


def ancestors(topic: str) -> list[str]:
    """All supertopics of `topic`, nearest first."""
    found = []
    above = parent(topic)
    while above is not None:
        found.append(above)
        above = parent(above)
    return found


@lru_cache(8)  # a node asks in every interval of the same thousand
def above(topics: tuple[str, ...]) -> frozenset[str]:
    """All supertopics of all `topics`."""
    return frozenset(it for topic in topics for it in ancestors(topic))


def _levels(topic: str) -> list[str]:
    """Split and check what topics and filters have in common."""
    if not isinstance(topic, str):
        raise UsageError(f"a topic is text, not {type(topic).__name__}")
    if not topic:
        raise UsageError("a topic needs at least one character, such as 'news' or 'a/b'")
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        raise UsageError(f"topic {topic!r} is not valid Unicode text") from None
    if size > TOPIC_BYTES_MAX:
        raise UsageError(f"topic of {size} bytes: at most {TOPIC_BYTES_MAX}")
    if _CONTROL.search(topic):
        raise UsageError(f"topic {topic!r} contains a control character")
    levels = topic.split("/")
    if len(levels) > LEVELS_MAX:
        raise UsageError(f"topic of {len(levels)} levels: at most {LEVELS_MAX}")
    return levels
