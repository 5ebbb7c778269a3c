"""Questions of clients that are answered once: where to begin, ranges, how far they go."""

import os
from collections.abc import Callable

from msgspec.structs import replace

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.topics import check_filter, check_topic
from planaria.network.client.conditions import Condition
from planaria.network.client.messages import (
    AskExtent,
    AskVector,
    ExtentIs,
    Lack,
    Piece,
    Pieces,
    Read,
    Resolve,
    Resolved,
    VectorIs,
    in_parts,
    to_wire,
)
from planaria.network.gate.extents import extents_of
from planaria.network.gate.pieces import (
    PIECES_BYTES,
    PIECES_PUBLICATIONS,
    READ_BYTES,
    lacks_of,
    moved,
    pieces_of,
    sealed,
    vector_of,
    within,
)
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import Session
from planaria.network.gate.warden import Warden
from planaria.network.rights import SUBSCRIBE
from planaria.protocols.publications.holdings import Holdings
from planaria.records.batches import Lacks
from planaria.records.positions import Mark, Vector
from planaria.records.store import Store

WAIT_SECONDS = 10.0  # for this node to be able to answer; then another may be
WAIT_MILLISECONDS_MAX = 10_000  # for which a question for news may wait
SLACK_SECONDS = 60  # by which the clock of a new publisher may be slow and not lose its first words

HERE, NOBODY, ELSEWHERE, NOT_YET = "here", "nobody", "elsewhere", "not yet"  # who has a copy

Try = Callable[[], bool]  # answers if it can: done?


class Waiting:
    """A question that cannot be answered yet."""

    __slots__ = ("attempt", "request", "session", "until")

    def __init__(self, session: Session, request: int, attempt: Try, until: float) -> None:
        self.session, self.request, self.attempt, self.until = session, request, attempt, until


