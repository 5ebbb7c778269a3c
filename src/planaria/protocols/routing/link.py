"""One end of an acknowledged link: nothing is lost, doubled or overtaken while both ends stay.

There are no sequence numbers to go round or to disagree about. A notification has an id that nobody
guesses; it is sent again until that id is acknowledged, and each copy names the id that is before
it in the queue and not acknowledged yet (`after`). Whoever receives it takes it when it knows that
one, and keeps it until then. So any two states of the two ends fit together: an id that the other
end knows is acknowledged again, one that it does not know is taken, one that never comes is given
up by its sender, and no copy names it any more.

`session` is drawn when this end comes up, and travels with everything that must not be taken for
what an end before it said.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice

from msgspec import Struct

from planaria.core.state import State, Stateful
from planaria.protocols.routing.messages import ACKNOWLEDGED_MAX, ID_BYTES, SESSIONS, STAMPS
from planaria.protocols.routing.notifications import Notification

WINDOW = 256  # notifications on their way over one link; more wait for acknowledgements
WINDOW_BYTES = 1 << 20  # of their payloads, or one: half of what a live link holds; more is dropped
RESEND_AFTER = 4  # timeouts: half an interval there, one to the receiver's timeout, half back
RESEND_MAX = 16  # it doubles up to this while nothing comes back
TRIES_MAX = 8  # counted: by then it has long been the longest
EARLY_AGE_MAX = 2 * RESEND_MAX  # timeouts for which what came early waits: it is sent again
ACKNOWLEDGE_AT_ONCE = 64  # ids; fewer wait for the timeout: a quarter of the window
LARGE = 1 << 14  # bytes of a payload that is acknowledged at once: as many fill the other window

_LENGTHS = {ID_BYTES}

UNKNOWN = -1  # the session of a neighbour that has not spoken

Knows = Callable[[bytes], bool]


class Sending(Struct):
    """A notification in the queue: timeouts until it is sent again, how often it was, its topic,
    the bytes of its payload."""

    wait: int = 0
    tries: int = 0
    topic: str = ""
    size: int = 0


class Early(Struct):
    """What came before the one that it must follow, and for how many timeouts it has waited."""

    body: Notification
    after: bytes
    waited: int = 0


class LinkState(State):
    """Both sessions, what is not acknowledged, what came early, what is to be acknowledged."""

    session: int
    theirs: int
    outgoing: dict[bytes, Sending]
    early: dict[bytes, Early]
    received: list[bytes]
    stamps: list[int]


class Link(Stateful):
    """A component: its owner keeps the notifications, and says which ids it knows."""

    __slots__ = ("early", "outgoing", "received", "session", "stamps", "theirs")

    state_type = LinkState

    def __init__(self, session: int) -> None:
        self.session, self.theirs = session, UNKNOWN
        self.outgoing: dict[bytes, Sending] = {}
        self.early: dict[bytes, Early] = {}
        self.received: list[bytes] = []
        self.stamps: list[int] = []

    # The sending end

    def offer(self, id: bytes, topic: str = "", size: int = 0) -> None:
        """Queue a notification, unless it is queued."""
        if id not in self.outgoing:
            self.outgoing[id] = Sending(topic=topic, size=size)

    def due(self) -> list[tuple[bytes, bytes]]:
        """What to send now, each with the id that it follows; then it waits to be acknowledged."""
        found, after, room = [], b"", WINDOW_BYTES
        for place, (id, it) in enumerate(self.outgoing.items()):
            if place >= WINDOW or (place and room < it.size):
                break
            room -= it.size
            if len(id) != ID_BYTES:  # a fault's, which is repaired soon: it cannot be said
                continue
            if it.wait <= 0:
                tries = it.tries if 0 <= it.tries <= TRIES_MAX else 0
                it.wait = min(RESEND_AFTER << tries, RESEND_MAX)
                it.tries = min(tries + 1, TRIES_MAX)
                found.append((id, after))
            after = id
        return found

    def acknowledge(self, ids: Iterable[bytes]) -> list[bytes]:
        """Take these out of the queue; returns those that were in it."""
        return [id for id in ids if self.outgoing.pop(id, None) is not None]

    def underway(self) -> list[bytes]:
        """The part of the queue that may be on its way."""
        return [*islice(self.outgoing, WINDOW)]

    def give_up(self, ids: Collection[bytes]) -> list[str]:
        """Take what cannot be sent any more out of the queue; returns the topics.

        Copies of what follows named it, and the receiver would wait for it: those are due again.
        """
        topics, orphaned = [], False
        kept: dict[bytes, Sending] = {}
        for id, it in self.outgoing.items():
            if id in ids:
                topics.append(it.topic)
                orphaned = True
                continue
            if orphaned:
                it.wait, orphaned = 0, False
            kept[id] = it
        self.outgoing = kept
        return topics

    # The receiving end

    def takes(self, body: Notification, after: bytes, knows: Knows) -> bool:
        """Is it this one's turn? One that came early is kept, as far as there is room."""
        if not after or knows(after):
            self.early.pop(body.id, None)
            return True
        if body.id in self.early or len(self.early) < WINDOW:
            self.early[body.id] = Early(body, after)
        return False

    def ready(self, knows: Knows) -> Iterator[Notification]:
        """What waited for one that is known by now, one after the other, as old as it is."""
        while True:
            found = next((id for id, it in self.early.items() if knows(it.after)), None)
            if found is None:
                return
            it = self.early.pop(found)
            it.body.age += it.waited
            yield it.body

    def got(self, id: bytes) -> None:
        """Acknowledge a notification, the first or another copy of it."""
        if id not in self.received and len(self.received) < ACKNOWLEDGED_MAX:
            self.received.append(id)

    def heard(self, stamp: int) -> None:
        """Acknowledge an update that asks for it."""
        if len(self.stamps) < ACKNOWLEDGED_MAX:
            self.stamps.append(stamp)

    def acknowledgements(self) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
        """All that is to be acknowledged; what gets lost is asked for again by another copy."""
        ids = tuple(id for id in self.received if len(id) == ID_BYTES)
        stamps = tuple(stamp for stamp in self.stamps if 0 <= stamp < STAMPS)
        self.received, self.stamps = [], []
        return ids, stamps

    # Both

    def begin_anew(self, session: int) -> None:
        """The other end came up: what it held before, and was sent before, counts no more."""
        self.theirs = session
        self.outgoing, self.early, self.received = {}, {}, []

    def tick(self) -> None:
        """Time passes."""
        for place, it in enumerate(self.outgoing.values()):
            if place >= WINDOW:
                break
            it.wait -= 1
        for early in self.early.values():
            early.waited += 1
        self.early = {id: it for id, it in self.early.items() if it.waited <= EARLY_AGE_MAX}

    def repair(self) -> None:
        """Bring variables that a fault changed back into their ranges, but for the queue."""
        self.session %= SESSIONS
        early = self.early
        if early and (len(early) > WINDOW or any(not it.waited >= 0 for it in early.values())):
            fine = [(id, it) for id, it in self.early.items() if it.waited >= 0]
            self.early = dict(fine[:WINDOW])
        del self.received[ACKNOWLEDGED_MAX:], self.stamps[ACKNOWLEDGED_MAX:]

    def repair_queue(self) -> None:
        """The queue may have many thousands: it is looked through once in a timeout."""
        if self.outgoing and {*map(len, self.outgoing)} != _LENGTHS:
            self.outgoing = {id: it for id, it in self.outgoing.items() if len(id) == ID_BYTES}
        for it in self.outgoing.values():
            if not (0 <= it.wait <= RESEND_MAX and 0 <= it.tries <= TRIES_MAX):
                it.wait = it.tries = 0
            it.size = min(max(0, it.size), WINDOW_BYTES)
