"""Which topic includes which: the paths of MQTT topics, and further supertopics where declared.

A group is named by its topic; the root group, which wants everything, by the empty string.
"""

from collections.abc import Mapping, Sequence

from planaria.core.errors import UsageError
from planaria.core.topics import RESERVED, check_filter, check_topic, parent

ROOT = ""
SUPERTOPICS_MAX = 8  # direct supertopics of one topic: each costs a table of z entries
BRANCHES_MAX = (
    32  # unrelated supertopics of one topic, direct or not: what its tables have room for
)
CACHE_MAX = 4096  # topics whose ancestors are remembered; a flood of new topics starts it afresh


def group_of(pattern: str) -> str:
    """The group that a subscription to `pattern` joins: `a/b` and `a/b/#` are both `a/b`."""
    canonical = check_filter(pattern)
    if canonical == "#":
        return ROOT
    topic = canonical.removesuffix("/#")
    if not topic or "+" in topic.split("/") or "#" in topic.split("/"):
        raise UsageError(f"filter {pattern!r}: gossip subscribes to a topic and all below, 'a/b/#'")
    return check_topic(topic)


def is_group(name: str) -> bool:
    """Can a subscription or a publication be about the group of that name?"""
    try:
        return group_of(filter_of(name)) == name
    except UsageError:
        return False


def is_wish(pattern: str, topics: Sequence[str]) -> bool:
    """Is `pattern` a subscription to one of `topics`?"""
    try:
        return group_of(pattern) in topics
    except UsageError:
        return False


def filter_of(group: str) -> str:
    """The subscription of `group` in MQTT form."""
    return f"{group}/#" if group else "#"


class Hierarchy:
    """Topic inclusion: the path, plus `supertopics` (topic to its further direct supertopics)."""

    def __init__(self, supertopics: Mapping[str, Sequence[str]] | None = None) -> None:
        self._further: dict[str, tuple[str, ...]] = {}
        self._ancestors: dict[str, dict[str, int]] = {}
        for topic, further in sorted((supertopics or {}).items()):
            if len(further) >= SUPERTOPICS_MAX:
                raise UsageError(f"{topic!r}: at most {SUPERTOPICS_MAX} direct supertopics")
            self._further[group_of(topic)] = tuple(group_of(each) for each in further)
        for topic in self._further:
            if topic in self.ancestors(topic):
                raise UsageError(f"topic {topic!r} is its own supertopic")
            if self._branches(topic) > BRANCHES_MAX:
                raise UsageError(f"{topic!r}: more than {BRANCHES_MAX} branches of supertopics")

    def supers(self, topic: str) -> tuple[str, ...]:
        """The direct supertopics of `topic`, super(T); none for the root."""
        if topic == ROOT:
            return ()
        above = parent(topic)
        if above is None:
            # MQTT: a wildcard in the first level does not select topics that start with `$`.
            above_all: tuple[str, ...] = () if topic.startswith(RESERVED[0]) else (ROOT,)
            return (*above_all, *self._further.get(topic, ()))
        return (above, *self._further.get(topic, ()))

    def ancestors(self, topic: str) -> dict[str, int]:
        """All supertopics of `topic` with their distance, nearest first."""
        found = self._ancestors.get(topic)
        if found is None:
            found = {}
            level, distance = list(self.supers(topic)), 1
            while level:
                fresh = [each for each in dict.fromkeys(level) if each not in found]
                found.update(dict.fromkeys(fresh, distance))
                level = [above for each in fresh for above in self.supers(each)]
                distance += 1
            if len(self._ancestors) >= CACHE_MAX:
                self._ancestors.clear()
            self._ancestors[topic] = found
        return found

    def _branches(self, topic: str) -> int:
        """How many of its supertopics can be unrelated at most: a path, and one per declaration."""
        return 1 + sum(len(self._further.get(it, ())) for it in (topic, *self.ancestors(topic)))

    def includes(self, general: str, special: str) -> bool:
        """Is every event of `special` also one of `general`?"""
        return general == special or general in self.ancestors(special)

    def maximal(self, topics: Sequence[str]) -> list[str]:
        """Those of `topics` that no other one includes, each once, in order."""
        unique = list(dict.fromkeys(topics))
        return [it for it in unique if not any(other in self.ancestors(it) for other in unique)]

    def nearest(self, topics: Sequence[str]) -> list[str]:
        """Those of `topics` that include no other one: where an event passes first on its way."""
        unique = list(dict.fromkeys(topics))
        return [it for it in unique if not any(it in self.ancestors(other) for other in unique)]
