"""Publisher order: who numbers publications, and how a subscriber delivers them by number.

A publisher numbers its publications from 0 in each incarnation. Every publication is delivered
once; by default at once, on request in the publisher's order. What is missing is reported as a
gap, what comes after its turn has passed as late, two payloads with one number as equivocation.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from itertools import islice
from random import Random

from msgspec import Struct, field
from msgspec.structs import replace

from planaria.core.ids import NodeId, stable_hash
from planaria.core.node import Deliver, Effect, Notice
from planaria.core.state import State, Stateful
from planaria.protocols.publications.publication import (
    TIME_MAX,
    Named,
    Publication,
    key,
    position_id,
)

PATIENCE = 10  # own timeouts for which a hole is waited for: anti-entropy is faster when healthy
STREAMS_MAX = 1 << 16  # streams followed; then the one not heard of for longest is let go
WAITING_MAX = 1 << 10  # numbers of one stream beyond a hole; then the hole is given up
SAID_MAX = 1 << 16  # latest numbers whose payload is remembered, to tell a repetition from a lie
FORGET_MAX = 64  # streams examined per timeout for being out of date
REBUILD_TIMEOUTS = 64  # after so many the deadlines are made anew, in case a fault lost one
STARTS_MAX = 64  # spans of time of which a publisher knows its first number
REJECTABLE_MAX = 64  # own publications that may still be rejected
RESTAMPS_MAX = 3  # per publication: who is rejected more often met more than one liar
SEQUENCE_MAX = 2**63 - 1

Name = tuple[NodeId, int]  # a stream: publisher and incarnation


class Stream(Struct):
    """One incarnation of a publisher as seen here: all numbers below `next` are done with."""

    next: int
    newest: int = 0  # the newest time heard of
    waiting: dict[int, tuple[int, Publication | None]] = field(default_factory=dict)  # since, what
    armed: bool = False  # has a deadline in the heap


class StreamsState(State):
    """How far each stream is, what waits for its turn, and which payload each number had."""

    ordered: bool
    clock: int
    streams: dict[tuple[int, int], Stream]
    deadlines: list[tuple[int, tuple[int, int]]]
    said: dict[tuple[int, int, int], bytes]


class Streams(Stateful):
    """The streams of one topic at one subscriber. Offer it each publication newly stored (R1).

    `mark` is told of all that leaves the waiting room: a fault may have put it there, unmarked.
    """

    __slots__ = (
        "clock", "deadlines", "mark", "ordered", "patience", "said", "streams", "topic",
    )  # fmt: skip
    state_type = StreamsState

    def __init__(
        self,
        topic: str,
        ordered: bool = False,
        patience: int = PATIENCE,
        mark: Callable[[Publication], object] = lambda _: None,
    ) -> None:
        self.topic = topic
        self.ordered = ordered
        self.patience = patience
        self.mark = mark
        self.clock = 0  # own timeouts
        self.streams: dict[Name, Stream] = {}  # the least recently heard of first
        self.deadlines: list[tuple[int, Name]] = []
        self.said: dict[tuple[NodeId, int, int], bytes] = {}

    def __len__(self) -> int:
        return len(self.streams)

    def offer(self, publication: Publication) -> list[Effect]:
        """Deliver a new publication, at once or when its turn comes, and what waited for it."""
        name = (publication.publisher, publication.incarnation)
        number = publication.sequence
        low = min(publication.low, number)
        effects: list[Effect] = []
        stream = self.streams.pop(name, None)
        if stream is None:
            stream = Stream(low)
            if len(self.streams) >= STREAMS_MAX:
                effects += self._forget(next(iter(self.streams)))
        self.streams[name] = stream
        stream.newest = max(stream.newest, publication.time)
        doubt = self._doubt(publication)
        if doubt == "repeated":
            return effects
        if doubt is None and number < stream.next:
            doubt = "late"
        if doubt is not None:
            return [*effects, *self._deliver_doubtful(doubt, name, publication)]
        if not self.ordered:
            effects.append(self._deliver(publication))
        stream.waiting[number] = (self.clock, publication if self.ordered else None)
        effects += self._advance(name, stream, low)
        if len(stream.waiting) > WAITING_MAX:
            effects += self._take(name, stream, min(stream.waiting))
            effects += self._advance(name, stream)
        self._arm(name, stream)
        return effects

    def on_timeout(self, lo: int) -> list[Effect]:
        """Time passed: give up holes that were waited for; forget streams older than `lo`."""
        self.clock += 1
        if self.clock % REBUILD_TIMEOUTS == 0:
            self._rebuild()
        effects: list[Effect] = []
        while self.deadlines and self.deadlines[0][0] <= self.clock:
            _, name = heappop(self.deadlines)
            stream = self.streams.get(name)
            if stream is not None:
                stream.armed = False
                effects += self._lose_patience(name, stream)
                self._arm(name, stream)
        start = self.clock * FORGET_MAX % max(1, len(self.streams))
        for name in list(islice(self.streams, start, start + FORGET_MAX)):
            if not lo <= self.streams[name].newest <= TIME_MAX:
                effects += self._forget(name)
        return effects

    def vector(self, publishers: Iterable[NodeId] | None = None) -> dict[str, int]:
        """How far each stream is without a hole: a token that any subscriber understands.

        Made on demand, for `publishers` or all; never gossiped, it grows with their number.
        """
        wanted = None if publishers is None else frozenset(publishers)
        return {
            f"{publisher}/{incarnation}": stream.next - 1
            for (publisher, incarnation), stream in sorted(self.streams.items())
            if stream.next > 0 and (wanted is None or publisher in wanted)
        }

    def _doubt(self, publication: Publication) -> str | None:
        """Was this number offered before? With the same payload it was only restamped."""
        position = (publication.publisher, publication.incarnation, publication.sequence)
        digest = blake2b(publication.payload, digest_size=8).digest()
        said = self.said.get(position)
        if said is not None:
            return "repeated" if said == digest else "equivocation"
        if len(self.said) >= SAID_MAX:
            del self.said[next(iter(self.said))]
        self.said[position] = digest
        return None

    def _advance(self, name: Name, stream: Stream, low: int = 0) -> list[Effect]:
        """Be done with all numbers that are there, and with gaps those below `low`."""
        effects: list[Effect] = []
        while True:
            if stream.next in stream.waiting:
                effects += self._take(name, stream, stream.next)
            elif stream.next >= low:
                return effects
            else:
                first = min(stream.waiting, default=low)
                if first < low:
                    effects += self._take(name, stream, first)
                else:
                    effects.append(self._gap(name, stream, low))

    def _take(self, name: Name, stream: Stream, number: int) -> list[Effect]:
        """Be done with a waiting number; what is missing before it is a gap."""
        effects: list[Effect] = []
        _, publication = stream.waiting.pop(number)
        if number > stream.next:
            effects.append(self._gap(name, stream, number))
        if publication is not None and publication.sequence == number:
            self.mark(publication)
            if self._doubt(publication) == "equivocation":  # only a fault puts that there
                effects += self._deliver_doubtful("equivocation", name, publication)
            else:
                effects.append(self._deliver(publication))
        stream.next = max(stream.next, number + 1)
        return effects

    def _gap(self, name: Name, stream: Stream, end: int) -> Notice:
        """Report all numbers up to `end` as missing."""
        notice = self._notice("gap", name, first=stream.next, last=end - 1)
        stream.next = end
        return notice

    def _lose_patience(self, name: Name, stream: Stream) -> list[Effect]:
        """Give up each hole under a number that waited for `patience` timeouts."""
        effects: list[Effect] = []
        while stream.waiting:
            since = next(iter(stream.waiting.values()))[0]
            if 0 <= self.clock - since < self.patience:
                break
            effects += self._take(name, stream, min(stream.waiting))
            effects += self._advance(name, stream)
        return effects

    def _arm(self, name: Name, stream: Stream) -> None:
        """See to it that a stream with a hole has a deadline."""
        if stream.waiting and not stream.armed:
            since = next(iter(stream.waiting.values()))[0]
            heappush(self.deadlines, (since + self.patience, name))
            stream.armed = True

    def _rebuild(self) -> None:
        """Make the deadlines anew from what waits."""
        self.deadlines = []
        for name, stream in self.streams.items():
            stream.armed = bool(stream.waiting)
            if stream.armed:
                since = min(next(iter(stream.waiting.values()))[0], self.clock)
                self.deadlines.append((since + self.patience, name))
        heapify(self.deadlines)

    def _forget(self, name: Name) -> list[Effect]:
        """Let a stream go, after handing out what waits; heard of again, it starts at its low."""
        stream = self.streams.pop(name)
        effects: list[Effect] = []
        while stream.waiting:
            effects += self._take(name, stream, min(stream.waiting))
        return effects

    def _deliver_doubtful(self, doubt: str, name: Name, publication: Publication) -> list[Effect]:
        """Deliver with a word of warning; of two payloads with one number the second needs an id
        of its own."""
        id = position_id(publication)
        if doubt == "equivocation":
            id += key(publication)
        notice = self._notice(doubt, name, sequence=publication.sequence, msg_id=id.hex())
        return [notice, self._deliver(publication, id)]

    def _deliver(self, publication: Publication, id: bytes | None = None) -> Deliver:
        return Deliver(
            self.topic,
            id or position_id(publication),
            publication.payload,
            publication.publisher,
            publication.sequence,
        )

    def _notice(self, kind: str, name: Name, **detail: int | str) -> Notice:
        return Notice(self.topic, kind, {"publisher": name[0], "incarnation": name[1], **detail})


class Stamp(Struct, frozen=True, array_like=True):
    """How far a publisher is in its own stream, and a check that this is intact."""

    incarnation: int
    sequence: int  # of the next publication
    starts: tuple[tuple[int, int], ...]  # (last time, first number) of the spans vouched for
    check: int

    @property
    def low(self) -> int:
        """The lowest number that is still vouched for."""
        return self.starts[0][1] if self.starts else self.sequence


class PublisherState(State):
    """How far the publisher is, and its last publications with how often each was restamped."""

    stamp: Stamp | None
    rejectable: dict[bytes, tuple[Publication, int]]


class Publisher(Stateful):
    """Numbers the publications of one node on one topic.

    A stamp that is not intact (lost, corrupted, another node's) is replaced by a new incarnation;
    numbers are never resumed from peers, which may lack the last ones.
    """

    __slots__ = ("_random", "id", "rejectable", "stamp")
    state_type = PublisherState

    def __init__(self, id: NodeId, random: Random, stamp: Stamp | None = None) -> None:
        self.id = id
        self.stamp = stamp  # store it before the publication leaves the node
        self._random = random
        self.rejectable: dict[bytes, tuple[Publication, int]] = {}

    def publish(self, payload: bytes, time: int, lo: int) -> Named:
        """Number and stamp a new publication; numbers older than `lo` are not vouched for."""
        stamp = self.stamp
        if stamp is None or stamp.check != self._check(stamp) or stamp.sequence >= SEQUENCE_MAX:
            # 31 bits, so that an incarnation fits a signed 64-bit column.
            start = time % (1 << 31)
            stamp = Stamp(start << 32 | self._random.getrandbits(32), 0, (), 0)
        stamp = replace(stamp, starts=_spans(stamp, time, lo))
        publication = Publication(
            self.id, stamp.incarnation, stamp.sequence, stamp.low, time, payload
        )
        stamp = replace(stamp, sequence=stamp.sequence + 1)
        self.stamp = replace(stamp, check=self._check(stamp))
        return self._remember(publication, 0)

    def restamp(self, name: bytes, time: int, lo: int) -> Named | None:
        """The publication of that key anew, if it is older than `lo` and still known here."""
        found = self.rejectable.get(name)
        if found is None or not found[0].time < lo <= time or not 0 <= found[1] < RESTAMPS_MAX:
            return None
        del self.rejectable[name]
        return self._remember(replace(found[0], time=time), found[1] + 1)

    def _remember(self, publication: Publication, restamps: int) -> Named:
        if len(self.rejectable) >= REJECTABLE_MAX:
            del self.rejectable[next(iter(self.rejectable))]
        name = key(publication)
        self.rejectable[name] = (publication, restamps)
        return name, publication

    def _check(self, stamp: Stamp) -> int:
        content = (stamp.incarnation, stamp.sequence, stamp.starts)
        return stable_hash("stamp", self.id, repr(content), bits=63)


def _spans(stamp: Stamp, time: int, lo: int) -> tuple[tuple[int, int], ...]:
    """The spans from `lo` on, with a number of `time` in the last; the oldest two may be one."""
    spans = [span for span in stamp.starts if span[0] >= lo]
    length = max(1, (time - lo) // STARTS_MAX)
    if spans and time // length <= spans[-1][0] // length:
        spans[-1] = (max(time, spans[-1][0]), spans[-1][1])
    else:
        spans.append((time, stamp.sequence))
    if len(spans) > STARTS_MAX:
        spans[:2] = [(spans[1][0], spans[0][1])]
    return tuple(spans)
