"""Numbers that no node has, and since when. Pure: whoever asks hands in the time.

A number that may still come is waited for. If nobody has it for long (its publisher died before it
reached anyone) readers pass it over, as subscriptions do.
"""

from collections.abc import Mapping
from typing import NamedTuple

from planaria.network.client.lacks import GIVE_UP_SECONDS
from planaria.records.positions import START, Mark
from planaria.records.record import Stream
from planaria.spark.source.offsets import Range, Vectors


class Hole(NamedTuple):
    """Numbers of one stream that are missing since some time."""

    lo: int
    hi: int
    since: float


class Holes:
    """The holes of a subscription; what is left of one that shrinks is as old as it was."""

    def __init__(self) -> None:
        self.passed: Vectors = {}  # how far the reader is: it waits for nothing before
        self._found: dict[str, dict[Stream, list[Hole]]] = {}
        self._reported: set[Range] = set()

    def note(self, topic: str, marks: Mapping[Stream, Mark], now: float) -> None:
        """These numbers of a topic are missing at this time."""
        before = self._found.get(topic, {})
        self._found[topic] = {
            stream: [
                Hole(lo, hi, _since(before.get(stream, ()), lo, hi, now)) for lo, hi in mark.skipped
            ]
            for stream, mark in marks.items()
            if mark.skipped
        }

    def oldest(self, topic: str, now: float) -> float:
        """For how long the oldest hole of a topic is there."""
        found = self._found.get(topic, {}).values()
        return max((now - hole.since for them in found for hole in them), default=0.0)

    def passable(self, topic: str, stream: Stream, lo: int, hi: int, now: float) -> bool:
        """Is this hole not worth waiting for?"""
        if hi <= self.passed.get(topic, {}).get(stream, START).next:
            return True
        held = self._found.get(topic, {}).get(stream, ())
        return now - _since(held, lo, hi, now) >= GIVE_UP_SECONDS

    def given_up(self, now: float) -> list[Range]:
        """The holes that are passed over from now on; each is told once."""
        old = []
        for topic, streams in self._found.items():
            for stream, holes in streams.items():
                end = self.passed.get(topic, {}).get(stream, START).next
                for lo, hi, since in holes:
                    if hi > end and now - since >= GIVE_UP_SECONDS:
                        old.append(Range(topic, stream, lo, hi))
        reported, self._reported = self._reported, {*old}
        return [it for it in old if it not in reported]


def _since(holes: "list[Hole] | tuple[()]", lo: int, hi: int, now: float) -> float:
    """When the hole appeared of which this is all, or what is left."""
    return min((it.since for it in holes if it.lo <= lo and hi <= it.hi), default=now)
