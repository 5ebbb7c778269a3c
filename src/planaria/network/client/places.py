"""How far a subscription is in each topic, and where it begins."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from planaria.core.errors import UsageError
from planaria.core.topics import check_topic
from planaria.network.client.messages import Position
from planaria.records.positions import (
    START,
    Intervals,
    Mark,
    skip,
    vector_from_json,
    vector_to_json,
)
from planaria.records.record import TIME_MAX, Stream

WORDS = ("all", "now", "last")

Since = str | datetime | int | float | Mapping[str, Any]


class Beginning(NamedTuple):
    """Where to begin: a word or a time that a node must resolve, or places that are known."""

    word: str | None
    time: int
    places: "Places"


class Places:
    """Vectors by topic; streams and topics that are not in them are read from `floor` on."""

    __slots__ = ("floor", "topics")

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor  # seconds since 1970
        self.topics: dict[str, dict[Stream, Mark]] = {}

    def copy(self) -> "Places":
        """Another one that says the same."""
        other = Places(self.floor)
        other.topics = {topic: dict(marks) for topic, marks in self.topics.items()}
        return other

    def mark(self, topic: str, stream: Stream) -> Mark:
        """How far a stream is read."""
        return self.topics.get(topic, {}).get(stream, START)

    def unread(self, topic: str, stream: Stream, lo: int, hi: int) -> list[tuple[int, int, bool]]:
        """Which of these numbers were never taken, in order, and whether they come late."""
        mark = self.mark(topic, stream)
        parts = []
        if lo < mark.next and mark.skipped:
            late = Intervals(mark.skipped).common(lo, hi)
            parts = [(start, end, True) for start, end in late]
        if hi > mark.next:
            parts.append((max(lo, mark.next), hi, False))
        return parts

    def take(self, topic: str, stream: Stream, lo: int, hi: int) -> None:
        """Note that these numbers were taken."""
        marks = self.topics.setdefault(topic, {})
        mark = marks.get(stream, START)
        skipped = mark.skipped
        if skipped and lo < mark.next:
            rest = Intervals(skipped)
            rest.remove(lo, hi)
            skipped = tuple(rest)
        marks[stream] = Mark(max(hi, mark.next), skipped)

    def move(self, topic: str, position: Position) -> None:
        """Go to where a node says its cursor is, unless we are further."""
        marks = self.topics.setdefault(topic, {})
        stream = (position.publisher, position.incarnation)
        mark = marks.get(stream, START)
        if position.next >= mark.next:
            skipped = tuple(Intervals(position.skipped)) if position.skipped else ()
            marks[stream] = Mark(position.next, skipped)

    def back(self, topic: str, stream: Stream, number: int, *, late: bool = False) -> None:
        """Undo that this number, or this one and all that follow it, was taken."""
        marks = self.topics.setdefault(topic, {})
        mark = marks.get(stream, START)
        skipped = Intervals(mark.skipped)
        if late:
            skipped.add(number, number + 1)
            marks[stream] = Mark(mark.next, tuple(skipped))
        elif number < mark.next:
            skipped.remove(number, mark.next)
            marks[stream] = Mark(number, tuple(skipped))

    def skip(self, topic: str, stream: Stream, before: int) -> None:
        """Wait no longer for what is missing of a stream below `before`."""
        self.topics[topic] = skip(self.topics.get(topic, {}), stream, before)

    def to_json(self) -> dict[str, Any]:
        """Plain values, to be stored and given to `since` later."""
        topics = {name: vector_to_json(marks) for name, marks in sorted(self.topics.items())}
        return {"floor": self.floor, "topics": topics}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Places":
        """The places in plain values; raises UsageError, in one line, if there are none."""
        floor, topics = value.get("floor"), value.get("topics")
        good = isinstance(floor, int) and not isinstance(floor, bool) and isinstance(topics, dict)
        if not good or not 0 <= floor <= TIME_MAX:  # type: ignore[operator]
            raise UsageError('no vector of a subscription: {"floor": SECONDS, "topics": {...}}')
        places = cls(floor)  # type: ignore[arg-type]
        for topic, vector in topics.items():  # type: ignore[union-attr]
            places.topics[check_topic(topic)] = vector_from_json(vector)
        return places


def _seconds(time: datetime) -> float | None:
    """Since 1970; None of a time so early or late that no clock has it."""
    try:
        return time.timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def beginning(since: Since) -> Beginning:
    """Understand what was given as `since`; raises UsageError that says what can be."""
    if isinstance(since, Mapping):
        return Beginning(None, 0, Places.from_json(since))
    if since == "all":
        return Beginning(None, 0, Places())
    if isinstance(since, str) and since in WORDS:
        return Beginning(since, 0, Places())
    seconds = _seconds(since) if isinstance(since, datetime) else since
    if isinstance(seconds, int | float) and 0 <= seconds <= TIME_MAX:
        return Beginning("time", int(seconds), Places())
    raise UsageError(f"since {since!r}: all, now, last, a vector, or a time since 1970")
