"""Tails in the overlays beside `ring`, and what came for them that they did not get yet."""

from collections import Counter, deque
from collections.abc import Callable

from planaria.network.client.messages import Passing, Tail, Told
from planaria.network.gate.session import Session
from planaria.network.overlays.part import LivePart

BEHIND_BYTES_MAX = 8 << 20  # of what one tail's client has not taken yet
UNJUDGED_BYTES_MAX = 8 << 20  # of what nobody has said yet who may read it
UNJUDGED_MAX = 4096  # of them

Refusal = Callable[[Session, str], str | None]  # why a client may not read; None: not known yet
Lost = Counter[str]  # how many publications, by overlay


class Follower:
    """One tail of a client; `client` is its number in an overlay that tells clients apart."""

    __slots__ = (
        "behind", "bytes", "client", "lost", "notices", "overlay", "pattern", "request",
        "session", "tailing", "unjudged", "wanted", "where", "wish",
    )  # fmt: skip

    def __init__(self, session: Session, asked: Tail, pattern: str, part: LivePart, client: int):
        self.session, self.request, self.pattern = session, asked.request, pattern
        self.overlay, self.wish = part.overlay, part.wish(pattern)
        self.where, self.notices, self.client = asked.where, asked.notices, client
        self.wanted = asked.overlay
        self.behind: deque[Passing] = deque()
        self.bytes = self.lost = 0
        self.unjudged = 0  # how many parcels wait for what rights say
        self.tailing = False  # was the client told that whatever is published now comes?

    @property
    def even(self) -> bool:
        """Was the client sent all that there is?"""
        return not (self.behind or self.unjudged or (self.notices and self.lost))

    def pass_on(self, message: Passing, size: int) -> int:
        """Send, or keep for when there is room; returns how many publications were lost."""
        if not self.behind and self.session.send(message):
            return 0
        if self.bytes + size > BEHIND_BYTES_MAX:
            return self.lose(message)
        self.behind.append(message)
        self.bytes += size
        return 0

    def lose(self, message: Passing) -> int:
        """There is no room for it; the client is told how many publications it lost."""
        lost = sum(it.hi - it.lo for it in message.pieces)
        self.lost += lost
        return lost

    def flush(self) -> None:
        """The client takes more."""
        while self.behind and self.session.send(self.behind[0]):
            self.bytes -= size_of(self.behind.popleft())
        if self.lost and not self.behind:
            notice = Told(self.request, "", "gap", {"lost": self.lost})
            if not self.notices or self.session.send(notice):
                self.lost = 0


class Unjudged:
    """What came while it was not known whether a tail's client may read its topic.

    Of each tail and topic in the order in which it came; of too much, what waited for longest is
    lost.
    """

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self._kept: dict[Follower, dict[str, deque[Passing]]] = {}
        self._count = self._bytes = 0

    def __len__(self) -> int:
        return self._count

    def holds(self, one: Follower, topic: str) -> bool:
        """Does something wait for a tail, so that what follows must wait behind it?"""
        return topic in self._kept.get(one, ())

    def add(self, one: Follower, message: Passing) -> Lost:
        """Keep one more; returns how many were lost for want of room, by overlay."""
        self._kept.setdefault(one, {}).setdefault(message.topic, deque()).append(message)
        one.unjudged += 1
        self._count += 1
        self._bytes += size_of(message)
        lost: Lost = Counter()
        while self._bytes > UNJUDGED_BYTES_MAX or self._count > UNJUDGED_MAX:
            first = next(iter(self._kept))
            oldest = self._first(first, next(iter(self._kept[first])))
            lost[first.overlay] += first.lose(oldest)
        return lost

    def judge(self) -> Lost:
        """Pass on what may be read by now; returns how many were lost at that, by overlay."""
        lost: Lost = Counter()
        for one, topic in [(one, topic) for one, topics in self._kept.items() for topic in topics]:
            refusal = self._refusal(one.session, topic)
            while refusal is not None and self.holds(one, topic):
                message = self._first(one, topic)
                if not refusal:
                    lost[one.overlay] += one.pass_on(message, size_of(message))
        return lost

    def drop(self, one: Follower) -> None:
        """A tail ended."""
        for topic in [*self._kept.get(one, ())]:
            while self.holds(one, topic):
                self._first(one, topic)

    def _first(self, one: Follower, topic: str) -> Passing:
        topics = self._kept[one]
        message = topics[topic].popleft()
        one.unjudged -= 1
        self._count -= 1
        self._bytes -= size_of(message)
        if not topics[topic]:
            del topics[topic]
        if not topics:
            del self._kept[one]
        return message


def size_of(message: Passing) -> int:
    """The bytes that it holds."""
    return sum(len(it.record) for it in message.pieces)
