"""Tails whose pattern a charter has put into another overlay since they began.

Such a tail is ended, and its client asks again: what is published comes in the other overlay.
Supervisors are asked what is laid down for whatever is followed here as often as an answer is too
old to be believed (`laid.FRESH_SECONDS`), in one question of up to 64 names at each timeout: while
no more than about 600 are followed, a tail is ended within 10 s, an answer and two timeouts.
"""

from collections.abc import Callable

from planaria.core.errors import UsageError
from planaria.network.client.messages import Failed
from planaria.network.gate.cursors import Tail
from planaria.network.gate.followers import Follower
from planaria.network.gate.laid import Laid, Overlays
from planaria.network.gate.others import Others
from planaria.network.gate.tails import Tails

PATTERNS_MAX = 1024  # that are looked at in one timeout; then those that waited for longest


class Moves:
    """Looks after the tails of one node."""

    def __init__(
        self, overlays: Overlays, tails: Tails, others: Others | None, clock: Callable[[], float]
    ) -> None:
        self._overlays, self._tails, self._others, self._clock = overlays, tails, others, clock
        self._told: dict[str, float] = {}  # when it was last known where a pattern is
        self._doubted: set[Tail | Follower] = set()  # were elsewhere when they were looked at last

    def on_timeout(self) -> None:
        """End what is elsewhere, of those that can be looked at now."""
        served: dict[str, list[Tail | Follower]] = {}
        for one in (*self._tails, *(self._others or ())):
            asks = self._others is not None or one.session.name is not None  # as `Requests` does
            if asks and one.session.obeys:
                served.setdefault(one.pattern, []).append(one)
        due = sorted(served, key=lambda it: self._told.get(it, 0.0))[:PATTERNS_MAX]
        found, now = self._overlays.look(due), self._clock()
        self._told = {it: now if it in found else self._told.get(it, 0.0) for it in served}
        doubted = {it for it in self._doubted if it.pattern in served and it.pattern not in found}
        for pattern, laid in found.items():
            doubted.update(one for one in served[pattern] if not self._is_settled(one, laid))
        self._doubted = doubted

    def _is_settled(self, one: Tail | Follower, laid: Laid) -> bool:
        """Is a tail where it should be, or ended? Not before it is seen a second time: of several
        supervisors, one that knows least may be the first to answer. What was in the former
        overlay goes to the client first, in the same queue."""
        failed = _failed(one, laid)
        if failed is None:
            return True
        if one not in self._doubted or not one.even or not one.session.send(failed):
            return False
        if isinstance(one, Tail):
            self._tails.stop(one.session, one.request)
        elif self._others is not None:
            self._others.stop(one.session, one.request)
        return True


def _failed(one: Tail | Follower, laid: Laid) -> Failed | None:
    """What the client of a tail that is elsewhere is told; None if it is where it should be."""
    try:
        overlay = laid.agreed(one.pattern, one.wanted)
    except UsageError as error:
        return Failed(one.request, "usage", str(error))
    if overlay == one.overlay:
        return None
    return Failed(
        one.request, "moved", f"{one.pattern!r} is in {overlay} now, not in {one.overlay}"
    )
