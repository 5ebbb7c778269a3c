"""What clients publish through this node: deposited at members, acknowledged when they hold it.

A record that a client sealed is the same bytes through whichever node; what one-shot clients
publish is numbered here. Nothing is acknowledged before as many members as its client wants, or
all that there are, have it on disk. Clients go at the pace of this node's links.
"""

from collections import deque
from collections.abc import Callable, Iterable

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import Command
from planaria.core.topics import check_topic
from planaria.network.client.messages import COPIES_MAX, Put, PutNew, Stored
from planaria.network.client.overlays import RING
from planaria.network.connection import Connection
from planaria.network.gate.numbering import Numbering
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import Session
from planaria.network.pace import Pacing
from planaria.network.tls import Credentials
from planaria.protocols.skipring.deposits import (
    CROWDED,
    EXPIRED,
    FORGED,
    FULL,
    MALFORMED,
    TAKEN,
    VOLATILE,
    Copies,
    DepositAnswered,
    Entrust,
)
from planaria.protocols.skipring.directory import Seek
from planaria.records.record import MalformedRecord, Record, decode

PENDING_BYTES_MAX = 256 << 20  # of all clients; then the next is refused
SOON_SECONDS = 0.02  # after which it is looked whether a supervisor has named members

REFUSALS = {
    MALFORMED: ("usage", "its members cannot read this record: upgrade them"),
    EXPIRED: ("usage", "this is older than what the topic keeps: set the clock right"),
    CROWDED: ("usage", "the topic has too many open streams: publish through fewer clients"),
    FORGED: (
        "usage",
        "its members do not admit it: the topic's charter, a revocation or a clock is against its "
        "publisher, which for a one-shot client is its node",
    ),
    TAKEN: ("usage", "another manifest has this batch: do two drivers write it?"),
    VOLATILE: (
        "usage",
        "its members keep nothing on disk (--durability none): publish with durability 'memory'",
    ),
    FULL: ("full", "too few members can store it now"),
}


class Pending:
    """A record that members are to hold, and which request waits for that, if any."""

    __slots__ = (
        "copies", "count", "durable", "first", "paced", "record", "request", "session", "stage",
        "topic",
    )  # fmt: skip

    def __init__(self, message: Put | PutNew, record: Record, copies: Copies, session: Session):
        self.topic, self.record, self.copies = message.topic, record, copies
        self.durable, self.request = message.durable, message.request
        self.stage = isinstance(message, Put) and message.stage
        self.first = message.members[:COPIES_MAX] if isinstance(message, Put) else ()
        self.count: int | None = None  # members of the topic, when last looked; None: not certain
        self.paced = False  # does it wait for the links of this node?
        self.session: Session | None = session
        session.put_bytes += len(record.data)

    def release(self) -> Session | None:
        """Nobody waits any more; returns who did."""
        session, self.session = self.session, None
        if session is not None:
            session.put_bytes -= len(self.record.data)
        return session


