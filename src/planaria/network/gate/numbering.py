"""What one-shot clients publish is numbered by their node, in a stream of its own for each topic.

A client that hears no answer sends its token again, and is answered with the old position. Once
numbered, a record is offered until a member holds it, and nothing is numbered after one that was
refused: no reader is to wait for a number that never comes.
"""

import os
from collections.abc import Callable

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.topics import check_topic
from planaria.network.client.messages import TOKEN_BYTES, PutNew, Stored
from planaria.network.gate.ring import Memberships
from planaria.network.tls import Credentials
from planaria.records.evidence import PUBLISHED
from planaria.records.packing import weigh
from planaria.records.record import INCARNATION_BYTES, Draft, Record, seal

TOKEN_SECONDS = 600.0  # for which a repeated token is answered with the old position
TOKENS_MAX = 1 << 16  # remembered; then new ones are refused
STREAMS_MAX = 1 << 12  # topics in which this node numbers; of more the one idle for longest ends
UNHELD_BYTES_MAX = 16 << 20  # numbered here and held by nobody yet

Name = tuple[str, bytes]  # a topic and a token


class OwnStream:
    """How far this node has numbered on one topic, in an incarnation of this process."""

    __slots__ = ("incarnation", "next", "refused", "time")

    def __init__(self) -> None:
        self.incarnation = os.urandom(INCARNATION_BYTES)
        self.next = self.time = 0
        self.refused: set[bytes] = set()  # keys of records that no member takes now


class Token:
    """What was numbered under a token, until it is held; then what was answered."""

    __slots__ = ("answer", "since")

    def __init__(self, record: Record, since: float) -> None:
        self.answer: Record | Stored = record
        self.since = since


class Numbering:
    """The streams of this node, and the tokens of the last ten minutes."""

    def __init__(
        self,
        memberships: Memberships,
        clock: Callable[[], float],
        wall: Callable[[], float],
        credentials: Credentials | None = None,
    ) -> None:
        self._memberships, self._clock, self._wall = memberships, clock, wall
        self._credentials = credentials  # what this node numbers it signs
        self._streams: dict[str, OwnStream] = {}
        self._tokens: dict[Name, Token] = {}
        self._unheld: dict[bytes, Name] = {}  # by the key of the record
        self._unheld_bytes = 0

    def record(self, message: PutNew) -> Record | Stored:
        """The record of a request, numbered now or before, or what was answered before.

        Raises UsageError, and CapacityExceeded with nothing numbered.
        """
        known = self._tokens.get((message.topic, message.token))
        if known is not None:
            return known.answer
        self._check(message)
        own = self._own(message.topic)
        if own.refused:
            raise CapacityExceeded(f"no member of {message.topic} can store anything now")
        now = max(own.time, int(self._wall()))
        stream = (self._memberships.id, own.incarnation)
        low = min(self._low(message.topic, own), own.next)
        keys = self._credentials
        sign = None if keys is None else keys.sealer(PUBLISHED, message.topic)
        record = seal(stream, own.next, message.drafts, time=now, low=low, sign=sign)
        own.next, own.time = record.end, now
        name = (message.topic, message.token)
        self._tokens[name] = Token(record, self._clock())
        self._unheld[record.key] = name
        self._unheld_bytes += len(record.data)
        return record

    def is_own(self, record: Record) -> bool:
        """Was this numbered here, and is it not yet held?"""
        return record.key in self._unheld

    def held(self, record: Record, stored: Stored) -> None:
        """As many members hold it as its client wanted, or as there are."""
        name = self._settle(record)
        if name is not None:
            self._tokens[name].answer = stored

    def refused(self, record: Record) -> None:
        """No member takes it now: number nothing after it."""
        own = self._stream_of(record)
        if own is not None:
            own.refused.add(record.key)

    def taken(self, record: Record) -> None:
        """A member holds it: readers will not wait for it."""
        own = self._stream_of(record)
        if own is not None:
            own.refused.discard(record.key)

    def abandon(self, record: Record) -> None:
        """No member will ever take it: its stream ends with it, and its token is void."""
        name = self._settle(record)
        if name is not None:
            del self._tokens[name]
            self._streams.pop(name[0], None)

    def on_timeout(self) -> None:
        """Forget tokens that are old enough."""
        before = self._clock() - TOKEN_SECONDS
        old = [name for name, it in self._tokens.items() if it.since < before]
        for name in old:
            if isinstance(self._tokens[name].answer, Stored):
                del self._tokens[name]

    def _stream_of(self, record: Record) -> OwnStream | None:
        name = self._unheld.get(record.key)
        own = self._streams.get(name[0]) if name is not None else None
        return own if own is not None and own.incarnation == record.incarnation else None

    def _settle(self, record: Record) -> Name | None:
        name = self._unheld.pop(record.key, None)
        if name is not None:
            self._unheld_bytes -= len(record.data)
            own = self._streams.get(name[0])
            if own is not None:
                own.refused.discard(record.key)
        return name

    def _check(self, message: PutNew) -> None:
        check_topic(message.topic)
        if len(message.token) != TOKEN_BYTES:
            raise UsageError(f"token of {len(message.token)} bytes: {TOKEN_BYTES}")
        if not message.drafts:
            raise UsageError("nothing to publish: give at least one publication")
        for draft in message.drafts:
            weigh(Draft(*draft))
        if len(self._tokens) >= TOKENS_MAX:
            raise CapacityExceeded(f"{TOKENS_MAX} one-shot publications in ten minutes: wait")
        if self._unheld_bytes > UNHELD_BYTES_MAX:
            raise CapacityExceeded(f"{self._unheld_bytes} bytes are held by nobody yet: slow down")

    def _own(self, topic: str) -> OwnStream:
        own = self._streams.pop(topic, None) or OwnStream()
        self._streams[topic] = own
        if len(self._streams) > STREAMS_MAX:
            del self._streams[next(iter(self._streams))]
        return own

    def _low(self, topic: str, own: OwnStream) -> int:
        """The lowest number that this node can vouch for: of what it cannot see, all."""
        membership = self._memberships.get(topic)
        stream = (self._memberships.id, own.incarnation)
        low = membership.history.holdings.low(stream) if membership is not None else None
        return low or 0