class Queries:
    """Answers what can be answered, and keeps the rest for a while."""

    def __init__(
        self,
        memberships: Memberships,
        clock: Callable[[], float],
        wall: Callable[[], float],
        interval: float,
        warden: Warden,
    ) -> None:
        self._warden = warden
        self.memberships, self._clock = memberships, clock
        self._wall, self._interval = wall, interval
        self._waiting: list[Waiting] = []
        self._news: dict[str, list[Waiting]] = {}  # questions that wait for a topic to change
        self._nonce = os.urandom(8)  # of this process: versions of another one mean nothing here

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._news.values()))

    def on_timeout(self) -> None:
        """Try again what could not be answered."""
        now = self._clock()
        waiting, self._waiting = self._waiting, []
        self._waiting += [one for one in waiting if not self._done(one, now)]
        for topic in list(self._news):
            self.on_news(topic)

    def on_news(self, topic: str) -> None:
        """A topic has changed: answer who waits for that."""
        if topic in self._news:
            now, waiting = self._clock(), self._news.pop(topic)
            rest = [one for one in waiting if not self._done(one, now)]
            if rest:
                self._news[topic] = rest

    def _done(self, one: Waiting, now: float) -> bool:
        """Answer if possible; if it takes too long, say that another node may."""
        if one.session.closed or self._attempted(one):
            return True
        if now >= one.until:
            reason = "this node is not up to date on that yet: ask another"
            one.session.fail(one.request, "elsewhere", reason)
        return now >= one.until

    def _attempted(self, one: Waiting) -> bool:
        try:
            return one.attempt()
        except UsageError as error:
            one.session.fail(one.request, "usage", str(error))
        except CapacityExceeded as error:
            one.session.fail(one.request, "full", str(error))
        return True

    def attempt(self, session: Session, request: int, attempt: Try) -> None:
        """Answer now, or as soon as that is possible; raises what the first attempt does."""
        if not attempt():
            until = self._clock() + WAIT_SECONDS
            self._waiting.append(Waiting(session, request, attempt, until))

    # Where to begin

    def resolve(self, session: Session, message: Resolve) -> None:
        """Vectors to begin at; for `now` and `last` of a node that is up to date."""
        pattern = check_filter(message.pattern)
        if message.since == "all":
            session.answer(Resolved(message.request, {}, 0, {}))
        elif message.since == "time":
            session.answer(Resolved(message.request, {}, max(0, message.time), {}))
        elif message.since in ("now", "last"):
            self.memberships.join(pattern)
            self.attempt(
                session, message.request, lambda: self._resolved(session, message, pattern)
            )
        else:
            raise UsageError(f"since {message.since!r}: all, now, last or time")

    def _resolved(self, session: Session, message: Resolve, pattern: str) -> bool:
        if not self.memberships.settled(pattern, self._interval):
            return False
        verdicts = {
            topic: self._warden.refusal(session, SUBSCRIBE, topic)
            for topic in self.memberships.matching(pattern)
        }
        if None in verdicts.values():
            return False
        topics = [topic for topic, refusal in verdicts.items() if not refusal]
        vectors = {topic: to_wire(self._holdings(topic).ask(Store.front)) for topic in topics}
        found = {topic: self._last(topic) for topic in topics} if message.since == "last" else {}
        last = {topic: piece for topic, piece in found.items() if piece is not None}
        floor = max(1, int(self._wall()) - SLACK_SECONDS)
        parts = [Resolved(message.request, part, floor, {}, True) for part in in_parts(vectors)]
        parts += [Resolved(message.request, {}, floor, some, True) for some in _divided(last)]
        session.open += len(parts) - 1
        for part in [*parts[:-1], replace(parts[-1], more=False)]:
            session.answer(part)
        return True

    def _last(self, topic: str) -> Piece | None:
        one = self._holdings(topic).ask(Store.retained)
        if one is None:
            return None
        stream, number = (one.publisher, one.incarnation), one.sequence
        place, after = {stream: Mark(number)}, {stream: Mark(number + 1)}
        for part in self._holdings(topic).read(place, after, only=[stream]).slices:
            if part.record.signed:  # which nobody could see of a part
                return Piece(part.record.data, number, number + 1)
        return Piece(sealed([one], one.timestamp // 1_000_000), number, number + 1)

    def _holdings(self, topic: str) -> Holdings:
        return self.memberships.ring.peer.topics[topic].history.holdings

    # Ranges

    def read(self, session: Session, message: Read) -> None:
        """A range of one topic as far as it is here, and what of it is not."""
        check_topic(message.topic)
        after = vector_of(message.after)
        to = None if message.to is None else vector_of(message.to)
        condition = None if message.where is None else Condition(message.where)

        def attempt() -> bool:
            where = self._whereabouts(message.topic, join=to is None)
            if where == HERE:
                session.answer(self._range(message, after, to, condition))
            elif where == NOBODY:
                session.answer(Pieces(message.request, message.topic, [], []))
            elif where == ELSEWHERE:
                reason = f"this node has no copy of {message.topic}: ask another"
                session.fail(message.request, "elsewhere", reason)
            return where != NOT_YET

        self.attempt(session, message.request, attempt)

    def _range(
        self, message: Read, after: Vector, to: Vector | None, condition: Condition | None
    ) -> Pieces:
        holdings = self._holdings(message.topic)
        limit = min(max(1, message.limit), PIECES_PUBLICATIONS)
        only = None if to is None else sorted(to)
        batch = holdings.read(
            after, to, limit=limit, floor=message.floor, only=only, size=READ_BYTES
        )
        lacks: tuple[Lack, ...] = ()
        if to is not None:
            lacks = lacks_of(holdings.ask(lambda store: _lacks(store, after, batch.vector, to)))
        slices = within(batch.slices, message.times)
        pieces = pieces_of(slices, condition, message.topic, whole=message.whole)
        return Pieces(message.request, message.topic, pieces, moved(after, batch.vector), lacks)

    def ask_vector(self, session: Session, message: AskVector) -> None:
        """How far a topic can be read here."""
        check_topic(message.topic)

        def attempt() -> bool:
            where = self._whereabouts(message.topic, join=True)
            if where == NOT_YET:
                return False
            vector = self._holdings(message.topic).ask(Store.vector) if where == HERE else {}
            session.answer(VectorIs(message.request, to_wire(vector)))
            return True

        self.attempt(session, message.request, attempt)

    def ask_extent(self, session: Session, message: AskExtent) -> None:
        """Which numbers of a topic are here; of the first streams, when that has changed."""
        check_topic(message.topic)
        patience = min(max(0, message.wait), WAIT_MILLISECONDS_MAX) / 1000
        waits = message.known != b"" and message.after is None
        until = self._clock() + patience * waits

        def attempt() -> bool:
            absent = not message.join and self.memberships.get(message.topic) is None
            where = NOBODY if absent else self._whereabouts(message.topic, join=message.join)
            if where == NOT_YET:
                return False
            answer = self._extents(message, here=where == HERE)
            if waits and answer.version == message.known:
                if self._clock() < until:
                    return False
                answer = ExtentIs(message.request, [], answer.version)
            session.answer(answer)
            return True

        if attempt():
            return
        one = Waiting(session, message.request, attempt, self._clock() + WAIT_SECONDS)
        if self._clock() < until:
            self._news.setdefault(message.topic, []).append(one)
        else:
            self._waiting.append(one)

    def _extents(self, message: AskExtent, *, here: bool) -> ExtentIs:
        if not here:
            return ExtentIs(message.request, [], self._nonce)
        holdings = self._holdings(message.topic)
        version = self._nonce + holdings.version.to_bytes(8, "big")
        if version == message.known and message.after is None:
            return ExtentIs(message.request, [], version)
        found, more = holdings.ask(
            lambda store: extents_of(store.index, message.time, message.after)
        )
        return ExtentIs(message.request, found, version, more)

    def _whereabouts(self, topic: str, *, join: bool) -> str:
        """Is a copy of a topic here? If somebody else has one, `join` to get it, or say so."""
        if self.memberships.get(topic) is not None:
            ready = not join or self.memberships.settled(topic, self._interval)
            return HERE if ready else NOT_YET
        known = self.memberships.ring.directory.members(topic)
        if known is None:
            return NOT_YET
        if not known[1]:
            return NOBODY
        if not join:
            return ELSEWHERE
        self.memberships.join(topic)
        return NOT_YET


def _lacks(store: Store, after: Vector, reached: Vector, to: Vector) -> Lacks:
    """What is expired of all that was asked for, and what may still come of what was not given."""
    return Lacks(store.lacks(reached, to).coming, store.lacks(after, to).expired)


def _divided(last: dict[str, Piece]) -> list[dict[str, Piece]]:
    """Retained publications, divided so that each part fits into a frame."""
    parts: list[dict[str, Piece]] = []
    size = PIECES_BYTES
    for topic, piece in last.items():
        size += len(piece.record)
        if size > PIECES_BYTES:
            parts.append({})
            size = len(piece.record)
        parts[-1][topic] = piece
    return parts