class Publishing:
    """All records on their way to members."""

    def __init__(
        self,
        memberships: Memberships,
        command: Callable[[Command], None],
        clock: Callable[[], float],
        wall: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
        links: Callable[[], Iterable[Connection]],
        credentials: Credentials | None = None,
    ) -> None:
        self.memberships, self._command, self._clock = memberships, command, clock
        self._later, self._looking = later, False
        self._paced: deque[Pending] = deque()  # in the order of their coming
        self._pacing = Pacing(links, self._go_on)
        self.numbering = Numbering(memberships, clock, wall, credentials)
        self._pending: dict[bytes, list[Pending]] = {}  # by the record's key
        self._topics: dict[str, dict[Pending, None]] = {}  # the same by topic
        self._sought: dict[str, None] = {}  # topics whose members nobody has named yet
        self._bytes = 0  # of them

    def __len__(self) -> int:
        return sum(map(len, self._pending.values()))

    # Requests

    def put(self, session: Session, message: Put) -> None:
        """Publish what a client sealed."""
        if not self._admit(session, message, len(message.record)):
            return
        try:
            check_topic(message.topic)
            record = decode(message.record)
            if record.publisher != session.publisher:
                raise UsageError(
                    f"a record of publisher {record.publisher}: this client publishes as "
                    f"{session.publisher}, the handle of its id"
                )
        except (UsageError, MalformedRecord) as error:
            session.fail(message.request, "usage", str(error))
            return
        self._begin(session, message, record)

    def put_new(self, session: Session, message: PutNew) -> None:
        """Number what a one-shot client publishes, unless its token was numbered before."""
        if not self._admit(session, message, sum(len(it.payload) for it in message.drafts)):
            return
        try:
            record = self.numbering.record(message)
        except UsageError as error:
            session.fail(message.request, "usage", str(error))
        except CapacityExceeded as error:
            session.fail(message.request, "full", str(error))
        else:
            if isinstance(record, Stored):
                session.answer(_again(record, message.request))
            else:
                self._begin(session, message, record)

    def _admit(self, session: Session, message: Put | PutNew, size: int) -> bool:
        """Is there room for so many bytes more, of this client and of all?"""
        if not session.admit(message.request, size):
            return False
        if self._bytes and self._bytes + size > PENDING_BYTES_MAX:
            reason = f"{self._bytes} bytes of all clients wait at this node: slow down"
            session.fail(message.request, "full", reason)
            return False
        return True

    def gone(self, session: Session) -> None:
        """A client is gone: what it sealed it sends again elsewhere."""
        for group in list(self._pending.values()):
            for pending in [it for it in group if it.session is session]:
                pending.release()
                if not self._goes_on(pending):
                    self._drop(pending)

    # On the way

    def _begin(self, session: Session, message: Put | PutNew, record: Record) -> None:
        self._bytes += len(record.data)
        wanted = min(max(1, message.copies), COPIES_MAX)
        copies = Copies(wanted, self._clock(), strict=message.strict)
        pending = Pending(message, record, copies, session)
        self._pending.setdefault(record.key, []).append(pending)
        self._topics.setdefault(pending.topic, {})[pending] = None
        if not message.strict and len(self._pending[record.key]) > 1:
            self._end_strict(pending, session)
        if self._paced or self._pacing.crowded:
            pending.paced = True
            self._paced.append(pending)
            self._pacing.begin()
        else:
            self._step(pending)

    def _end_strict(self, again: Pending, session: Session) -> None:
        """Whoever asks again without `strict` waits no more for what it asked before."""
        for one in list(self._pending[again.record.key]):
            if one.copies.strict and one.session is session and one.topic == again.topic:
                one.release()
                self._drop(one)
                session.fail(one.request, "usage", "asked for again, without strict")

    def _go_on(self) -> bool:
        """Publish what waited for links; does more wait?"""
        while self._paced and not self._pacing.crowded:
            pending = self._paced.popleft()
            pending.paced, pending.copies.since = False, self._clock()
            if pending in self._pending.get(pending.record.key, ()):
                self._step(pending)
        return bool(self._paced)

    def close(self) -> None:
        """Give the node nothing more."""
        self._paced.clear()
        self._pacing.close()

    def on_answer(self, effect: DepositAnswered) -> None:
        """A member said whether it holds a record."""
        for pending in list(self._pending.get(effect.key, ())):
            if pending.topic == effect.topic:
                pending.copies.answered(effect.member, effect.reason)
                if not effect.reason:
                    self.numbering.taken(pending.record)
                if pending.copies.enough(pending.count):
                    self._stored(pending)
                else:
                    self._step(pending)

    def on_timeout(self) -> None:
        """Time passed: ask others where some are silent."""
        for topic in list(self._topics):
            self.look(topic)
        self.numbering.on_timeout()

    def look(self, topic: str) -> None:
        """Members of a topic may be known by now, or this node may be one."""
        for pending in list(self._topics.get(topic, ())):
            self._step(pending)

    def _seek(self, topic: str) -> None:
        """Have the members of a topic named, and look soon whether they are."""
        if topic not in self._sought:
            self._sought[topic] = None
            self._command(Seek(topic))
        if not self._looking:  # one timer for all topics
            self._looking = True
            self._later(SOON_SECONDS, self._look_now)

    def _look_now(self) -> None:
        self._looking = False
        for topic in list(self._sought):
            if topic not in self._topics:
                del self._sought[topic]
            elif self.memberships.named(topic):
                del self._sought[topic]
                self.look(topic)
        if self._sought and not self._looking:
            self._looking = True
            self._later(SOON_SECONDS, self._look_now)

    def _step(self, pending: Pending) -> None:
        """Judge what is known by now, and ask whoever else is to be asked."""
        if pending.paced:
            return
        members, count, settled = self.memberships.candidates(pending.topic)
        pending.count = count if settled else None
        if pending.copies.enough(pending.count) or self._uncertain(pending, members):
            self._stored(pending)
            return
        if count is None:
            self._seek(pending.topic)
        if not members and count == 0:
            why = self.memberships.join_if_empty(pending.topic)
            if why is not None:
                self._failed(pending, "full", why)
                return
        members = list(dict.fromkeys([*pending.first, *members])) if pending.first else members
        reason = pending.copies.refusal(members, self._clock(), pending.count)
        if reason is not None:
            code, why = REFUSALS[reason]
            self._failed(pending, code, f"{pending.topic}: {why} ({_tally(pending)})")
        if pending in self._pending.get(pending.record.key, ()):
            self._ask(pending, members)

    def _uncertain(self, pending: Pending, members: list[int]) -> bool:
        """Has nobody said for long how many members there are, and all that are known hold it?"""
        return pending.count is None and pending.copies.all_known(members, self._clock())

    def _ask(self, pending: Pending, members: list[int]) -> None:
        asked = pending.copies.ask(members, self._clock())
        for spread in (True, False):
            chosen = tuple(member for member, first in asked if first == spread)
            if chosen:
                how = (spread, pending.durable, pending.stage)
                self._command(Entrust(pending.topic, pending.record, chosen, *how))

    def _stored(self, pending: Pending) -> None:
        record, copies, count = pending.record, len(pending.copies.held), pending.count
        stored = Stored(
            pending.request, copies, max(copies, count or 0), record.publisher,
            record.incarnation, record.first, record.count,
        )  # fmt: skip
        self.numbering.held(record, stored)
        self._drop(pending)
        session = pending.release()
        if session is not None:
            session.count(RING, pending.topic, record)
            session.answer(stored)

    def _failed(self, pending: Pending, code: str, why: str) -> None:
        """Tell the client; what this node has numbered it goes on offering, unless that is vain."""
        session, group = pending.release(), self._pending.get(pending.record.key, ())
        if code != "full":
            self.numbering.abandon(pending.record)
        elif not any(one.copies.held for one in group):
            self.numbering.refused(pending.record)
        if self._goes_on(pending):
            pending.copies.since = self._clock()
        else:
            self._drop(pending)
        if session is not None:
            session.fail(pending.request, code, why)

    def _goes_on(self, pending: Pending) -> bool:
        """Is this to be offered though nobody waits? Once, however often it was asked for."""
        others = len(self._pending.get(pending.record.key, ())) > 1
        return self.numbering.is_own(pending.record) and not others

    def _drop(self, pending: Pending) -> None:
        group = self._pending.get(pending.record.key, [])
        if pending in group:
            group.remove(pending)
            self._bytes -= len(pending.record.data)
            self._topics[pending.topic].pop(pending, None)
            if not self._topics[pending.topic]:
                del self._topics[pending.topic]
        if not group:
            self._pending.pop(pending.record.key, None)


def _tally(pending: Pending) -> str:
    held, wanted, count = len(pending.copies.held), pending.copies.wanted, pending.count
    known = "its members are not known yet" if count is None else f"it has {count} members"
    return f"{held} of {wanted} copies; {known}"


def _again(stored: Stored, request: int) -> Stored:
    rest = (stored.publisher, stored.incarnation, stored.first, stored.count)
    return Stored(request, stored.copies, stored.members, *rest)
