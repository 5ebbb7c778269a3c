"""Offsets of a stream are vectors: how far each publisher of each topic was read.

Spark compares offsets by their text, keeps them in its checkpoint and hands them back. The rows of
a batch are what its end has taken and its start has not: a set of positions, so the same at every
node and at every time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from planaria.core.errors import UsageError
from planaria.core.topics import check_topic
from planaria.records.positions import (
    START,
    Interval,
    Intervals,
    Mark,
    Vector,
    vector_from_json,
    vector_to_json,
)
from planaria.records.record import Stream

VERSION = 1
FINGERPRINT_BYTES = 8
FORM = '{"TOPIC": {"PUBLISHER/INCARNATION": NEXT}}'  # of positions, as people write them

Vectors = Mapping[str, Vector]  # by topic


class Range(NamedTuple):
    """Numbers of one stream from `lo` to before `hi`.

    `unsure`: nobody was promised them, for the stream was not read before, or they were skipped;
    so it is no loss if they are expired.
    """

    topic: str
    stream: Stream
    lo: int
    hi: int
    unsure: bool = False

    @property
    def size(self) -> int:
        """How many they are."""
        return self.hi - self.lo


class Offset(NamedTuple):
    """How far a subscription is."""

    fingerprint: str
    vectors: Vectors

    def to_json(self) -> dict[str, Any]:
        """Plain values whose text is always the same: keys ascend."""
        found = {topic: vector_to_json(self.vectors[topic]) for topic in sorted(self.vectors)}
        return {
            "s": {topic: dict(sorted(marks.items())) for topic, marks in found.items() if marks},
            "sub": self.fingerprint,
            "v": VERSION,
        }

    @classmethod
    def from_json(cls, value: object) -> "Offset":
        """The offset in plain values; raises UsageError, in one line, if there is none."""
        if not isinstance(value, dict) or value.get("v") != VERSION:
            raise UsageError(f"no offset of version {VERSION}: {json.dumps(value)[:80]}")
        if not isinstance(value.get("sub"), str):
            raise UsageError("an offset without the fingerprint of its subscription")
        return cls(value["sub"], vectors_from_json(value.get("s")))


def fingerprint(patterns: Iterable[str]) -> str:
    """The same for the same patterns, in whatever order."""
    text = "\n".join(sorted(patterns)).encode()
    return blake2b(text, digest_size=FINGERPRINT_BYTES, person=b"planaria spark").hexdigest()


def vectors_from_json(value: object) -> dict[str, dict[Stream, Mark]]:
    """Vectors by topic in plain values; raises UsageError if there are none."""
    if not isinstance(value, dict):
        raise UsageError("positions are an object with topics")
    return {check_topic(topic): vector_from_json(vector) for topic, vector in value.items()}


def mine(value: object, patterns: Iterable[str]) -> Offset:
    """The offset of this subscription in plain values.

    Raises UsageError for one of another: Spark would go on from it silently.
    """
    offset, own = Offset.from_json(value), fingerprint(patterns)
    if offset.fingerprint != own:
        raise UsageError(
            f"this checkpoint is of another subscription ({offset.fingerprint}) than "
            f"{', '.join(sorted(patterns))} ({own}): give the query its own checkpointLocation"
        )
    return offset


def taken(mark: Mark, lo: int = 0) -> Iterator[Interval]:
    """The numbers from `lo` on that a reader at this mark has read."""
    for start, end in mark.skipped:
        if end > lo:
            if start > lo:
                yield lo, start
            lo = end
    if lo < mark.next:
        yield lo, mark.next


def between(start: Vectors, end: Vectors) -> list[Range]:
    """What `end` has read and `start` has not, by topic, stream and number."""
    found = []
    for topic in sorted(end):
        before = start.get(topic, {})
        for stream in sorted(end[topic]):
            mark, after = before.get(stream, START), end[topic][stream]
            if mark == after:
                continue
            fresh = stream not in before
            if not mark.skipped and not after.skipped:
                if mark.next < after.next:
                    found.append(Range(topic, stream, mark.next, after.next, fresh))
                continue
            had = Intervals(taken(mark))
            for part in taken(after):
                for lo, hi in had.missing(*part):
                    found.append(Range(topic, stream, lo, hi, fresh or hi <= mark.next))
    return found


def union(one: Mark, other: Mark) -> Mark:
    """What either of two readers has read."""
    if not one.skipped and not other.skipped:
        return one if one.next >= other.next else other
    have = Intervals([*taken(one), *taken(other)])
    end = max(one.next, other.next)
    return Mark(end, tuple(have.missing(0, end)))


def merged(one: Vectors, other: Vectors) -> dict[str, dict[Stream, Mark]]:
    """What either of two readers has read, of all topics."""
    found = {topic: dict(vector) for topic, vector in one.items()}
    for topic, vector in other.items():
        mine = found.setdefault(topic, {})
        for stream, mark in vector.items():
            mine[stream] = union(mine[stream], mark) if stream in mine else mark
    return found


def clipped(vectors: Vectors, bound: Vectors) -> dict[str, dict[Stream, Mark]]:
    """What a reader has read of what is within `bound`."""
    found: dict[str, dict[Stream, Mark]] = {}
    for topic, vector in vectors.items():
        for stream, mark in vector.items():
            limit = bound.get(topic, {}).get(stream)
            if limit is not None:
                found.setdefault(topic, {})[stream] = _intersection(mark, limit)
    return found


def _intersection(one: Mark, other: Mark) -> Mark:
    end = min(one.next, other.next)
    if not one.skipped and not other.skipped:
        return Mark(end)
    have = Intervals(taken(one))
    common = [part for lo, hi in taken(other) for part in have.common(lo, hi)]
    end = max([0, *(hi for _, hi in common)])
    return Mark(end, tuple(Intervals(common).missing(0, end)))
