"""In which order a client's publications are taken: what was refused for now comes first again.

A client has many of them on their way. If a node is full for one and has room for the next, the
next would be published first. Readers of rings put that right by their numbers; others cannot.
"""

from bisect import insort
from collections.abc import Callable
from typing import NamedTuple

REFUSED_MAX = 4096  # requests of one client that are to come again; of more, order is not kept
TURN_SECONDS = 30.0  # for which others wait for one that does not come again


class Refused(NamedTuple):
    """What is to come again on one topic, by request, and when its first was last heard of."""

    requests: list[int]
    since: float


class Turns:
    """The publications of one client that a node has not answered, or refused for now."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._topics: dict[int, str] = {}  # of what is not answered
        self._refused: dict[str, Refused] = {}
        self._count = 0  # in it

    def begin(self, request: int, topic: str) -> bool:
        """Is it the turn of a publication? If not, it is refused, and to come again."""
        self._topics[request] = topic
        if self.waits(request, topic):
            return False
        found = self._refused.pop(topic, None)
        if found is not None:
            later = [it for it in found.requests if it > request]
            self._count -= len(found.requests) - len(later)
            if later:
                self._refused[topic] = Refused(later, self._clock())
        return True

    def waits(self, request: int, topic: str) -> bool:
        """Is something to come again that was published before this?"""
        found = self._refused.get(topic)
        return (
            found is not None
            and request > found.requests[0]
            and self._clock() - found.since < TURN_SECONDS
        )

    def end(self, request: int, *, refused: bool) -> None:
        """A request is answered; `refused`: its client offers it again."""
        topic = self._topics.pop(request, None)
        if topic is None or not refused or self._count >= REFUSED_MAX:
            return
        found = self._refused.setdefault(topic, Refused([], self._clock()))
        if request not in found.requests:
            insort(found.requests, request)
            self._count += 1
