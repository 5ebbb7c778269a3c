"""In which order a client's publications are taken: what was refused for now comes first again.

A client has many of them on their way. If a node is full for one and has room for the next, the
next would be published first. Readers of rings put that right by their numbers; others cannot.
"""

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import NamedTuple

REFUSED_MAX = 4096  # requests of one client that are to come again; of more, order is not kept
TURN_SECONDS = 30.0  # for which others wait for one that does not come again

Place = tuple[str, str]  # the overlay that a client named, if any, and a topic


class Refused(NamedTuple):
    """What is to come again at one place, by request, and when its first was last heard of."""

    requests: list[int]
    since: float


class Turns:
    """The publications of one client that a node has not answered, or refused for now."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._places: dict[int, Place] = {}  # of what is not answered
        self._refused: dict[Place, Refused] = {}
        self._count = 0  # in it

    def begin(self, request: int, place: Place) -> bool:
        """Is it the turn of a publication? If not, it is refused, and to come again."""
        self._places[request] = place
        if self.waits(request, place):
            return False
        found = self._refused.pop(place, None)
        if found is not None:
            taken = bisect_right(found.requests, request)
            del found.requests[:taken]
            self._count -= taken
            if found.requests:
                self._refused[place] = Refused(found.requests, self._clock())
        return True

    def forget(self, request: int, place: Place) -> None:
        """Whoever takes it keeps no turns."""
        self._places.pop(request, None)
        found = self._refused.pop(place, None)
        self._count -= 0 if found is None else len(found.requests)

    def waits(self, request: int, place: Place) -> bool:
        """Is something to come again that was published before this?"""
        found = self._refused.get(place)
        return (
            found is not None
            and request > found.requests[0]
            and self._clock() - found.since < TURN_SECONDS
        )

    def end(self, request: int, *, refused: bool) -> None:
        """A request is answered; `refused`: its client offers it again."""
        place = self._places.pop(request, None)
        if place is None or not refused or self._count >= REFUSED_MAX:
            return
        found = self._refused.setdefault(place, Refused([], self._clock()))
        if request not in found.requests:
            insort(found.requests, request)
            self._count += 1
