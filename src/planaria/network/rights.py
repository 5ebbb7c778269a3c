"""Who may do what at one node: a TOML file of rights that binds the node's own clients.

Once there is such a file, nothing is allowed that it does not allow, and what it denies is denied
whatever it allows. Who a client is stands in its certificate. The file never decides what is taken
from other nodes: members that judged differently would never agree.
"""

import logging
import re
import tomllib
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from msgspec import Struct

from planaria.core.errors import UsageError, unknown
from planaria.core.topics import check_filter, covers, matches
from planaria.protocols.skipring.charter import ANYBODY

PUBLISH, SUBSCRIBE, SUPERVISE, ADMIN = "publish", "subscribe", "supervise", "admin"
RIGHTS = (PUBLISH, SUBSCRIBE, SUPERVISE, ADMIN)
GROUP = "@"  # before the name of a group
ALLOW, DENY, GROUPS = "allow", "deny", "groups"
COLUMNS = ("who", "rights", "topics")  # of a rule

log = logging.getLogger("planaria.node")


class Rule(Struct, frozen=True):
    """These names have, or have not, these rights on all topics of these filters."""

    who: frozenset[str]
    rights: frozenset[str]
    topics: tuple[str, ...]

    def concerns(self, name: str, right: str) -> bool:
        """Is it about somebody's right?"""
        return right in self.rights and (name in self.who or ANYBODY in self.who)


class Rights(Struct, frozen=True):
    """The rules of one file."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def allows(self, name: str, right: str, topic: str) -> bool:
        """May somebody do that on a topic? What is denied counts first."""
        return not _selects(self.deny, name, right, topic) and _selects(
            self.allow, name, right, topic
        )

    def allows_all(self, name: str, right: str, pattern: str) -> bool:
        """May somebody ask for all topics of a pattern? Those that are denied are left out.

        One filter must allow the whole pattern, and none deny all of it.
        """
        return not _covers(self.deny, name, right, pattern) and _covers(
            self.allow, name, right, pattern
        )

    def denies_part(self, name: str, right: str, pattern: str) -> bool:
        """Is there a topic of a pattern on which somebody is denied that?"""
        denied = [one for it in self.deny if it.concerns(name, right) for one in it.topics]
        return any(_overlap(one, pattern) for one in denied)


class RightsFile:
    """The rights in a file, read again whenever it changes."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError, with the line at fault, if there are no rights in it."""
        self.path = path
        self.rights = parse_rights(*_read(path))
        self._seen = _stamp(path)

    def look(self) -> None:
        """Take what the file says now; one that says nothing readable changes nothing."""
        stamp = _stamp(self.path)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self.rights = parse_rights(*_read(self.path))
        except UsageError as error:
            log.error("%s; the rights stay as they were", error)
        else:
            log.info("%s: read again", self.path)


def parse_rights(text: str, name: str = "rights") -> Rights:
    """The rights that a text lays down; raises UsageError that names the line at fault."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not TOML: {error}") from None
    source = Source(text, name)
    for key in tables:
        if key not in (ALLOW, DENY, GROUPS):
            raise source.fault(unknown("table", key, (ALLOW, DENY, GROUPS)), key)
    groups = _groups(source, tables.get(GROUPS, {}))
    return Rights(
        _rules(source, ALLOW, tables.get(ALLOW, []), groups),
        _rules(source, DENY, tables.get(DENY, []), groups),
    )


class Source:
    """The lines of a file of rights: TOML does not say where a value stood."""

    def __init__(self, text: str, name: str) -> None:
        self._lines, self._name = text.splitlines(), name

    def fault(
        self, reason: str | UsageError, table: str, number: int = 0, *marks: str
    ) -> UsageError:
        """An error about the `number`th table of that name; of its marks the first that is found
        names the line."""
        first, last = self._span(table, number)
        for mark in marks:
            for at in range(first, last):
                if mark in self._lines[at]:
                    return self._error(reason, at)
        return self._error(reason, first)

    def _error(self, reason: str | UsageError, at: int) -> UsageError:
        return UsageError(f"{self._name} line {at + 1}: {reason}")

    def _span(self, table: str, number: int) -> tuple[int, int]:
        """The lines of a table, from its head to the next one."""
        heads = [at for at, line in enumerate(self._lines) if re.match(r"\s*\[", line)]
        named = re.compile(rf"\s*\[+\s*[\"']?{re.escape(table)}[\"']?\s*\]|\s*{re.escape(table)}\b")
        found = [at for at, line in enumerate(self._lines) if named.match(line)]
        first = found[min(number, len(found) - 1)] if found else 0
        return first, next((at for at in heads if at > first), len(self._lines))


def _groups(source: Source, groups: Any) -> dict[str, list[str]]:
    if not isinstance(groups, dict):
        raise source.fault("groups: write [groups] and below it NAME = [names]", GROUPS)
    for group, names in groups.items():
        if not _is_texts(names):
            raise source.fault(f"group {group!r}: a list of names", GROUPS, 0, group)
    return groups


def _rules(
    source: Source, table: str, rules: Any, groups: Mapping[str, list[str]]
) -> tuple[Rule, ...]:
    if not isinstance(rules, list) or not all(isinstance(it, dict) for it in rules):
        raise source.fault(f"{table}: write [[{table}]] above each rule", table)
    return tuple(_rule(source, table, at, it, groups) for at, it in enumerate(rules))


def _rule(
    source: Source, table: str, at: int, rule: dict[str, Any], groups: Mapping[str, list[str]]
) -> Rule:
    for key in rule:
        if key not in COLUMNS:
            raise source.fault(unknown("key", key, COLUMNS), table, at, key)
    for key in COLUMNS:
        if not _is_texts(rule.get(key)) or not rule[key]:
            raise source.fault(f"{key}: a list of one text or more", table, at, key)
    for right in rule["rights"]:
        if right not in RIGHTS:
            raise source.fault(unknown("right", right, RIGHTS), table, at, right, "rights")
    who: set[str] = set()
    for name in rule["who"]:
        if name.startswith(GROUP) and name[1:] not in groups:
            raise source.fault(unknown("group", name[1:], [*groups]), table, at, name, "who")
        who.update(groups[name[1:]] if name.startswith(GROUP) else [name])
    topics = []
    for pattern in rule["topics"]:
        try:
            topics.append(check_filter(pattern))
        except UsageError as error:
            raise source.fault(str(error), table, at, pattern, "topics") from None
    return Rule(frozenset(who), frozenset(rule["rights"]), tuple(topics))


def _is_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(it, str) for it in found)


def _selects(rules: Iterable[Rule], name: str, right: str, topic: str) -> bool:
    return any(matches(one, topic) for it in rules if it.concerns(name, right) for one in it.topics)


def _covers(rules: Iterable[Rule], name: str, right: str, pattern: str) -> bool:
    return any(
        covers(one, pattern) for it in rules if it.concerns(name, right) for one in it.topics
    )


def _overlap(one: str, other: str) -> bool:
    """Can a topic match both filters?"""
    for mine, its in zip_longest(one.split("/"), other.split("/")):
        if "#" in (mine, its):
            return True
        if mine != its and (None in (mine, its) or "+" not in (mine, its)):
            return False
    return True


def _read(path: Path) -> tuple[str, str]:
    try:
        return path.read_text(), str(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not TOML: it is no text") from None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes with a file; None while it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
