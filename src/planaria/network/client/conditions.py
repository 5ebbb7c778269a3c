"""A client's `where`: which publications of a record satisfy it."""

from collections.abc import Iterable

from planaria.filters.attributes import object_of
from planaria.filters.filters import TOPIC, matches
from planaria.filters.values import Value
from planaria.records.batches import Slice
from planaria.records.record import Publication


class Condition:
    """Over the members of a payload that is a JSON object, and headers."""

    def __init__(self, text: str) -> None:
        """Raises UsageError if it is no condition."""
        from planaria.filters.sql import parse  # slow to load, and seldom needed

        self._filters = parse(text)

    def selects(self, topic: str, one: Publication) -> bool:
        """Does this publication satisfy it? What it lacks satisfies nothing, as NULL does."""
        attributes = attributes_of(topic, one)
        return any(matches(filter, attributes) for filter in self._filters)

    def cut(self, topic: str, parts: Iterable[Slice]) -> list[Slice]:
        """The runs of publications that satisfy it."""
        return [
            run
            for part in parts
            for run in part.runs(self.selects(topic, one) for one in part.publications())
        ]


def attributes_of(topic: str, one: Publication) -> dict[str, Value]:
    """What a condition can be about: the members of a JSON object, headers, and the topic."""
    attributes: dict[str, Value] = {
        name: value.decode(errors="replace") for name, value in one.headers
    }
    found = object_of(one.payload)
    plain = {name: it for name, it in found.items() if isinstance(it, bool | int | float | str)}
    attributes.update(plain)
    attributes[TOPIC] = topic
    return attributes
