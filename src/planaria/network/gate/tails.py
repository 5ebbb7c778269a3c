"""Tails: what comes after a client's vectors, for ever. A client that is slow costs a cursor.

All is read from the store, in each publisher's order, and stops at a number that may still come;
deliveries only say which streams have grown. Nothing is queued beyond the window of the client's
link: what it did not take is read again when it does.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from planaria.core.node import Deliver, Notice
from planaria.core.topics import matches
from planaria.network.client.messages import LACKS_MAX, Lack, Pieces, Position, Tailing, Told
from planaria.network.client.messages import Tail as Asked
from planaria.network.gate.cursors import Cursor, Tail, hole
from planaria.network.gate.pieces import (
    PIECES_BYTES,
    PIECES_PUBLICATIONS,
    moved,
    passed_over,
    pieces_of,
)
from planaria.network.gate.recent import Recent, in_order, is_counted
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import Session
from planaria.protocols.publications.deliveries import Deliveries
from planaria.protocols.publications.holdings import Holdings
from planaria.records.batches import Batch
from planaria.records.positions import START, Mark
from planaria.records.record import Stream
from planaria.records.retained import Retained
from planaria.records.store import Store

STREAMS_AT_ONCE = 256  # looked at for one frame
FRAMES_PER_TURN = 16  # of all tails, before the loop serves others
WHOLE_SECONDS = 5.0  # after which all streams are looked at, whatever was delivered
HOLE_SECONDS = 1.0  # after which a client is told what its node lacks


class Tails:
    """All tails of all clients of a node."""

    def __init__(
        self,
        memberships: Memberships,
        clock: Callable[[], float],
        soon: Callable[[Callable[[], None]], object],
        refusal: Callable[[Session, str], str | None] = lambda *_: "",
        hears: Callable[[Session, str], bool] = lambda *_: True,
    ) -> None:
        """`refusal`: why a client may not read a topic; None if that is not known yet.

        `hears`: may a client know that there is such a topic?
        """
        self._refusal, self._hears = refusal, hears
        self.memberships, self._clock, self._soon = memberships, clock, soon
        self._all: dict[Tail, None] = {}
        self._topics: dict[str, list[Tail]] = {}
        self._known: set[str] = set()  # topics that tails were compared with
        self._awake: dict[Tail, None] = {}
        self._pumping = False
        self._answers: dict[object, Batch] = {}  # of this turn: who is as far gets the same
        self._replaced: dict[str, Retained | None] = {}  # of this turn: what others replaced
        self._recent = Recent()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Tail]:
        return iter(self._all)

    def of(self, topic: str) -> list[Tail]:
        """The tails that follow a topic."""
        return self._topics.get(topic, [])

    def patterns(self) -> set[str]:
        """What is followed."""
        return {tail.pattern for tail in self._all}

    # Life

    def begin(self, session: Session, asked: Asked, pattern: str) -> None:
        """Follow a pattern of which this node takes part in all topics, or will."""
        tail = Tail(session, asked, pattern)
        self.stop(session, asked.request)
        session.tails[asked.request] = tail
        self._all[tail] = None
        for topic in self.memberships.matching(pattern):
            self._follow(tail, topic)
        self._say_tailing(tail)

    def stop(self, session: Session, request: int) -> None:
        """End a tail, if it is there."""
        tail = session.tails.pop(request, None)
        if tail is not None:
            session.open -= not tail.tailing
            del self._all[tail]
            self._recent = self._recent if self._all else Recent()
            self._awake.pop(tail, None)
            for topic in tail.cursors:
                self._topics[topic].remove(tail)
                if tail.compacted:
                    self._retain_no_longer(topic)
                if not self._topics[topic]:
                    del self._topics[topic]

    def _retain_no_longer(self, topic: str) -> None:
        """Know no more which publications were replaced, unless somebody else wants to."""
        wanted = any(tail.compacted for tail in self._topics[topic])
        if not wanted and topic in self.memberships.ring.peer.topics:
            self._holdings(topic).store.retain_no_longer()

    def gone(self, session: Session) -> None:
        """A client is gone."""
        for request in list(session.tails):
            self.stop(session, request)

    # What happens

    def on_deliver(self, effect: Deliver) -> None:
        """Something came: these streams have grown."""
        tails = self._topics.get(effect.topic)
        if not tails:
            return
        said = effect.publications
        if isinstance(said, Deliveries):
            grown = dict.fromkeys(part.record.stream for part in said.slices)
            if is_counted(self._holdings(effect.topic).store.index.window):
                self._recent.add(effect.topic, said.slices)
        else:
            grown = dict.fromkeys(self._holdings(effect.topic).store.index.names)
        for tail in tails:
            tail.cursors[effect.topic].grown.update(grown)
            tail.grown[effect.topic] = None
            self.wake(tail)

    def on_notice(self, effect: Notice) -> None:
        """Tell whoever asked for notices; of those that a client does not take, their number."""
        for tail in self._topics.get(effect.topic, ()):
            if tail.notices and self._refusal(tail.session, effect.topic) == "":
                notice = Told(tail.request, effect.topic, effect.kind, effect.detail)
                tail.missed += not tail.session.send(notice)

    def on_timeout(self) -> None:
        """New topics, holes that last, and what no delivery told."""
        now = self._clock()
        self._compare()
        self.judge_anew()
        for tail in list(self._all):
            self._say_tailing(tail)
            self._say_missed(tail)
            self._say_stable(tail)
            for topic in list(tail.behind):
                self._say_behind(tail, topic, now)
            if now - tail.looked > WHOLE_SECONDS:
                tail.looked = now
                for topic in tail.cursors:
                    self._look_at_all(tail, topic)
                self.wake(tail)

    def judge_anew(self) -> None:
        """Look again at what clients were not allowed to read."""
        for tail in [it for it in self._all if it.held_back]:
            tail.grown.update(dict.fromkeys(tail.held_back))
            self.wake(tail)

    def on_joined(self) -> None:
        """Memberships have changed."""
        self._compare()
        for tail in list(self._all):
            self._say_tailing(tail)

    def wake(self, tail: Tail) -> None:
        """Read on for this tail soon."""
        self._awake[tail] = None
        if not self._pumping:
            self._pumping = True
            self._soon(self._pump)

    def _compare(self) -> None:
        """Topics that this node has joined since: who wants them?"""
        topics = self.memberships.ring.peer.topics
        new = [topic for topic in topics if topic not in self._known]
        self._known = {*topics} if new or len(topics) != len(self._known) else self._known
        for topic in new:
            for tail in self._all:
                if topic not in tail.cursors and matches(tail.pattern, topic):
                    self._follow(tail, topic)

    def _follow(self, tail: Tail, topic: str) -> None:
        tail.cursors[topic] = Cursor(tail.vectors.pop(topic, {}))
        self._topics.setdefault(topic, []).append(tail)
        self._look_at_all(tail, topic)
        self.wake(tail)

    def _look_at_all(self, tail: Tail, topic: str) -> None:
        """Look at every stream, unless the store is as it was when that was done last."""
        if topic not in self.memberships.ring.peer.topics:
            return
        cursor, index = tail.cursors[topic], self._holdings(topic).store.index
        seen = (index, index.publications, len(index.shown), index.window)
        if seen != cursor.seen:
            cursor.seen = seen
            cursor.grown.update(dict.fromkeys(index.names))
            tail.grown[topic] = None
            if len(cursor.marks) > 2 * len(index.lanes) + STREAMS_AT_ONCE:
                cursor.marks = {it: mark for it, mark in cursor.marks.items() if it in index.lanes}

    def _holdings(self, topic: str) -> Holdings:
        return self.memberships.ring.peer.topics[topic].history.holdings

    def _say_tailing(self, tail: Tail) -> None:
        if not tail.tailing and self.memberships.joined(tail.pattern):
            tail.tailing = True
            for topic in self.memberships.matching(tail.pattern):
                if topic not in tail.cursors:
                    self._follow(tail, topic)
            followed = [it for it in tail.cursors if self._refusal(tail.session, it) == ""]
            tail.session.answer(Tailing(tail.request, sorted(followed)))

    def _say_missed(self, tail: Tail) -> None:
        notice = Told(tail.request, "", "missed", {"notices": tail.missed})
        if tail.missed and tail.session.send(notice):
            tail.missed = 0

    def _say_stable(self, tail: Tail) -> None:
        """Tell whenever a topic's ring begins or ends to be in doubt here."""
        if not tail.notices or not tail.tailing:
            return
        for topic, cursor in tail.cursors.items():
            membership = self.memberships.get(topic)
            stable = membership is not None and membership.calm
            if stable != cursor.stable and self._refusal(tail.session, topic) == "":
                kind = "stable" if stable else "unstable"
                if tail.session.send(Told(tail.request, topic, kind, {})):
                    cursor.stable = stable

    # Reading

    def _pump(self) -> None:
        """One frame for each tail in turn, as long as there is something, up to a bound."""
        self._pumping = False
        for _ in range(FRAMES_PER_TURN):
            if not self._awake:
                break
            tail = next(iter(self._awake))
            del self._awake[tail]
            if self._send(tail):
                self._awake[tail] = None
        self._answers, self._replaced = {}, {}
        if self._awake:
            self._pumping = True
            self._soon(self._pump)

    def _send(self, tail: Tail) -> bool:
        """Read and send one frame; False when there is nothing to read, or no room."""
        if tail.session.connection.link.busy:
            return False  # the link says when it has room
        for topic in list(tail.grown):
            cursor = tail.cursors[topic]
            readable = cursor.grown and topic in self.memberships.ring.peer.topics
            if readable and self._may_read(tail, topic):
                return self._read(tail, topic, cursor)
            if not readable:  # nobody needs a verdict
                tail.held_back.pop(topic, None)
            del tail.grown[topic]
        return False

    def _may_read(self, tail: Tail, topic: str) -> bool:
        """Judge now: what a client may do changes. It is told once what it may not read, if it may
        hear of that."""
        refusal = self._refusal(tail.session, topic)
        if refusal == "":
            tail.held_back.pop(topic, None)
            return True
        knows = tail.held_back.setdefault(topic, None)
        if refusal is None or knows:
            return False
        tail.held_back[topic] = False
        if tail.notices and self._hears(tail.session, topic):
            message = Told(tail.request, topic, "refused", {"reason": refusal})
            tail.held_back[topic] = tail.session.send(message)
        return False

    def _read(self, tail: Tail, topic: str, cursor: Cursor) -> bool:
        streams = list(islice(cursor.grown, STREAMS_AT_ONCE))
        after = {stream: cursor.marks[stream] for stream in streams if stream in cursor.marks}
        retained = self._retained(topic) if tail.compacted else None
        if tail.compacted and retained is None:
            return True
        batch = self._ask(topic, streams, after, tail.floor)
        if self._recent and not tail.compacted:
            batch = self._with_recent(topic, after, batch, tail.floor)
        pieces = pieces_of(batch.slices, tail.condition, topic, retained, whole=tail.whole)
        places = moved(after, batch.vector)
        lacks = passed_over(after, batch) if tail.notices else ()
        said = bool(pieces or lacks)
        if said and not tail.session.send(Pieces(tail.request, topic, pieces, places, lacks)):
            return False
        cursor.marks.update(batch.vector)
        del tail.grown[topic]
        if not said and places:
            tail.behind[topic] = None
            cursor.unsaid.update(dict.fromkeys((it.publisher, it.incarnation) for it in places))
        for stream in streams:
            del cursor.grown[stream]
        if batch.more and places:  # whoever was read goes to the end
            read = dict.fromkeys((it.publisher, it.incarnation) for it in places)
            unread = [stream for stream in streams if stream not in read]
            cursor.grown = dict.fromkeys([*unread, *cursor.grown, *read])
        else:
            self._note_holes(tail, topic, cursor, streams)
        if cursor.grown:  # after the other topics
            tail.grown[topic] = None
        return True

    def _with_recent(
        self, topic: str, after: dict[Stream, Mark], batch: Batch, floor: int
    ) -> Batch:
        """What was read, and what came in between that the topic does not keep."""
        began = {stream: after.get(stream, START) for stream in batch.vector}
        found = self._recent.of(topic, passed_over(began, batch), floor)
        return batch._replace(slices=in_order([*batch.slices, *found])) if found else batch

    def _retained(self, topic: str) -> Retained | None:
        """The last publication of each key; None if it takes another step to know, in the next
        turn."""
        if topic not in self._replaced:
            self._replaced[topic] = self._holdings(topic).ask(Store.retaining)
        return self._replaced[topic]

    def _ask(
        self, topic: str, streams: list[Stream], after: dict[Stream, Mark], floor: int
    ) -> Batch:
        """Read from the store, once in a turn for all that are as far."""
        asked = (topic, *streams, *after.items(), floor)
        batch = self._answers.get(asked)
        if batch is None:
            batch = self._answers[asked] = self._holdings(topic).read(
                after, limit=PIECES_PUBLICATIONS, floor=floor, only=streams, size=PIECES_BYTES
            )
        return batch

    # What cannot be read yet

    def _note_holes(
        self, tail: Tail, topic: str, cursor: Cursor, streams: Iterable[Stream]
    ) -> None:
        for stream in streams:
            number = self._holdings(topic).ask(partial(hole, stream, cursor.marks, tail.floor))
            if number is None:
                cursor.holes.pop(stream, None)
            elif cursor.holes.get(stream, (-1,))[0] != number:
                cursor.holes[stream] = (number, self._clock(), False)
                tail.behind[topic] = None

    def _say_behind(self, tail: Tail, topic: str, now: float) -> None:
        """Tell of holes that last, and how far was read where nothing was sent."""
        cursor = tail.cursors[topic]
        if self._refusal(tail.session, topic) != "":
            return
        self._say_holes(tail, topic, cursor, now)
        if cursor.unsaid:
            self._say_unsaid(tail, topic, cursor)
        if not cursor.unsaid and all(reported for _, _, reported in cursor.holes.values()):
            del tail.behind[topic]

    def _say_holes(self, tail: Tail, topic: str, cursor: Cursor, now: float) -> None:
        """Tell of each hole once: the client may ask others, or pass over it."""
        due = [
            (stream, number)
            for stream, (number, since, reported) in cursor.holes.items()
            if not reported and now - since > HOLE_SECONDS
        ][:LACKS_MAX]
        if not due or topic not in self.memberships.ring.peer.topics:
            return
        lacks = []
        for stream, number in due:
            ahead = self._ahead(topic, stream, number)
            if ahead is not None:
                lacks.append(Lack(*stream, number, ahead, False))
        if lacks and not tail.session.send(Pieces(tail.request, topic, [], [], tuple(lacks))):
            return
        for stream, number in due:
            cursor.holes[stream] = (number, cursor.holes[stream][1], True)

    def _ahead(self, topic: str, stream: Stream, number: int) -> int | None:
        holdings = self._holdings(topic)
        return holdings.ask(lambda _: holdings.ahead(stream, number))

    def _say_unsaid(self, tail: Tail, topic: str, cursor: Cursor) -> None:
        """Tell how far was read where a condition left nothing to send."""
        marks = [(stream, cursor.marks.get(stream, START)) for stream in cursor.unsaid]
        places = [Position(*stream, mark.next, mark.skipped) for stream, mark in marks]
        if tail.session.send(Pieces(tail.request, topic, [], places)):
            cursor.unsaid = {}
