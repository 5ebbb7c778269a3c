"""What applications ask of a broker, read and checked: filters of a subscription, attributes."""

from collections.abc import Sequence
from typing import Any

from planaria.core.errors import UsageError
from planaria.core.node import Publish, Subscribe, Unsubscribe
from planaria.core.topics import check_filter, check_topic
from planaria.filters.filters import TOPIC, Filter, conjunction, is_well_formed
from planaria.filters.values import Value, Values
from planaria.protocols.routing.notifications import check_notification

CLIENTS_MAX = 1_000_000
ALL_TOPICS = "#"


def wanted_filters(command: Subscribe | Unsubscribe) -> list[Filter]:
    """The filters that a subscription means; raises UsageError if it means none.

    `where` is a condition in SQL, a filter, or several of which one must match.
    """
    if not 0 <= command.client < CLIENTS_MAX:
        raise UsageError(f"client {command.client}: between 0 and {CLIENTS_MAX - 1}")
    pattern = check_filter(command.pattern)
    topic = () if pattern == ALL_TOPICS else ((TOPIC, Values(topics=(pattern,))),)
    conditions = _conditions(command.where)
    if not all(is_well_formed(it) for it in conditions):
        raise UsageError("a filter that no condition means: make it with `sql.parse`")
    read = [conjunction([*topic, *it.constraints]) for it in conditions]
    found = [it for it in read if it is not None and is_well_formed(it)]
    if not found:
        raise UsageError(f"nothing on {pattern!r} can satisfy the condition: ask for less")
    return found


def notified_attributes(command: Publish) -> dict[str, Value]:
    """The attributes of a publication, its topic among them; raises UsageError if it cannot be."""
    for name in ("key", "headers", "timestamp"):
        if getattr(command, name):
            raise UsageError(f"content carries no {name}: put it into `attributes`")
    if TOPIC in command.attributes:
        raise UsageError("the topic is no attribute: give it as `topic` of `Publish`")
    if not isinstance(command.topic, str):
        raise UsageError(f"topic {command.topic!r}: a topic is text")
    attributes = {TOPIC: check_topic(command.topic), **command.attributes}
    check_notification(attributes, command.payload)
    return attributes


def _conditions(where: Any) -> Sequence[Filter]:
    if where is None:
        return [Filter()]
    if isinstance(where, str):
        from planaria.filters.sql import parse  # slow to load, and seldom needed

        return parse(where)
    found = [where] if isinstance(where, Filter) else where
    if isinstance(found, list | tuple) and all(isinstance(it, Filter) for it in found):
        return found
    kind = type(where).__name__
    raise UsageError(f"a condition of type {kind}: write SQL, or filters made with `sql.parse`")
